//! The array's own command line, as an administrator uses it.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::engine::Reactor;

const STATUS: [&str; 2] = ["status", "--json"];
/// The exit codes for a refusal by the array, and for no response.
const REFUSED: i32 = 1;
const UNREACHABLE: i32 = 3;
/// How long there may be no response, and the pause between two attempts.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// A running array.
#[derive(Debug)]
pub struct Array {
    /// The `holdfast` program.
    pub program: PathBuf,
    /// The pool that it serves.
    pub pool: PathBuf,
}

/// The use of the pool.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    /// Bytes of stored volume data.
    pub data_bytes: u64,
    /// Bytes of segments in use: data, metadata, and the dead bytes in them.
    pub allocated_bytes: u64,
}

impl Array {
    /// Runs a verb, and returns what it printed.
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

    /// Runs a verb asynchronously, with retries while no array responds: one controller takes over
    /// from the other. One without a response may have been executed, and is refused when it is
    /// repeated; if it was not done, what follows fails.
    pub async fn insist(&self, reactor: &Reactor, arguments: &[&str]) -> Result<String, String> {
        let (begun, mut unanswered) = (Instant::now(), false);
        loop {
            let output = self.run_beside(reactor, arguments).await?;
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            match output.status.code() {
                Some(0) => return Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
                Some(REFUSED) if unanswered => return Ok(String::new()),
                Some(UNREACHABLE) if begun.elapsed() < PATIENCE => unanswered = true,
                _ => return Err(format!("holdfast {}: {reason}", arguments.join(" "))),
            }
            reactor.sleep(LOOK).await;
        }
    }

    async fn run_beside(&self, reactor: &Reactor, arguments: &[&str]) -> Result<Output, String> {
        let failed = |error| format!("{}: {error}", self.program.display());
        let mut command = Command::new(&self.program);
        command.args(arguments).arg("--pool").arg(&self.pool);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        // It prints less than a pipe holds.
        while child.try_wait().map_err(failed)?.is_none() {
            reactor.sleep(Duration::from_millis(2)).await;
        }
        child.wait_with_output().map_err(failed)
    }

    /// Returns the name of the volume with this NAA identifier.
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
        name.ok_or_else(|| format!("no volume of the array has the identifier {naa}"))
    }

    /// Returns the use of the pool, as the array reports it.
    pub fn space(&self) -> Result<Space, String> {
        Space::parse(&self.run(&STATUS)?)
    }

    /// Does the same asynchronously, as [`Array::insist`].
    pub async fn space_beside(&self, reactor: &Reactor) -> Result<Space, String> {
        Space::parse(&self.insist(reactor, &STATUS).await?)
    }
}

impl Space {
    fn parse(text: &str) -> Result<Self, String> {
        let status: serde_json::Value =
            serde_json::from_str(text).map_err(|error| format!("holdfast status: {error}"))?;
        let number = |name: &str| {
            find_number(&status, name)
                .ok_or_else(|| format!("holdfast status --json has no number {name:?}"))
        };
        Ok(Self { data_bytes: number("data_bytes")?, allocated_bytes: number("allocated_bytes")? })
    }
}

/// Returns the number with this name, in the object itself or in one directly inside it.
fn find_number(status: &serde_json::Value, name: &str) -> Option<u64> {
    let object = status.as_object()?;
    let own = object.get(name).and_then(serde_json::Value::as_u64);
    own.or_else(|| object.values().find_map(|inner| inner.get(name)?.as_u64()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::engine::Engine;

    /// Runs a verb of a program that ends with each of these codes in turn.
    fn insist_on(codes: &str) -> Result<String, String> {
        let directory = tempfile::tempdir().unwrap();
        let (program, left) = (directory.path().join("program"), directory.path().join("left"));
        std::fs::write(&left, codes).unwrap();
        let script = format!(
            "#!/bin/sh\nread code rest <{0}\necho $rest >{0}\n\
             echo done\necho why >&2\nexit $code\n",
            left.display()
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        let array = Array { program, pool: PathBuf::from("pool") };
        let mut engine = Engine::new();
        let reactor = engine.reactor();
        engine.run(async move { array.insist(&reactor, &["volume", "create"]).await }).unwrap()
    }

    #[test]
    fn an_unanswered_verb_may_have_been_done() {
        assert_eq!(insist_on("0"), Ok("done\n".into()));
        assert_eq!(insist_on("3 3 0"), Ok("done\n".into()));
        assert_eq!(insist_on("3 1"), Ok(String::new()));
        assert_eq!(insist_on("1"), Err("holdfast volume create: why".into()));
        assert_eq!(insist_on("3 4"), Err("holdfast volume create: why".into()));
    }
}
