//! The address of a logical unit, and sessions to it.

use std::time::{Duration, Instant};

use libiscsi::{Capacity, Config, Digest, Session, Target};

/// The lab's default initiator name.
pub const INITIATOR: &str = "iqn.2025-01.example.holdfast:lab";

/// Options of the connection.
#[derive(Clone, Debug, clap::Args)]
pub struct ConnectArgs {
    /// The initiator's name.
    #[arg(long, default_value = INITIATOR)]
    pub initiator: String,
    /// Ask for a header digest (CRC32C).
    #[arg(long)]
    pub header_digest: bool,
    /// The timeout of a command, in seconds.
    #[arg(long, default_value_t = 60)]
    pub timeout_s: u32,
}

impl ConnectArgs {
    /// Returns how to connect to `url`: `iscsi://[user%secret@]address:port/target/lun`.
    pub fn config(&self, url: &str) -> Result<Config, String> {
        let mut config = parse_url(url)?;
        config.initiator.clone_from(&self.initiator);
        config.digest = if self.header_digest { Digest::Crc32c } else { Digest::None };
        config.timeout_s = self.timeout_s;
        Ok(config)
    }
}

/// Parses an iSCSI URL as libiscsi's own tools write it.
fn parse_url(url: &str) -> Result<Config, String> {
    let wrong = || format!("{url:?} is not an iSCSI URL; use iscsi://address:port/target/lun");
    let rest = url.strip_prefix("iscsi://").ok_or_else(wrong)?;
    let (login, rest) = match rest.rsplit_once('@') {
        Some((login, rest)) => (Some(login), rest),
        None => (None, rest),
    };
    let mut parts = rest.splitn(3, '/');
    let portal = parts.next().filter(|p| !p.is_empty()).ok_or_else(wrong)?;
    let target = parts.next().filter(|t| !t.is_empty()).ok_or_else(wrong)?;
    let lun = parts.next().and_then(|lun| lun.parse().ok()).ok_or_else(wrong)?;
    let chap = login.and_then(|login| login.split_once('%'));
    Ok(Config {
        portal: portal.to_owned(),
        target: target.to_owned(),
        lun,
        chap: chap.map(|(user, secret)| (user.to_owned(), secret.to_owned())),
        ..Config::default()
    })
}

/// Returns the targets of a portal.
pub fn discover(portal: &str, connect: &ConnectArgs) -> Result<Vec<Target>, String> {
    let config = Config {
        portal: portal.to_owned(),
        initiator: connect.initiator.clone(),
        timeout_s: connect.timeout_s,
        ..Config::default()
    };
    libiscsi::discover(&config).map_err(|error| format!("{portal}: {error}"))
}

/// Connects, with retries for up to `patience`: a target may be starting, or report a unit
/// attention to a new nexus.
pub fn connect(config: &Config, patience: Duration) -> Result<Session, String> {
    let start = Instant::now();
    loop {
        match Session::connect(config) {
            Ok(session) => return Ok(session),
            Err(error) if start.elapsed() >= patience => {
                return Err(format!("{} on {}: {error}", config.target, config.portal));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Opens several sessions to one logical unit, and returns its capacity. If the configuration has
/// an ISID, it is the first session's, and each further session has the next one.
pub fn connect_many(
    config: &Config,
    count: usize,
    patience: Duration,
) -> Result<(Vec<Session>, Capacity), String> {
    let mut sessions = Vec::new();
    for number in 0..count.max(1) {
        let isid = config.isid.map(|first| first.wrapping_add(number as u32));
        sessions.push(connect(&Config { isid, ..config.clone() }, patience)?);
    }
    let capacity = sessions[0].capacity().map_err(|e| e.to_string())?;
    Ok((sessions, capacity))
}

#[cfg(test)]
mod tests {
    use super::parse_url;

    #[test]
    fn urls_name_portal_target_and_lun() {
        let config = parse_url("iscsi://127.0.0.1:3260/iqn.2025-01.example:a/3").unwrap();
        assert_eq!(config.portal, "127.0.0.1:3260");
        assert_eq!(config.target, "iqn.2025-01.example:a");
        assert_eq!((config.lun, config.chap), (3, None));
        let config = parse_url("iscsi://me%it@[::1]:3260/iqn.x:a/0").unwrap();
        assert_eq!(config.chap, Some((String::from("me"), String::from("it"))));
        for wrong in ["http://a/b/0", "iscsi://a", "iscsi://a/b", "iscsi://a/b/c", "iscsi:///b/1"] {
            assert!(parse_url(wrong).is_err(), "{wrong}");
        }
    }
}
