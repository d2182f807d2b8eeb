//! What the controller tells a node about a published volume.

use std::collections::HashMap;

use tonic::Status;

/// Where a node finds a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishContext {
    /// The iSCSI name of the target.
    pub target: String,
    /// Its portals, as `ADDRESS:PORT`.
    pub portals: Vec<String>,
    /// The LUN of the volume.
    pub lun: u16,
    /// The volume's serial number: 24 hex digits.
    pub serial: String,
}

impl PublishContext {
    /// As the orchestrator passes it on.
    pub fn into_map(self) -> HashMap<String, String> {
        HashMap::from([
            ("target".to_owned(), self.target),
            ("portals".to_owned(), self.portals.join(",")),
            ("lun".to_owned(), self.lun.to_string()),
            ("serial".to_owned(), self.serial),
        ])
    }

    /// As the node gets it.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if something is missing.
    pub fn from_map(map: &HashMap<String, String>) -> Result<Self, Status> {
        let field = |key: &str| {
            let text = map.get(key).filter(|text| !text.is_empty());
            let missing = || Status::invalid_argument(format!("publish_context lacks {key}"));
            text.ok_or_else(missing)
        };
        let serial = field("serial")?.to_ascii_uppercase();
        if serial.len() != 24 || !serial.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(Status::invalid_argument("the serial number has 24 hex digits"));
        }
        let lun = field("lun")?.parse();
        Ok(Self {
            target: field("target")?.clone(),
            portals: field("portals")?.split(',').map(str::to_owned).collect(),
            lun: lun.map_err(|_| Status::invalid_argument("the LUN is no number"))?,
            serial,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_reads_what_the_controller_wrote() {
        let context = PublishContext {
            target: "iqn.2026-01.org.example:array".into(),
            portals: vec!["192.0.2.1:3260".into(), "[2001:db8::1]:3260".into()],
            lun: 7,
            serial: "0123456789ABCDEF00000001".into(),
        };
        let map = context.clone().into_map();
        assert_eq!(PublishContext::from_map(&map).unwrap(), context);
        for key in map.keys() {
            let mut map = map.clone();
            map.insert(key.clone(), if key == "serial" { "x".into() } else { String::new() });
            assert!(PublishContext::from_map(&map).is_err(), "{key}");
        }
    }
}
