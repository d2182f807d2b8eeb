//! How a verb finds the running array: by the run file that `serve` leaves in its pool, and in a
//! directory of the user that lists all arrays. A run file holds the address and the token of the
//! management interface, so only its owner may read it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::args::Common;
use super::failure::Failure;

/// The name of the run file in a pool's directory.
pub const RUN_FILE: &str = "array.run";
/// A run file is short; whatever is longer is something else.
const RUN_FILE_BYTES_MAX: u64 = 64 << 10;

/// What stands in a run file.
#[derive(Clone, Serialize, Deserialize)]
pub struct RunFile {
    /// The version of this form: 1.
    pub v: u32,
    /// Where the management interface listens.
    pub api: SocketAddr,
    /// What requests must carry.
    pub token: String,
    /// The process.
    pub pid: u32,
    /// The pool's directory or device.
    pub pool: PathBuf,
}

impl RunFile {
    /// Reads one. `Ok(None)` where there is none.
    fn read(path: &Path) -> Result<Option<Self>, Failure> {
        let bytes = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Ok(meta) if meta.len() > RUN_FILE_BYTES_MAX => Err(io::Error::other("too long")),
            Ok(_) => fs::read(path),
            Err(error) => Err(error),
        };
        let bytes = bytes.map_err(|error| Failure::of_file("read", path, &error))?;
        let run: Self = serde_json::from_slice(&bytes).map_err(|_| {
            let text = format!("{} is not a run file; restart the array", path.display());
            Failure::Machine(text)
        })?;
        Ok(Some(run))
    }

    /// Whether its process still exists. Another may have its number: then nobody answers.
    fn is_alive(&self) -> bool {
        Path::new("/proc").join(self.pid.to_string()).exists()
    }
}

/// The run files of a running array; they go away with it.
pub struct Registered {
    paths: Vec<PathBuf>,
}

impl Registered {
    /// Writes them: into the pool, if it is a directory, and into the user's directory.
    pub fn new(run: &RunFile) -> Result<Self, Failure> {
        let mut registered = Self { paths: Vec::new() };
        if run.pool.is_dir() {
            registered.write(&run.pool.join(RUN_FILE), run)?;
        }
        let directory = user_directory();
        let listed = make_private(&directory).and_then(|()| {
            let path = directory.join(format!("{}.run", run.pid));
            write_private(&path, run).map(|()| registered.paths.push(path))
        });
        if let Err(error) = listed {
            tracing::warn!("the array is not listed in {}: {error}", directory.display());
        }
        Ok(registered)
    }

    fn write(&mut self, path: &Path, run: &RunFile) -> Result<(), Failure> {
        write_private(path, run).map_err(|error| Failure::of_file("write", path, &error))?;
        self.paths.push(path.to_owned());
        Ok(())
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        for path in &self.paths {
            if let Err(error) = fs::remove_file(path) {
                tracing::warn!("can't remove {}: {error}", path.display());
            }
        }
    }
}

/// Writes a file that only its owner can read, and that is there wholly or not at all.
fn write_private(path: &Path, run: &RunFile) -> io::Result<()> {
    let scratch = path.with_extension(format!("{}.new", run.pid));
    let text = serde_json::to_vec_pretty(run)?;
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&scratch)
        .and_then(|mut file| file.write_all(&text))
        .and_then(|()| fs::rename(&scratch, path));
    if written.is_err() {
        // The first failure is the one to tell.
        let _ = fs::remove_file(&scratch);
    }
    written
}

/// The directory that lists the arrays of this user.
fn user_directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
    let user = rustix::process::geteuid();
    match runtime {
        Some(runtime) => PathBuf::from(runtime).join("holdfast"),
        None if user.is_root() => PathBuf::from("/run/holdfast"),
        None => std::env::temp_dir().join(format!("holdfast-{}", user.as_raw())),
    }
}

fn make_private(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    check_owner(directory)
}

