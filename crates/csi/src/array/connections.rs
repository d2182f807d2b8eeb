//! Hosts, and their connections to volumes.

use std::collections::HashMap;

use reqwest::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Array, NAMES_MAX, Refusal, first};
use crate::context::Chap;

/// A host.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Host {
    /// The name of the host on the array.
    pub name: String,
    /// Its iSCSI names.
    pub iqns: Vec<String>,
}

/// A connection of a volume to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// The host's name; `None` if it is a host group without hosts.
    pub host: Option<String>,
    /// Whether it is a connection of the host's group, by which all its hosts see the volume.
    pub is_shared: bool,
    /// The LUN at which the host sees it.
    pub lun: u16,
    /// The id of the volume.
    pub volume_id: String,
}

/// The target to which hosts log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The iSCSI name of the target.
    pub iqn: String,
    /// Its addresses, as `ADDRESS:PORT`.
    pub portals: Vec<String>,
}

#[derive(Deserialize)]
struct Named {
    name: Option<String>,
}

#[derive(Deserialize)]
struct Identified {
    id: Option<String>,
}

#[derive(Deserialize)]
struct Row {
    host: Named,
    host_group: Named,
    lun: u16,
    volume: Identified,
}

impl From<Row> for Connection {
    fn from(row: Row) -> Self {
        Self {
            host: row.host.name,
            is_shared: row.host_group.name.is_some(),
            lun: row.lun,
            volume_id: row.volume.id.unwrap_or_default(),
        }
    }
}

impl Array {
    /// Returns the host with this initiator name; `None` if there is none.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn host_of(&self, initiator: &str) -> Result<Option<Host>, Refusal> {
        let filter = format!("iqns='{initiator}'");
        let hosts: Vec<Host> = self.all("hosts", &[("filter", &filter)]).await?;
        let has = |host: &Host| host.iqns.iter().any(|iqn| iqn.eq_ignore_ascii_case(initiator));
        Ok(hosts.into_iter().find(has))
    }

    /// Creates a host. It is no error if it was created meanwhile: look it up then.
    ///
    /// # Errors
    /// Why the array refused.
    pub async fn create_host(&self, name: &str, initiator: &str) -> Result<(), Refusal> {
        let body = json!({ "iqns": [initiator] });
        match self.send::<Host>(Method::POST, "hosts", &[("names", name)], &body).await {
            Err(refusal) if refusal.says("Host already exists.") => Ok(()),
            done => done.map(drop),
        }
    }

    /// Sets the credentials of a host, and of the array towards it.
    ///
    /// # Errors
    /// Why the array refused.
    pub async fn set_chap(&self, host: &str, chap: &Chap) -> Result<(), Refusal> {
        let (target_user, target_password) = match &chap.target {
            Some((user, password)) => (user.as_str(), json!(password)),
            None => ("", json!("")),
        };
        let body = json!({ "chap": {
            "host_user": chap.user,
            "host_password": chap.password,
            "target_user": target_user,
            "target_password": target_password,
        } });
        self.send::<Host>(Method::PATCH, "hosts", &[("names", host)], &body).await.map(drop)
    }

    /// Returns the connections of volumes, by volume id.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn connections(&self, volumes: &[&str]) -> Result<Vec<Connection>, Refusal> {
        let mut all = Vec::new();
        for volumes in volumes.chunks(NAMES_MAX) {
            let rows: Vec<Row> =
                self.all("connections", &[("volume_ids", &volumes.join(","))]).await?;
            all.extend(rows.into_iter().map(Connection::from));
        }
        Ok(all)
    }

    /// Returns the initiator names of hosts, by host name.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn initiators(
        &self,
        hosts: &[&str],
    ) -> Result<HashMap<String, Vec<String>>, Refusal> {
        let mut all = HashMap::new();
        for hosts in hosts.chunks(NAMES_MAX) {
            let found: Vec<Host> = self.all("hosts", &[("names", &hosts.join(","))]).await?;
            all.extend(found.into_iter().map(|host| (host.name, host.iqns)));
        }
        Ok(all)
    }

    /// Connects a volume to a host. It is no error if it was connected meanwhile.
    ///
    /// # Errors
    /// Why the array refused.
    pub async fn connect(&self, volume: &str, host: &str) -> Result<(), Refusal> {
        let query = [("volume_ids", volume), ("host_names", host)];
        match self.send::<Value>(Method::POST, "connections", &query, &json!({})).await {
            Err(refusal) if refusal.says("Connection already exists.") => Ok(()),
            done => done.map(drop),
        }
    }

    /// Disconnects a volume from a host. It is no error if it is not connected.
    ///
    /// # Errors
    /// Why the array refused.
    pub async fn disconnect(&self, volume: &str, host: &str) -> Result<(), Refusal> {
        let query = [("volume_ids", volume), ("host_names", host)];
        match self.send::<Value>(Method::DELETE, "connections", &query, &()).await {
            Err(refusal) if refusal.says("Connection does not exist.") => Ok(()),
            Err(refusal) if refusal.is_unknown_id() => Ok(()),
            done => done.map(drop),
        }
    }

    /// Returns the target to which hosts log in.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn target(&self) -> Result<Target, Refusal> {
        #[derive(Deserialize)]
        struct Port {
            iqn: Option<String>,
            portal: Option<String>,
        }
        let ports = self.get::<Port>("ports", &[]).await?;
        let mut iqn = None;
        let mut portals = Vec::new();
        for port in ports.items {
            iqn = iqn.or(port.iqn);
            portals.extend(port.portal);
        }
        first(super::Page { items: Vec::from_iter(iqn), next: None })
            .map(|iqn| Target { iqn, portals })
    }
}
