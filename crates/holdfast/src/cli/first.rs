//! The first start of `serve`, in an empty directory: it creates the pool and a first token, and
//! prints the next steps.

use std::ffi::OsStr;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use api::Token;
use array::users::BUILT_IN_USER;
use array::{Array, NewToken, TokenName};
use serde::Serialize;
use sys::wall::now_ms;

use super::args::ServeArgs;
use super::creation::{self, Size};
use super::failure::Failure;
use super::mounting;
use super::place::Places;

/// The name of the first token.
const TOKEN: &str = "first";
/// The name of the volume in the first command that is shown.
const VOLUME: &str = "data";

/// A pool that was just created.
pub struct First {
    pool: PathBuf,
    data: Vec<PathBuf>,
    size: Size,
}

/// The output of a first start, once.
#[derive(Serialize)]
pub struct Beginning {
    data: PathBuf,
    /// The files of a pool on several devices.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    devices: Vec<PathBuf>,
    capacity_bytes: u64,
    #[serde(skip)]
    size: String,
    user: &'static str,
    /// `None` if the system's log would keep it.
    token: Option<String>,
    commands: Vec<String>,
}

impl First {
    /// Creates the pool, after checking that the ports are free: a start that fails because a port
    /// is taken leaves nothing behind.
    pub fn make(places: &Places, options: &ServeArgs) -> Result<Self, Failure> {
        for portal in &options.iscsi {
            let address = portal.address;
            TcpListener::bind(address).map_err(|error| {
                Failure::Machine(format!("can't listen on {address} (--iscsi): {error}"))
            })?;
        }
        let size = creation::create(&places.all, (options.capacity, 0), false)?;
        let pool = places.first().pool.clone();
        let data = places.all.iter().map(|place| place.data.clone()).collect();
        Ok(Self { pool, data, size })
    }

    /// Creates the first token, and the next commands.
    pub fn beginning(
        &self,
        array: &Array,
        portals: &[SocketAddr],
        target: &str,
    ) -> Result<Beginning, Failure> {
        let token = match is_journal() {
            true => None,
            false => Some(token(array)?),
        };
        let commands = match portals.first() {
            Some(portal) => commands(&self.pool, *portal, target),
            None => Vec::new(),
        };
        Ok(Beginning {
            data: self.data[0].clone(),
            devices: if self.data.len() > 1 { self.data.clone() } else { Vec::new() },
            capacity_bytes: self.size.capacity_bytes,
            size: self.size.text(),
            user: BUILT_IN_USER,
            token,
            commands,
        })
    }
}

impl Beginning {
    /// Returns the first line: what was created.
    pub fn made(&self) -> String {
        let more = self.devices.iter().skip(1).map(|data| format!(", {}", data.display()));
        let (data, more) = (self.data.display(), more.collect::<String>());
        format!("Pool created: {data}{more}, {}.\n", self.size)
    }

    /// Returns the last lines: the next steps.
    pub fn next(&self, url: &str) -> String {
        let mut text = format!("\nWeb page: {url}\n");
        match &self.token {
            Some(token) => text.push_str(&format!(
                "First token, of user {}, shown this once: {token}\n",
                self.user
            )),
            None => text.push_str("Create a token for it: holdfast token create NAME\n"),
        }
        text.push_str("\nTo create a volume and mount it on this machine (Linux, open-iscsi):\n");
        self.commands.iter().for_each(|command| text.push_str(&format!("  {command}\n")));
        text
    }
}

/// Creates an API token of the built-in user and returns it; the pool stores its hash.
fn token(array: &Array) -> Result<String, Failure> {
    let mut entropy = [0; 32];
    sys::entropy(&mut entropy).map_err(|error| Failure::Machine(error.to_string()))?;
    let token = Token::of_api(&entropy);
    let name = TokenName::new(TOKEN)?;
    let (hash, created_ms) = (token.hash(), now_ms());
    array.create_token(BUILT_IN_USER, NewToken { name, hash, created_ms, expires_ms: None })?;
    Ok(token.expose().to_owned())
}

fn commands(pool: &Path, portal: SocketAddr, target: &str) -> Vec<String> {
    let sudo = if rustix::process::geteuid().is_root() { "" } else { "sudo " };
    let program = std::env::args_os().next().unwrap_or_else(|| "holdfast".into());
    let (program, pool) = (quoted(&program), quoted(pool.as_os_str()));
    let provision = format!("{sudo}{program} provision {VOLUME} --size 10G --pool {pool}");
    let device = mounting::device_by_path(portal, target, 1);
    [provision].into_iter().chain(mounting::commands(portal, &device, VOLUME)).collect()
}

/// Quotes a word for a shell.
fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.,:=@%+/-".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.into_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Returns whether the standard output goes to the system's log, which stores all output: systemd
/// passes the identity of that file to services (`systemd.exec(5)`, `JOURNAL_STREAM`).
fn is_journal() -> bool {
    let Ok(reported) = std::env::var("JOURNAL_STREAM") else { return false };
    let own = rustix::fs::fstat(std::io::stdout());
    own.is_ok_and(|own| reported == format!("{}:{}", own.st_dev, own.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beginning(token: Option<&str>) -> Beginning {
        Beginning {
            data: "/srv/pool.data".into(),
            devices: Vec::new(),
            capacity_bytes: 1 << 30,
            size: "1 GiB (x)".into(),
            user: "admin",
            token: token.map(str::to_owned),
            commands: vec!["one".into(), "two".into()],
        }
    }

    #[test]
    fn a_first_start_prints_the_next_steps() {
        let reported = beginning(Some("secret"));
        assert_eq!(reported.made(), "Pool created: /srv/pool.data, 1 GiB (x).\n");
        let text = reported.next("https://127.0.0.1:1");
        assert!(text.contains("https://127.0.0.1:1\n") && text.contains("secret"), "{text}");
        assert!(text.ends_with("  one\n  two\n"), "{text}");
        assert!(beginning(None).next("u").contains("holdfast token create"));
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        for (word, text) in
            [("a/b-1", "a/b-1"), ("a b", "'a b'"), ("it's", "'it'\\''s'"), ("", "''")]
        {
            assert_eq!(quoted(OsStr::new(word)), text);
        }
    }

    #[test]
    fn three_commands_lead_to_a_mounted_volume() {
        let commands = commands(Path::new("/srv"), "127.0.0.1:3260".parse().unwrap(), "iqn.x");
        assert_eq!(commands.len(), 3);
        assert!(commands[0].ends_with(" provision data --size 10G --pool /srv"), "{commands:?}");
        assert!(commands[2].contains("ip-127.0.0.1:3260-iscsi-iqn.x-lun-1"), "{commands:?}");
    }
}
