//! Snapshots of volumes.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::volumes::Source;
use super::{Array, Page, Part, Refusal, first, with_part};

/// A snapshot of a volume.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Snapshot {
    /// Its id, which never changes: the CSI's id of the snapshot.
    pub id: String,
    /// When it was made, in milliseconds since 1970.
    #[serde(rename = "created")]
    pub created_ms: u64,
    /// The size of the volume then, in bytes.
    #[serde(rename = "provisioned")]
    pub size_bytes: u64,
    /// Whether it is destroyed, and waits for its eradication.
    pub destroyed: bool,
    /// Its volume.
    pub source: Source,
}

/// Which snapshots are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnapshotQuery<'a> {
    /// Those of all volumes that the driver made.
    Own,
    /// Those of one volume.
    OfVolume(&'a str),
}

impl Array {
    /// The snapshot with this id, destroyed ones too; `None` if there is none.
    ///
    /// # Errors
    /// Why the array does not say.
    pub async fn snapshot(&self, id: &str) -> Result<Option<Snapshot>, Refusal> {
        self.by_id("volume-snapshots", id).await
    }

    /// The snapshots, of any volume, that have one of these suffixes, and those destroyed of them.
    ///
    /// # Errors
    /// Why the array does not say.
    pub async fn snapshots_named(
        &self,
        suffixes: &[String],
    ) -> Result<Vec<NamedSnapshot>, Refusal> {
        let any: Vec<_> = suffixes.iter().map(|suffix| format!("name='*.{suffix}'")).collect();
        self.all("volume-snapshots", &[("filter", &any.join(" or "))]).await
    }

    /// A page of snapshots that are not destroyed.
    ///
    /// # Errors
    /// Why the array does not say.
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

    /// Makes a snapshot.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn create_snapshot(&self, volume: &str, suffix: &str) -> Result<Snapshot, Refusal> {
        let query = [("source_ids", volume)];
        let body = json!({ "suffix": suffix });
        first(self.send(Method::POST, "volume-snapshots", &query, &body).await?)
    }

    /// Destroys a snapshot: it can be recovered until the array eradicates it.
    ///
    /// # Errors
    /// Why it is refused.
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
    /// What distinguishes it from others of its volume.
    pub suffix: String,
    /// The snapshot.
    #[serde(flatten)]
    pub snapshot: Snapshot,
}
