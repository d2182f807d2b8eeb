//! Names for objects salvaged from a damaged pool: from the part of the key-value space that can
//! still be read. [`crate::Array::open`] refuses a pool for one bad record; this skips the record.

use std::collections::{BTreeMap, HashMap};

use block::{SectorCount, VolumeId};

use crate::objects::groups::GroupId;
use crate::objects::snapshots::SnapshotRecord;
use crate::objects::volumes::VolumeRecord;
use crate::record::{self, Stored};

/// The known attributes of a volume or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SalvagedObject {
    /// Its name, which can be used as a file name.
    pub name: String,
    /// Its size.
    pub size: SectorCount,
    /// Whether it is a snapshot.
    pub snapshot: bool,
    /// Whether it was destroyed and not yet eradicated.
    pub destroyed: bool,
}

/// Everything that is known about volumes and snapshots.
#[derive(Clone, Debug, Default)]
pub struct SalvagedObjects {
    /// The volumes and snapshots, by id.
    pub objects: BTreeMap<VolumeId, SalvagedObject>,
    /// The array's own volume, which holds no user data.
    pub token_volume: Option<VolumeId>,
    /// The latest time in any record, in milliseconds since 1970.
    pub newest_ms: Option<u64>,
    /// The number of unreadable records.
    pub unread: u64,
}

/// Reads the records.
pub fn salvaged_objects<'a>(
    records: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    pool_id: &[u8; 16],
) -> SalvagedObjects {
    let mut found = SalvagedObjects::default();
    let mut volumes: BTreeMap<VolumeId, VolumeRecord> = BTreeMap::new();
    let mut snapshots: Vec<(VolumeId, SnapshotRecord, Option<String>)> = Vec::new();
    let mut groups: HashMap<GroupId, String> = HashMap::new();
    for (key, value) in records {
        let mut seen = |ms: u64| found.newest_ms = found.newest_ms.max(Some(ms));
        match record::decode(key, value, pool_id) {
            Ok(Stored::Volume(volume)) => {
                seen(volume.created_ms);
                volumes.insert(volume.id, volume);
            }
            Ok(Stored::Snapshot(id, snapshot, group)) => {
                seen(snapshot.created_ms);
                snapshots.push((id, snapshot, group.map(|name| name.to_string())));
            }
            Ok(Stored::Group(id, group)) => {
                seen(group.created_ms);
                groups.insert(id, group.name.to_string());
            }
            Ok(Stored::Audit(entry)) => seen(entry.deed.time_ms),
            Ok(Stored::TokenVolume(id)) => found.token_volume = Some(id),
            Ok(_) => {}
            Err(_) => found.unread += 1,
        }
    }
    for (id, snapshot, group) in snapshots {
        let volume = volumes.get(&snapshot.source);
        let source = match volume {
            Some(volume) => volume.name.to_string(),
            None => format!("volume-{}", snapshot.source.0),
        };
        let group = snapshot.group.and_then(|id| groups.get(&id).cloned()).or(group);
        let suffix = &snapshot.suffix;
        let name = match group {
            Some(group) => format!("{group}.{suffix}.{source}"),
            None => format!("{source}.{suffix}"),
        };
        let ended = volume.is_some_and(|volume| volume.eradicate_ms.is_some());
        let destroyed = ended || snapshot.eradicate_ms.is_some();
        let object = SalvagedObject { name, size: snapshot.size, snapshot: true, destroyed };
        found.objects.insert(id, object);
    }
    found.objects.extend(volumes.into_iter().map(|(id, volume)| {
        let destroyed = volume.eradicate_ms.is_some();
        let name = volume.name.to_string();
        (id, SalvagedObject { name, size: volume.size, snapshot: false, destroyed })
    }));
    found
}
