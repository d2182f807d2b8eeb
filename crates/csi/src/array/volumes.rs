//! Volumes of the array.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{Array, Page, Part, Refusal, first, with_part};

/// A volume.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Volume {
    /// Its id, which never changes, and which CSI uses as the volume's id.
    pub id: String,
    /// Its name, which may change.
    pub name: String,
    /// Its size in bytes.
    #[serde(rename = "provisioned")]
    pub size_bytes: u64,
    /// Its serial number: 24 hex digits.
    pub serial: String,
    /// Whether it is destroyed, and awaits eradication.
    pub destroyed: bool,
    /// What it was created from.
    pub source: Source,
}

/// The source of a volume or of a snapshot.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Source {
    /// The id of that volume or snapshot.
    pub id: Option<String>,
}

impl Array {
    /// Returns the volume with this id, even if destroyed; `None` if there is none.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn volume(&self, id: &str) -> Result<Option<Volume>, Refusal> {
        self.by_id("volumes", id).await
    }

    /// Returns the volumes with one of these names, even if destroyed. The names come from the
    /// driver, and need no escapes.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn volumes_named(&self, names: &[String]) -> Result<Vec<Volume>, Refusal> {
        let names: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
        self.all("volumes", &[("filter", &format!("name=({})", names.join(",")))]).await
    }

    /// Returns a page of the volumes whose names have the driver's prefix.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn volumes(&self, part: &Part) -> Result<Page<Volume>, Refusal> {
        let (filter, limit) = (format!("name='{}*'", self.prefix), part.limit.to_string());
        let query = [("filter", filter.as_str()), ("destroyed", "false")];
        self.get("volumes", &with_part(&query, part, &limit)).await
    }

    /// Creates an empty volume.
    ///
    /// # Errors
    /// Why the array refused.
    pub async fn create_volume(&self, name: &str, size_bytes: u64) -> Result<Volume, Refusal> {
        let body = json!({ "provisioned": size_bytes });
        first(self.send(Method::POST, "volumes", &[("names", name)], &body).await?)
    }

    /// Creates a volume with the data and size of another one, or of a snapshot.
    ///
    /// # Errors
    /// Why the array refused.
    pub async fn copy_volume(&self, name: &str, source_id: &str) -> Result<Volume, Refusal> {
        let body = json!({ "source": { "id": source_id } });
        first(self.send(Method::POST, "volumes", &[("names", name)], &body).await?)
    }

    /// Grows a volume. The array refuses a smaller size, because data would be lost.
    ///
    /// # Errors
    /// Why the array refused.
    pub async fn grow_volume(&self, id: &str, size_bytes: u64) -> Result<Volume, Refusal> {
        let body = json!({ "provisioned": size_bytes });
        first(self.send(Method::PATCH, "volumes", &[("ids", id)], &body).await?)
    }

    /// Destroys a volume: it can be recovered until the array eradicates it.
    ///
    /// # Errors
    /// Why the array refused.
    pub async fn destroy_volume(&self, id: &str) -> Result<(), Refusal> {
        let body = json!({ "destroyed": true });
        let query = [("ids", id)];
        match self.send::<Volume>(Method::PATCH, "volumes", &query, &body).await {
            Err(refusal) if refusal.is_unknown_id() => Ok(()),
            Err(refusal) if refusal.says("Volume has been deleted.") => Ok(()),
            done => done.map(drop),
        }
    }
}
