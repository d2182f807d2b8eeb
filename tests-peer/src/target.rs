//! A logical unit, in the form of each peer.

use anyhow::{Context, Result, bail};
use libiscsi::{Config, Digest};

/// The initiator that the tests use.
pub const INITIATOR: &str = "iqn.2026-01.com.example:peer-1";
/// An initiator that belongs to no host.
pub const STRANGER: &str = "iqn.2026-01.com.example:stranger";

/// Returns a second initiator of the same host, for tests that need two.
pub fn second(initiator: &str) -> String {
    format!("{initiator}-second")
}

/// A logical unit at a portal.
#[derive(Clone, Debug)]
pub struct Target {
    /// `address:port`.
    pub portal: String,
    /// The target's iSCSI name.
    pub name: String,
    /// The logical unit's number.
    pub lun: u16,
    /// The initiator's name.
    pub initiator: String,
    /// CHAP: user and secret.
    pub chap: Option<(String, String)>,
    /// Whether a header digest is requested.
    pub digest: bool,
}

impl Target {
    /// Returns the logical unit `lun` of the only target at a portal.
    pub fn discovered(portal: String, lun: u16) -> Result<Self> {
        let (name, initiator) = (String::new(), INITIATOR.to_owned());
        let mut target = Self { portal, name, lun, initiator, chap: None, digest: false };
        let found = libiscsi::discover(&target.config())?;
        target.name = found.first().context("discovery found no target")?.name.clone();
        Ok(target)
    }

    /// Parses `iscsi://address:port/target/lun`.
    pub fn from_url(url: &str) -> Result<Self> {
        let parts: Vec<&str> =
            url.strip_prefix("iscsi://").context("not an iscsi:// URL")?.split('/').collect();
        let [portal, name, lun] = parts[..] else {
            bail!("write iscsi://address:port/target/lun");
        };
        Ok(Self {
            portal: portal.to_owned(),
            name: name.to_owned(),
            lun: lun.parse().context("the last part is a logical unit's number")?,
            initiator: INITIATOR.to_owned(),
            chap: None,
            digest: false,
        })
    }

    /// Returns the URL for libiscsi's tools.
    pub fn url(&self) -> String {
        let digest = if self.digest { "?header_digest=crc32c" } else { "" };
        format!("{}/{}/{}{digest}", self.portal_url(), self.name, self.lun)
    }

    /// Returns the URL without the target, for discovery.
    pub fn portal_url(&self) -> String {
        match &self.chap {
            Some((user, secret)) => format!("iscsi://{user}%{secret}@{}", self.portal),
            None => format!("iscsi://{}", self.portal),
        }
    }

    /// Returns the image name for qemu's tools.
    pub fn qemu(&self) -> String {
        let mut file = serde_json::json!({
            "driver": "iscsi",
            "transport": "tcp",
            "portal": self.portal,
            "target": self.name,
            "lun": self.lun,
            "initiator-name": self.initiator,
        });
        if self.digest {
            file["header-digest"] = "crc32c".into();
        }
        format!("json:{}", serde_json::json!({ "driver": "raw", "file": file }))
    }

    /// Returns whether its portal refuses connections. libiscsi only reports that it can't
    /// connect.
    pub fn refuses(&self) -> bool {
        let connected = std::net::TcpStream::connect(&self.portal);
        connected.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    }

    /// Returns the configuration for the libiscsi wrapper.
    pub fn config(&self) -> Config {
        Config {
            portal: self.portal.clone(),
            target: self.name.clone(),
            lun: self.lun,
            initiator: self.initiator.clone(),
            chap: self.chap.clone(),
            digest: if self.digest { Digest::Crc32c } else { Digest::None },
            isid: None,
            timeout_s: 30,
        }
    }

    /// Returns the same logical unit, for another initiator.
    pub fn as_initiator(&self, initiator: &str) -> Self {
        Self { initiator: initiator.to_owned(), ..self.clone() }
    }

    /// Returns another logical unit of the same target.
    pub fn with_lun(&self, lun: u16) -> Self {
        Self { lun, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portal_without_a_listener_refuses() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let portal = listener.local_addr().unwrap();
        let target = Target::from_url(&format!("iscsi://{portal}/iqn.2026-11.a:b/1")).unwrap();
        assert!(!target.refuses());
        drop(listener);
        assert!(target.refuses());
    }
}
