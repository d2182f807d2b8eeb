//! The link between two controllers on two machines, or in two containers: the address of each, and
//! the file with the shared secret.

use std::fs::File;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use management::private;
use serde::Deserialize;
use serde_json::json;

use super::args::{Common, ServeArgs};
use super::config::Config;
use super::failure::Failure;
use super::output::show;
use crate::serve::controllers::{Addresses, Controller, Moving, Secret, Tunnel, TunnelOptions};
use crate::serve::thread_count;

/// The maximum size of the file of a secret.
const SECRET_FILE_BYTES_MAX: u64 = 4096;

/// `[link]` of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinkConfig {
    /// The address on which this controller listens while it has the pool.
    pub listen: Option<SocketAddr>,
    /// The address on which the other controller listens.
    pub peer: Option<SocketAddr>,
    /// The file with the shared secret.
    pub secret_file: Option<PathBuf>,
    /// Addresses that move between the machines, each with its interface (`ADDR@INTERFACE`).
    pub addresses: Vec<String>,
}

/// Returns the link over the network of controller `own`, if it is configured.
pub fn tunnel(
    options: &ServeArgs,
    config: &Config,
    own: Controller,
) -> Result<Option<Arc<Tunnel>>, Failure> {
    let Some((listen, peer, file)) = parts(options, &config.link)? else { return Ok(None) };
    let options = TunnelOptions {
        own,
        listen,
        peer,
        secret: read(&file)?,
        portals: options.iscsi.iter().map(|portal| (portal.controller, portal.address)).collect(),
        threads: thread_count(config.threads),
    };
    let refuse = |error| Failure::Machine(format!("no link at {listen} (--link): {error}"));
    Tunnel::start(options).map(Some).map_err(refuse)
}

/// Returns the addresses that move between the machines, if there are any.
pub fn addresses(
    options: &ServeArgs,
    config: &Config,
    own: Controller,
) -> Result<Option<Arc<Addresses>>, Failure> {
    let moving = moving(options, &config.link, own).map_err(Failure::Usage)?;
    if moving.is_empty() {
        return Ok(None);
    }
    let refuse = |error| Failure::Machine(format!("--link-addresses: {error}"));
    Addresses::start(moving).map(Some).map_err(refuse)
}

/// Returns the moving addresses of the command line, otherwise of the configuration.
fn moving(
    options: &ServeArgs,
    config: &LinkConfig,
    own: Controller,
) -> Result<Vec<Moving>, String> {
    let said = match options.link_addresses.is_empty() {
        true => &config.addresses,
        false => &options.link_addresses,
    };
    let links = [options.link.or(config.listen), options.link_peer.or(config.peer)];
    let mut all: Vec<Moving> = Vec::new();
    for text in said {
        let parts = text.split_once('@').and_then(|(at, to)| Some((at.parse().ok()?, to)));
        let (address, interface): (IpAddr, &str) =
            parts.ok_or_else(|| format!("{text:?} is not ADDR@INTERFACE (--link-addresses)"))?;
        let refuse = |why: &str| Err(format!("--link-addresses: {address} {why}"));
        let of = options.iscsi.iter().filter(|portal| portal.address.ip() == address);
        let mut of: Vec<Controller> = of.map(|portal| portal.controller).collect();
        of.dedup();
        let is_own = match of[..] {
            [one] => one == own,
            [] => return refuse("is not the address of a portal (--iscsi)"),
            _ => return refuse("has portals of both controllers"),
        };
        if links.iter().flatten().any(|link| link.ip() == address) {
            return refuse("is the address of the link, which can't move");
        }
        if interface.is_empty() || all.iter().any(|other| other.address == address) {
            return refuse("needs the name of one interface");
        }
        all.push(Moving { address, interface: interface.to_owned(), is_own });
    }
    if !all.is_empty() && links.contains(&None) {
        return Err("--link-addresses needs a link: add --link, --link-peer, --link-secret".into());
    }
    Ok(all)
}

/// Returns whether a link over the network is configured.
pub fn is_wanted(options: &ServeArgs, config: &Config) -> bool {
    options.link.is_some() || config.link != LinkConfig::default()
}

/// Returns both addresses and the file of the secret, each from the command line, otherwise from
/// the configuration: all of them or none.
fn parts(
    options: &ServeArgs,
    config: &LinkConfig,
) -> Result<Option<(SocketAddr, SocketAddr, PathBuf)>, Failure> {
    let listen = options.link.or(config.listen);
    let peer = options.link_peer.or(config.peer);
    let file = options.link_secret.clone().or_else(|| config.secret_file.clone());
    let why = match (listen, peer, file) {
        (None, None, None) => return Ok(None),
        (Some(listen), Some(peer), _) if listen.port() == 0 || peer.port() == 0 => {
            "each controller needs to know the other one's port"
        }
        (Some(listen), Some(peer), _) if listen == peer => {
            "--link is the address of this controller, and --link-peer that of the other one"
        }
        (_, Some(peer), _) if peer.ip().is_unspecified() => {
            "--link-peer must be an address of the other machine"
        }
        (Some(listen), Some(peer), Some(file)) => return Ok(Some((listen, peer, file))),
        _ => "a link needs all three: --link, --link-peer and --link-secret",
    };
    Err(Failure::Usage(why.into()))
}