/// Another user's directory could name an array that only looks like ours.
fn check_owner(directory: &Path) -> io::Result<()> {
    let meta = fs::symlink_metadata(directory)?;
    let is_ours = meta.is_dir() && meta.uid() == rustix::process::geteuid().as_raw();
    if is_ours && meta.mode() & 0o022 == 0 {
        return Ok(());
    }
    Err(io::Error::other("it is not a directory that only this user can write"))
}

/// All arrays of this user that seem to run. What can't be read is somebody else's or gone.
fn listed() -> Vec<RunFile> {
    let directory = user_directory();
    if check_owner(&directory).is_err() {
        return Vec::new();
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let runs = paths.filter(|path| path.extension().is_some_and(|end| end == "run"));
    let mut found: Vec<RunFile> =
        runs.filter_map(|path| RunFile::read(&path).ok().flatten()).collect();
    found.retain(RunFile::is_alive);
    found.sort_by(|a, b| a.pool.cmp(&b.pool));
    found
}

/// Where to send requests, and what they must carry.
pub struct Address {
    /// The management interface.
    pub api: SocketAddr,
    /// The token.
    pub token: String,
    /// What to say when nobody answers.
    pub origin: String,
}

/// Finds the array that the arguments mean: `--api`, or `--pool`, or the only one that runs.
pub fn find(common: &Common) -> Result<Address, Failure> {
    if let Some(api) = common.api {
        return by_address(common, api);
    }
    let run = match &common.pool {
        Some(pool) => by_pool(pool)?,
        None => the_only_one()?,
    };
    let origin = format!("the array that served {}", run.pool.display());
    let token = match &common.token_file {
        Some(file) => read_token(file)?,
        None => run.token,
    };
    Ok(Address { api: run.api, token, origin })
}

fn by_address(common: &Common, api: SocketAddr) -> Result<Address, Failure> {
    let origin = "--api".to_owned();
    if let Some(file) = &common.token_file {
        return Ok(Address { api, token: read_token(file)?, origin });
    }
    let known = match &common.pool {
        Some(pool) => by_pool(pool).ok().filter(|run| run.api == api),
        None => listed().into_iter().find(|run| run.api == api),
    };
    match known {
        Some(run) => Ok(Address { api, token: run.token, origin }),
        None => Err(Failure::Usage(format!(
            "{api} is not an array of this user: give its token with --token-file FILE (the file \
             {RUN_FILE} in its pool will do)"
        ))),
    }
}

fn by_pool(pool: &Path) -> Result<RunFile, Failure> {
    let place = fs::canonicalize(pool).map_err(|error| {
        Failure::Unreachable(format!("there is no pool at {}: {error}", pool.display()))
    })?;
    let in_pool = RunFile::read(&place.join(RUN_FILE)).ok().flatten();
    let found = in_pool.or_else(|| listed().into_iter().find(|run| run.pool == place));
    found.filter(RunFile::is_alive).ok_or_else(|| {
        let pool = pool.display();
        Failure::Unreachable(format!(
            "no array serves {pool}; start it with `holdfast serve --pool {pool} --iscsi ADDR:PORT`"
        ))
    })
}

fn the_only_one() -> Result<RunFile, Failure> {
    let mut found = listed();
    match (found.pop(), found.is_empty()) {
        (Some(run), true) => Ok(run),
        (None, _) => Err(Failure::Unreachable(
            "no array of this user is running here; start one with `holdfast serve`, or name one \
             with --pool or --api"
                .into(),
        )),
        (Some(last), false) => {
            let pools = found.iter().chain([&last]).map(|run| run.pool.display().to_string());
            let pools = pools.collect::<Vec<_>>().join(", ");
            Err(Failure::Unreachable(format!(
                "several arrays are running here; name one with --pool: {pools}"
            )))
        }
    }
}

/// The token of a run file, or of a file that holds nothing else.
fn read_token(file: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(file).map_err(|error| Failure::of_file("read", file, &error))?;
    let token = match serde_json::from_str::<RunFile>(&text) {
        Ok(run) => run.token,
        Err(_) => text.trim().to_owned(),
    };
    if token.is_empty() || !token.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return Err(Failure::Usage(format!("{} holds no token", file.display())));
    }
    Ok(token)
}
