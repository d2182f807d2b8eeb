//! How a verb finds the running array: by the run file that `serve` leaves in its pool, and in a
//! directory of the user that lists all arrays. A run file contains the address, the token and the
//! fingerprint of the management interface, so only its owner may read it.

use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use management::place::ApiPlace;
use management::private::{self, SECRET};
use serde::{Deserialize, Serialize};

use super::args::Common;
use super::failure::Failure;
use super::trust::Trust;

/// The name of the run file in a pool's directory.
pub const RUN_FILE: &str = "array.run";
/// The environment variable that holds a token for `--api`.
const TOKEN_VARIABLE: &str = "HOLDFAST_TOKEN";
/// A run file is short; a longer file is something else.
const RUN_FILE_BYTES_MAX: u64 = 64 << 10;

/// The content of a run file.
#[derive(Clone, Serialize, Deserialize)]
pub struct RunFile {
    /// The version of this form: 1.
    pub v: u32,
    /// The address of the management interface.
    pub api: SocketAddr,
    /// The token that requests must contain.
    pub token: String,
    /// The SHA-256 of its certificate, in hex; without one, management speaks plain HTTP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// The process.
    pub pid: u32,
    /// The pool's directory or device.
    pub pool: PathBuf,
    /// The directories or devices of the other devices of the pool, if it has several, including
    /// missing ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PathBuf>,
}

impl RunFile {
    /// Reads a run file. `Ok(None)` if it does not exist.
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

    /// Returns how to verify the array.
    fn trust(&self) -> Result<Trust, Failure> {
        let Some(fingerprint) = &self.fingerprint else { return Ok(Trust::Plain) };
        let refuse = |why| Failure::Machine(format!("the run file is damaged: {why}"));
        fingerprint.parse().map(Trust::Fingerprint).map_err(refuse)
    }

    /// Returns whether its process still exists. Another process may have the same number: then
    /// requests fail.
    fn is_alive(&self) -> bool {
        is_alive(self.pid)
    }
}

/// The run files of a running array; they are removed on drop.
pub struct Registered {
    paths: Vec<PathBuf>,
}

impl Registered {
    /// Writes the run files: into the pool, if it is a directory, and into the user's directory. An
    /// array that can write neither, because a filesystem is full, runs nevertheless.
    pub fn new(run: &RunFile) -> Self {
        let mut registered = Self { paths: Vec::new() };
        if run.pool.is_dir() {
            registered.write(&run.pool.join(RUN_FILE), run);
        }
        let directory = user_directory();
        remove_stale(&directory);
        let listed = private::make_directory(&directory).and_then(|()| {
            let path = directory.join(format!("{}.run", run.pid));
            write_run_file(&path, run).map(|()| registered.paths.push(path))
        });
        if let Err(error) = listed {
            tracing::warn!("the array is not listed in {}: {error}", directory.display());
        }
        if registered.paths.is_empty() {
            tracing::warn!(
                "verbs can't find this array by themselves: give --api and --token-file"
            );
        }
        registered
    }

    /// Rewrites the run files after a change.
    pub fn write_again(&self, run: &RunFile) {
        // The one in the pool last: a process that sees it there finds the others, too.
        for path in self.paths.iter().rev() {
            if let Err(error) = write_run_file(path, run) {
                tracing::warn!("can't update {}: {error}", path.display());
            }
        }
    }