/// Reads a secret. Anybody who can read its file could impersonate the other controller.
fn read(path: &Path) -> Result<Secret, Failure> {
    let failed = |error| Failure::of_file("read", path, &error);
    let refuse = |why: &str| Failure::Refused(format!("{}: {why}", path.display()));
    let file = File::open(path).map_err(failed)?;
    let meta = file.metadata().map_err(failed)?;
    let own = rustix::process::geteuid().as_raw();
    if !meta.is_file() || !(meta.uid() == own || meta.uid() == 0) || meta.mode() & 0o077 != 0 {
        let why = "nobody but its owner, who runs the controller, may read or write it: chmod 600";
        return Err(refuse(why));
    }
    let mut text = String::new();
    file.take(SECRET_FILE_BYTES_MAX).read_to_string(&mut text).map_err(failed)?;
    let form = "it is not a secret for a link: holdfast controller secret FILE creates one";
    Secret::parse(&text).ok_or_else(|| refuse(form))
}

/// `controller secret`: generates a secret, and never overwrites an existing file.
pub fn make_secret(common: &Common, path: &Path) -> Result<(), Failure> {
    write_secret(path)?;
    show(common.form, &json!({ "secret_file": path }), || {
        let path = path.display();
        format!("Wrote {path}: copy it to the other machine, where nobody else may read it\n")
    })
}

fn write_secret(path: &Path) -> Result<(), Failure> {
    if path.symlink_metadata().is_ok() {
        let text = format!("{} already exists, and was not changed", path.display());
        return Err(Failure::Refused(text));
    }
    let mut bytes = [0; 32];
    sys::entropy(&mut bytes).map_err(|error| Failure::Machine(error.to_string()))?;
    let text = Secret::of(bytes).to_text();
    private::write(path, text.as_bytes(), private::SECRET)
        .map_err(|error| Failure::of_file("write", path, &error))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn said(words: &str) -> ServeArgs {
        Line::parse_from(["serve"].into_iter().chain(words.split_whitespace())).serve
    }

    const ALL: &str = "--link 192.0.2.1:1 --link-peer 192.0.2.2:1 --link-secret /f";

    #[test]
    fn a_link_needs_all_its_options() {
        let config = LinkConfig::default();
        assert!(parts(&said(""), &config).unwrap().is_none());
        let (listen, peer, file) = parts(&said(ALL), &config).unwrap().unwrap();
        let reported = (listen.to_string(), peer.to_string(), file.display().to_string());
        assert_eq!(reported, ("192.0.2.1:1".into(), "192.0.2.2:1".into(), "/f".into()));
        for (words, why) in [
            ("--link 192.0.2.1:1", "all three"),
            ("--link-secret /f", "all three"),
            (
                "--link 192.0.2.1:0 --link-peer 192.0.2.2:1 --link-secret /f",
                "know the other one's port",
            ),
            ("--link 192.0.2.1:1 --link-peer 192.0.2.1:1 --link-secret /f", "that of the other"),
            ("--link 0.0.0.0:1 --link-peer 0.0.0.0:2 --link-secret /f", "of the other machine"),
        ] {
            let reported = parts(&said(words), &config).unwrap_err().to_string();
            assert!(reported.contains(why), "{words}: {reported}");
        }
    }

    #[test]
    fn moving_addresses_have_portals_of_one_controller_and_are_not_the_links() {
        const PORTALS: &str = "--iscsi 192.0.2.11:1,192.0.2.12:1,ct1=192.0.2.13:1,ct1=192.0.2.12:2";
        let of = |words: &str| {
            let said = said(&format!("{PORTALS} {words}"));
            moving(&said, &LinkConfig::default(), Controller::Ct1)
        };
        let both = of(&format!("{ALL} --link-addresses 192.0.2.11@a,192.0.2.13@b")).unwrap();
        let reported: Vec<_> = both.iter().map(|it| (it.is_own, it.interface.as_str())).collect();
        assert_eq!(reported, [(false, "a"), (true, "b")]);
        assert!(of("").unwrap().is_empty());
        for (words, why) in [
            ("--link-addresses 192.0.2.11@a", "needs a link"),
            ("--link-addresses 192.0.2.11", "not ADDR@INTERFACE"),
            ("--link-addresses here@a", "not ADDR@INTERFACE"),
            ("--link-addresses 192.0.2.9@a", "not the address of a portal"),
            ("--link-addresses 192.0.2.12@a", "portals of both"),
            ("--link-addresses 192.0.2.11@", "the name of one interface"),
            ("--link-addresses 192.0.2.11@a,192.0.2.11@b", "the name of one interface"),
            ("--link 192.0.2.11:3 --link-addresses 192.0.2.11@a", "address of the link"),
        ] {
            let reported = of(words).unwrap_err();
            assert!(reported.contains(why), "{words}: {reported}");
        }
    }

    #[test]
    fn options_override_the_link_in_the_configuration() {
        let of = "[link]\nlisten = \"192.0.2.1:1\"\npeer = \"192.0.2.2:1\"\nsecret_file = \"/g\"\n";
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), of).unwrap();
        let config = Config::load(Some(file.path())).unwrap();
        assert!(is_wanted(&said(""), &config) && !is_wanted(&said(""), &Config::default()));
        let (listen, _, secret) =
            parts(&said("--link 192.0.2.3:1"), &config.link).unwrap().unwrap();
        assert_eq!((listen.to_string(), secret), ("192.0.2.3:1".into(), "/g".into()));
    }

    #[test]
    fn a_secret_file_must_be_private_and_is_never_overwritten() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        write_secret(&path).unwrap();
        let before = fs::read(&path).unwrap();
        assert!(write_secret(&path).is_err() && fs::read(&path).unwrap() == before);
        read(&path).unwrap();
        for mode in [0o640, 0o604, 0o620] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            assert!(read(&path).unwrap_err().to_string().contains("chmod 600"));
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        for text in ["", "password", &"0".repeat(63), &"0".repeat(66), &"g".repeat(64)] {
            fs::write(&path, text).unwrap();
            assert!(read(&path).unwrap_err().to_string().contains("controller secret"), "{text}");
        }
        assert!(read(directory.path()).is_err());
        assert!(read(&directory.path().join("none")).is_err());
    }
}
