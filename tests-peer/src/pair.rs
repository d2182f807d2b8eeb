//! The two controllers of an array, as it reports them.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::array::Array;

/// How long both controllers may take to be ready again.
pub const READY: Duration = Duration::from_secs(20);

/// A controller as reported by the owner.
pub struct Found {
    /// CT0 or CT1.
    pub name: String,
    /// Its process.
    pub pid: u64,
    /// Whether it is the owner.
    pub is_owner: bool,
}

impl Found {
    /// Returns its number, which is that of its portal: 0 or 1.
    pub fn number(&self) -> usize {
        usize::from(self.name != "CT0")
    }

    /// Parses one that is ready from `controller list`.
    #[must_use]
    pub fn of(told: &Value) -> Option<Self> {
        Some(Self {
            name: told["name"].as_str()?.to_owned(),
            pid: told["pid"].as_u64().filter(|_| told["status"] == "ready")?,
            is_owner: told["mode"] == "primary",
        })
    }
}

/// Returns the controllers that are ready; none while there is no owner, because no controller
/// responds then.
///
/// # Errors
/// If the verb can't be run.
pub fn ready(array: &Array) -> Result<Vec<Found>> {
    let listed = array.try_verb(&["controller", "list"])?;
    let told = match listed.code {
        0 => serde_json::from_str(&listed.text)?,
        _ => Value::Null,
    };
    Ok(told.as_array().into_iter().flatten().filter_map(Found::of).collect())
}

/// Returns both controllers, once they are ready.
///
/// # Errors
/// If they are not in time.
pub fn both(array: &Array) -> Result<[Found; 2]> {
    let begin = Instant::now();
    loop {
        ensure!(begin.elapsed() < READY, "the controllers are not ready:\n{}", array.log());
        if let Ok(both) = <[Found; 2]>::try_from(ready(array)?) {
            return Ok(both);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the owner, once both are ready.
///
/// # Errors
/// If they are not in time.
pub fn owner(array: &Array) -> Result<Found> {
    both(array)?.into_iter().find(|it| it.is_owner).context("no controller has the pool")
}

/// Returns the one that forwards, once both are ready.
///
/// # Errors
/// If they are not in time.
pub fn other(array: &Array) -> Result<Found> {
    both(array)?.into_iter().find(|it| !it.is_owner).context("no controller forwards")
}