    fn write(&mut self, path: &Path, run: &RunFile) {
        match write_run_file(path, run) {
            Ok(()) => self.paths.push(path.to_owned()),
            Err(error) => {
                tracing::warn!("can't write {}: {error}", path.display());
                // A run file of an earlier run would mislead verbs. Usually there is none.
                let _ = fs::remove_file(path);
            }
        }
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

/// Removes the files of killed processes. If another process has the same number now, the file is
/// removed after that process ends.
fn remove_stale(directory: &Path) {
    if private::check_owner(directory).is_err() {
        return; // it is not there yet, or somebody else's
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_run = path.extension().is_some_and(|end| end == "run");
        let pid = path.file_stem().and_then(|stem| stem.to_str()?.parse::<u32>().ok());
        let Some(pid) = pid.filter(|_| is_run) else { continue };
        if !is_alive(pid)
            && let Err(error) = fs::remove_file(&path)
        {
            tracing::warn!("can't remove {}: {error}", path.display());
        }
    }
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn write_run_file(path: &Path, run: &RunFile) -> io::Result<()> {
    private::write(path, &serde_json::to_vec_pretty(run)?, SECRET)
}

/// Returns the directory that lists the arrays of this user.
pub fn user_directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|dir| !dir.is_empty());
    let user = rustix::process::geteuid();
    match runtime {
        Some(runtime) => PathBuf::from(runtime).join("holdfast"),
        None if user.is_root() => PathBuf::from("/run/holdfast"),
        None => std::env::temp_dir().join(format!("holdfast-{}", user.as_raw())),
    }
}

/// Returns all arrays of this user that seem to run. Unreadable files belong to another user, or
/// are gone.
fn listed() -> Vec<RunFile> {
    let directory = user_directory();
    if private::check_owner(&directory).is_err() {
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

/// The address of management, with the token and the verification.
pub struct Address {
    /// The management interface.
    pub api: ApiPlace,
    /// The token.
    pub token: String,
    /// How to verify the array.
    pub trust: Trust,
    /// The source of the address, to report if there is no response.
    pub origin: String,
}

/// Finds the array that the arguments refer to: `--api`, or `--pool`, or the only one that runs.
pub fn find(common: &Common) -> Result<Address, Failure> {
    let (api, run, origin) = match &common.api {
        Some(api) => (api.clone(), run_at(common, api), "--api".to_owned()),
        None => {
            let run = match common.pool() {
                Some(pool) => by_pool(pool)?,
                None => the_only_one()?,
            };
            let origin = format!("the array that served {}", run.pool.display());
            (ApiPlace::of(run.api, run.fingerprint.is_none()), Some(run), origin)
        }
    };
    let given = match &common.token_file {
        Some(file) => Some(TokenFile::read(file)?),
        None => TokenFile::of_environment()?,
    };
    let trust = trust(common, &api, given.as_ref(), run.as_ref())?;
    let token = match (given, run) {
        (Some(given), _) => given.token,
        (None, Some(run)) => run.token,
        (None, None) => {
            return Err(Failure::Usage(format!(
                "{api} is not an array of this user: give an API token with --token-file FILE (the \
                 file {RUN_FILE} in its pool is one)"
            )));
        }
    };
    Ok(Address { api, token, trust, origin })
}

/// Returns the run file of the array that listens at this address, if this user has one.
fn run_at(common: &Common, api: &ApiPlace) -> Option<RunFile> {
    let address = api.address()?;
    match common.pool() {
        Some(pool) => by_pool(pool).ok().filter(|run| run.api == address),
        None => listed().into_iter().find(|run| run.api == address),
    }
}

/// Returns how to verify the array before it gets a token: by the command line, by the file with
/// the token, or by the run file.
fn trust(
    common: &Common,
    api: &ApiPlace,
    given: Option<&TokenFile>,
    run: Option<&RunFile>,
) -> Result<Trust, Failure> {
    if api.plain && (common.fingerprint.is_some() || common.ca.is_some()) {
        let text = "http:// has no certificate: omit --fingerprint and --ca, or http://";
        return Err(Failure::Usage(text.into()));
    }
    let given = given.and_then(|given| given.run.as_ref());
    let trust = match (common.fingerprint, &common.ca, given.or(run)) {
        _ if api.plain => Trust::Plain,
        (Some(fingerprint), _, _) => Trust::Fingerprint(fingerprint),
        (None, Some(ca), _) => Trust::Certificates(ca.clone()),
        (None, None, Some(run)) => run.trust()?,
        (None, None, None) => {
            return Err(Failure::Usage(format!(
                "the certificate of {api} can't be verified: give --fingerprint HEX (serve \
                 prints it) or --ca FILE"
            )));
        }
    };
    if matches!(trust, Trust::Plain) && !api.is_loopback() {
        return Err(Failure::Usage(format!(
            "{api} is not this machine: a token is not sent there without encryption"
        )));
    }
    Ok(trust)
}

fn by_pool(pool: &Path) -> Result<RunFile, Failure> {
    let place = fs::canonicalize(pool).map_err(|error| {
        Failure::Unreachable(format!("there is no pool at {}: {error}", pool.display()))
    })?;
    serving(&place, listed).ok_or_else(|| {
        let pool = pool.display();
        Failure::Unreachable(format!(
            "no array serves {pool}; start it with `holdfast serve --pool {pool} --iscsi ADDR:PORT`"
        ))
    })
}

/// Returns the run file of the array that serves a place, without links; `listed` has those of all
/// arrays.
fn serving(place: &Path, listed: impl FnOnce() -> Vec<RunFile>) -> Option<RunFile> {
    // A killed array leaves its run file. The next one may have started without this device, at
    // another address.
    let in_pool = RunFile::read(&place.join(RUN_FILE)).ok().flatten().filter(RunFile::is_alive);
    let is_of = |run: &RunFile| run.pool == place || run.places.iter().any(|it| it == place);
    in_pool.or_else(|| listed().into_iter().find(is_of))
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

/// A file with a token: a run file, or a file with only a token.
struct TokenFile {
    token: String,
    run: Option<RunFile>,
}

impl TokenFile {
    /// Returns the token in the environment variable, for use without a file: not as an argument,
    /// which other users can see.
    fn of_environment() -> Result<Option<Self>, Failure> {
        let reported = std::env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty());
        let token = reported.map(|token| token.trim().to_owned());
        match token {
            Some(token) if !is_token(&token) => {
                Err(Failure::Usage(format!("{TOKEN_VARIABLE} contains no token")))
            }
            token => Ok(token.map(|token| Self { token, run: None })),
        }
    }

    fn read(file: &Path) -> Result<Self, Failure> {
        let text =
            fs::read_to_string(file).map_err(|error| Failure::of_file("read", file, &error))?;
        let run: Option<RunFile> = serde_json::from_str(&text).ok();
        let token = run.as_ref().map_or(text.trim(), |run| &run.token).to_owned();
        if !is_token(&token) {
            return Err(Failure::Usage(format!("{} contains no token", file.display())));
        }
        Ok(Self { token, run })
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests;
