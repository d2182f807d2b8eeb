//! The array's own command line, as an administrator uses it.

use std::path::PathBuf;
use std::process::Command;

/// A running array.
#[derive(Debug)]
pub struct Array {
    /// The `holdfast` program.
    pub program: PathBuf,
    /// The pool that it serves.
    pub pool: PathBuf,
}

/// What of the pool is used.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Bytes of stored volume data.
    pub data_bytes: u64,
    /// Bytes of segments that can't be written: data, metadata, and what is dead in them.
    pub allocated_bytes: u64,
}

impl Array {
    /// Runs a verb, and gives what it printed.
    pub fn run(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .arg("--pool")
            .arg(&self.pool)
            .output()
            .map_err(|error| format!("{}: {error}", self.program.display()))?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(format!("holdfast {}: {reason}", arguments.join(" ")));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The name of the volume that hosts know by this NAA name.
    pub fn volume_of(&self, naa: &str) -> Result<String, String> {
        let text = self.run(&["volume", "list", "--json"])?;
        let list: serde_json::Value = serde_json::from_str(&text)
            .map_err(|error| format!("holdfast volume list: {error}"))?;
        let field = |volume: &serde_json::Value, name: &str| {
            volume.get(name).and_then(serde_json::Value::as_str).map(str::to_owned)
        };
        let mut volumes = list.as_array().into_iter().flatten();
        let found = volumes.find(|volume| field(volume, "naa").as_deref() == Some(naa));
        let name = found.and_then(|volume| field(volume, "name"));
        name.ok_or_else(|| format!("no volume of the array is called {naa} by hosts"))
    }

    /// What of the pool is used, as the array itself says.
    pub fn space(&self) -> Result<Space, String> {
        let text = self.run(&["status", "--json"])?;
        let status: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| format!("holdfast status: {error}"))?;
        let number = |name: &str| {
            find_number(&status, name)
                .ok_or_else(|| format!("holdfast status --json has no number {name:?}"))
        };
        Ok(Space { data_bytes: number("data_bytes")?, allocated_bytes: number("allocated_bytes")? })
    }
}

/// The number of this name, in the object itself or in one directly inside it.
fn find_number(status: &serde_json::Value, name: &str) -> Option<u64> {
    let object = status.as_object()?;
    let own = object.get(name).and_then(serde_json::Value::as_u64);
    own.or_else(|| object.values().find_map(|inner| inner.get(name)?.as_u64()))
}
