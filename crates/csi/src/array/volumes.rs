//! Volumes of the array.

use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::{Array, Page, Part, Refusal, first, with_part};

/// A volume.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub struct Volume {
    /// Its id, which never changes: the CSI's id of the volume.
    pub id: String,
    /// Its name, which may change.
    pub name: String,
    /// Its size in bytes.
    #[serde(rename = "provisioned")]
    pub size_bytes: u64,
    /// Its serial number: 24 hex digits.
    pub serial: String,
    /// Whether it is destroyed, and waits for its eradication.
    pub destroyed: bool,
    /// What it was made from.
    pub source: Source,
}

/// What a volume was made from, or a snapshot is of.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
pub struct Source {
    /// The id of that volume or snapshot.
    pub id: Option<String>,
}

impl Array {
    /// The volume with this id, destroyed ones too; `None` if there is none.
    ///
    /// # Errors
    /// Why the array does not say.
    pub async fn volume(&self, id: &str) -> Result<Option<Volume>, Refusal> {
        self.by_id("volumes", id).await
    }

    /// The volumes with one of these names, destroyed ones too. The names are of the driver, and
    /// need no escapes.
    ///
    /// # Errors
    /// Why the array does not say.
    pub async fn volumes_named(&self, names: &[String]) -> Result<Vec<Volume>, Refusal> {
        let names: Vec<_> = names.iter().map(|name| format!("'{name}'")).collect();
        self.all("volumes", &[("filter", &format!("name=({})", names.join(",")))]).await
    }

    /// A page of the volumes whose names have the driver's prefix.
    ///
    /// # Errors
    /// Why the array does not say.
    pub async fn volumes(&self, part: &Part) -> Result<Page<Volume>, Refusal> {
        let (filter, limit) = (format!("name='{}*'", self.prefix), part.limit.to_string());
        let query = [("filter", filter.as_str()), ("destroyed", "false")];
        self.get("volumes", &with_part(&query, part, &limit)).await
    }

    /// Makes an empty volume.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn create_volume(&self, name: &str, size_bytes: u64) -> Result<Volume, Refusal> {
        let body = json!({ "provisioned": size_bytes });
        first(self.send(Method::POST, "volumes", &[("names", name)], &body).await?)
    }

    /// Makes a volume with the data and size of another, or of a snapshot.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn copy_volume(&self, name: &str, source_id: &str) -> Result<Volume, Refusal> {
        let body = json!({ "source": { "id": source_id } });
        first(self.send(Method::POST, "volumes", &[("names", name)], &body).await?)
    }

    /// Makes a volume larger. The array refuses a smaller size, as data would be lost.
    ///
    /// # Errors
    /// Why it is refused.
    pub async fn grow_volume(&self, id: &str, size_bytes: u64) -> Result<Volume, Refusal> {
        let body = json!({ "provisioned": size_bytes });
        first(self.send(Method::PATCH, "volumes", &[("ids", id)], &body).await?)
    }

    /// Destroys a volume: it can be recovered until the array eradicates it.
    ///
    /// # Errors
    /// Why it is refused.
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
