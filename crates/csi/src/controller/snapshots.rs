//! Snapshots.

use prost_types::Timestamp;
use tonic::Status;

use super::{ArrayController, required, signed};
use crate::array::{Refusal, Snapshot, SnapshotQuery};
use crate::names;
use crate::proto::list_snapshots_response::Entry;
use crate::proto::{self, CreateSnapshotRequest, ListSnapshotsRequest, ListSnapshotsResponse};

impl ArrayController {
    /// Creates a snapshot, or finds the one that an earlier attempt has created.
    pub(super) async fn snapshot(
        &self,
        request: &CreateSnapshotRequest,
    ) -> Result<proto::Snapshot, Status> {
        let name = required("name", &request.name)?;
        let source = required("source_volume_id", &request.source_volume_id)?;
        let suffixes = names::candidates("", name);
        let taken = self.array.snapshots_named(&suffixes).await?;
        if let Some(there) = taken.iter().find(|found| !found.snapshot.destroyed) {
            if there.snapshot.source.id.as_deref() != Some(source) {
                let text = format!("a snapshot of another volume has the name {name}");
                return Err(Status::already_exists(text));
            }
            return Ok(shown(there.snapshot.clone()));
        }
        self.volume(source).await?;
        let is_taken = |suffix: &String| taken.iter().any(|found| found.suffix == *suffix);
        let suffix = suffixes.iter().find(|suffix| !is_taken(suffix)).ok_or_else(|| {
            let text = "too many destroyed snapshots have had this name: eradicate them";
            Status::resource_exhausted(text)
        })?;
        Ok(shown(self.array.create_snapshot(source, suffix).await?))
    }

    /// Destroys a snapshot. Volumes created from it keep their data.
    pub(super) async fn delete_snapshot_by(&self, id: &str) -> Result<(), Status> {
        let found = self.array.snapshot(required("snapshot_id", id)?).await?;
        match found.is_some_and(|snapshot| !snapshot.destroyed) {
            true => Ok(self.array.destroy_snapshot(id).await?),
            false => Ok(()),
        }
    }

    /// Lists one snapshot, those of a volume, or those of all volumes that the driver created.
    pub(super) async fn snapshots(
        &self,
        request: &ListSnapshotsRequest,
    ) -> Result<ListSnapshotsResponse, Status> {
        let ListSnapshotsRequest { snapshot_id, source_volume_id, .. } = request;
        if !snapshot_id.is_empty() {
            let found = self.array.snapshot(snapshot_id).await?;
            let is_wanted = |snapshot: &Snapshot| {
                let of = snapshot.source.id.as_deref();
                !snapshot.destroyed
                    && (source_volume_id.is_empty() || of == Some(source_volume_id.as_str()))
            };
            return Ok(listed(Vec::from_iter(found.filter(is_wanted)), None));
        }
        let part = super::lists::part(request.max_entries, &request.starting_token)?;
        let which = match source_volume_id.as_str() {
            "" => SnapshotQuery::Own,
            id if self.array.volume(id).await?.is_none() => return Ok(listed(vec![], None)),
            id => SnapshotQuery::OfVolume(id),
        };
        match self.array.snapshots(&which, &part).await {
            Ok(page) => Ok(listed(page.items, page.next)),
            Err(refusal) => Err(page_refused(refusal)),
        }
    }
}

/// Translates the error of a page request.
pub(super) fn page_refused(refusal: Refusal) -> Status {
    match refusal.is_bad_token() {
        true => Status::aborted("starting_token is not one of this list: start again"),
        false => refusal.into(),
    }
}

fn listed(snapshots: Vec<Snapshot>, next: Option<String>) -> ListSnapshotsResponse {
    let entry = |snapshot| Entry { snapshot: Some(shown(snapshot)) };
    ListSnapshotsResponse {
        entries: snapshots.into_iter().map(entry).collect(),
        next_token: next.unwrap_or_default(),
    }
}

/// Converts a snapshot to the interface's form. It can be used at once.
fn shown(snapshot: Snapshot) -> proto::Snapshot {
    proto::Snapshot {
        size_bytes: signed(snapshot.size_bytes),
        snapshot_id: snapshot.id,
        source_volume_id: snapshot.source.id.unwrap_or_default(),
        creation_time: Some(Timestamp {
            seconds: signed(snapshot.created_ms / 1000),
            nanos: (snapshot.created_ms % 1000 * 1_000_000) as i32,
        }),
        ready_to_use: true,
        group_snapshot_id: String::new(),
    }
}
