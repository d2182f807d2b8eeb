//! One logical unit as a host is told of it, in the words of each peer.

use anyhow::{Context, Result, bail};
use libiscsi::{Config, Digest};

/// The initiator that the tests use.
pub const INITIATOR: &str = "iqn.2026-01.com.example:peer-1";
/// An initiator that no host has.
pub const STRANGER: &str = "iqn.2026-01.com.example:stranger";

/// A second initiator of the same host, for tests that need two.
pub fn second(initiator: &str) -> String {
    format!("{initiator}-second")
}

/// A logical unit behind a portal.
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
    /// Whether a header digest is asked for.
    pub digest: bool,
}

impl Target {
    /// The logical unit `lun` of the one target that a portal tells of.
    pub fn discovered(portal: String, lun: u16) -> Result<Self> {
        let (name, initiator) = (String::new(), INITIATOR.to_owned());
        let mut target = Self { portal, name, lun, initiator, chap: None, digest: false };
        let found = libiscsi::discover(&target.config())?;
        target.name = found.first().context("discovery found no target")?.name.clone();
        Ok(target)
    }

    /// Reads `iscsi://address:port/target/lun`.
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

    /// The URL that libiscsi's tools take.
    pub fn url(&self) -> String {
        let digest = if self.digest { "?header_digest=crc32c" } else { "" };
        format!("{}/{}/{}{digest}", self.portal_url(), self.name, self.lun)
    }

    /// The URL without the target: for discovery.
    pub fn portal_url(&self) -> String {
        match &self.chap {
            Some((user, secret)) => format!("iscsi://{user}%{secret}@{}", self.portal),
            None => format!("iscsi://{}", self.portal),
        }
    }

    /// The image name that qemu's tools take.
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

    /// Whether nobody listens at its portal. libiscsi says no more than that it can't connect.
    pub fn refuses(&self) -> bool {
        let connected = std::net::TcpStream::connect(&self.portal);
        connected.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused)
    }

    /// What our binding of libiscsi takes.
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

    /// The same logical unit, reached by another initiator.
    pub fn as_initiator(&self, initiator: &str) -> Self {
        Self { initiator: initiator.to_owned(), ..self.clone() }
    }

    /// Another logical unit of the same target.
    pub fn with_lun(&self, lun: u16) -> Self {
        Self { lun, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_portal_refuses_where_nobody_listens() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let portal = listener.local_addr().unwrap();
        let target = Target::from_url(&format!("iscsi://{portal}/iqn.2026-11.a:b/1")).unwrap();
        assert!(!target.refuses());
        drop(listener);
        assert!(target.refuses());
    }
}
