//! Snapshots of volumes.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::volumes::Source;
use super::{Array, Page, Part, Refusal, first, with_part};

/// A snapshot of a volume.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Snapshot {
    /// Its id, which never changes, and which CSI uses as the snapshot's id.
    pub id: String,
    /// The time of creation, in milliseconds since 1970.
    #[serde(rename = "created")]
    pub created_ms: u64,
    /// The size of the volume then, in bytes.
    #[serde(rename = "provisioned")]
    pub size_bytes: u64,
    /// Whether it is destroyed, and awaits eradication.
    pub destroyed: bool,
    /// Its volume.
    pub source: Source,
}

/// The requested snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotQuery<'a> {
    /// Those of all volumes that the driver created.
    Own,
    /// Those of one volume.
    OfVolume(&'a str),
}

impl Array {
    /// Returns the snapshot with this id, even if destroyed; `None` if there is none.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, Refusal> {
        self.by_id("volume-snapshots", id).await
    }

    /// Returns the snapshots, of any volume, that have one of these suffixes, including destroyed
    /// ones.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn snapshots_named(
        &self,
        suffixes: &[String],
    ) -> Result<Vec<NamedSnapshot>, Refusal> {
        let any: Vec<_> = suffixes.iter().map(|suffix| format!("name='*.{suffix}'")).collect();
        self.all("volume-snapshots", &[("filter", &any.join(" or "))]).await
    }

    /// Returns a page of snapshots that are not destroyed.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn snapshots(
        &self,
        which: &SnapshotQuery<'_>,
        part: &Part,
    ) -> Result<Page<Snapshot>, Refusal> {
        let (filter, limit) = (format!("name='{}*'", self.prefix), part.limit.to_string());
        let only = match which {
            SnapshotQuery::Own => ("filter", filter.as_str()),
            SnapshotQuery::OfVolume(id) => ("source_ids", *id),
        };
        let query = [only, ("destroyed", "false")];
        self.get("volume-snapshots", &with_part(&query, part, &limit)).await
    }

    /// Creates a snapshot.
    ///
    /// # Errors
    /// Why the array refused.
    pub async fn create_snapshot(&self, volume: &str, suffix: &str) -> Result<Snapshot, Refusal> {
        let query = [("source_ids", volume)];
        let body = json!({ "suffix": suffix });
        first(self.send(Method::POST, "volume-snapshots", &query, &body).await?)
    }

    /// Destroys a snapshot: it can be recovered until the array eradicates it.
    ///
    /// # Errors
    /// Why the array refused.
    pub async fn destroy_snapshot(&self, id: &str) -> Result<(), Refusal> {
        let (query, body) = ([("ids", id)], json!({ "destroyed": true }));
        match self.send::<Snapshot>(Method::PATCH, "volume-snapshots", &query, &body).await {
            Err(refusal) if refusal.is_unknown_id() => Ok(()),
            done => done.map(drop),
        }
    }
}

/// A snapshot with its suffix.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct NamedSnapshot {
    /// The part of its name after the volume's name.
    pub suffix: String,
    /// The snapshot.
    #[serde(flatten)]
    pub snapshot: Snapshot,
}
