//! Records of the array's objects that may be invalid: damaged JSON, or contradictions between
//! objects. An array either refuses them, or serves, changes and stores the objects.
//!
//! An input is a list of records: kind and ids of the key, then the value. Values are separated by
//! newlines, so that a dictionary of JSON helps.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use array::{Array, HostChange, InitiatorName, VolumeName};
use block::{SectorCount, VolumeId};

use crate::backing::MemoryStore;
use crate::input::{Input, Script};

/// The maximum number of records of an input.
const RECORDS_MAX: usize = 24;

type Pairs = BTreeMap<Vec<u8>, Vec<u8>>;

/// Returns an id, mostly one of few, so that records refer to each other.
fn id(input: &mut Input<'_>) -> u64 {
    match input.u8() {
        0xff => u64::MAX,
        0xfe => input.u64(),
        0xfd => u64::MAX >> 24,
        few => u64::from(few & 3) + 1,
    }
}

/// Returns a key of a known kind, or any key.
fn key(input: &mut Input<'_>) -> Vec<u8> {
    let ids = match input.u8() % 8 {
        0 => return b"s".to_vec(),
        1 | 2 => (b'v', vec![id(input)]),
        3 | 4 => (b'h', vec![id(input)]),
        5 => (b'c', vec![id(input), id(input)]),
        6 if input.coin() => (b'g', vec![id(input)]),
        6 => (b'n', vec![id(input)]),
        _ => {
            let len = input.below(24);
            return input.bytes(len).to_vec();
        }
    };
    let mut key = vec![ids.0];
    ids.1.iter().for_each(|id| key.extend_from_slice(&id.to_be_bytes()));
    key
}

/// Returns the volumes and snapshots to which the records refer; some are missing.
fn volumes(pairs: &Pairs, missing: u8) -> HashMap<VolumeId, (SectorCount, bool)> {
    let ids = pairs.keys().filter_map(|key| Some((key.first()?, key.get(1..9)?)));
    ids.filter(|(kind, _)| matches!(**kind, b'v' | b'n'))
        .filter_map(|(kind, id)| Some((kind, u64::from_be_bytes(id.try_into().ok()?))))
        .filter(|(_, id)| missing != *id as u8)
        .map(|(kind, id)| (VolumeId(id), (SectorCount(2048), *kind == b'n')))
        .collect()
}

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let missing = input.u8();
    let mut pairs = Pairs::new();
    for _ in 0..RECORDS_MAX {
        if input.is_empty() {
            break;
        }
        let key = key(&mut input);
        pairs.insert(key, input.content());
    }
    let volumes = volumes(&pairs, missing);
    let backing = Arc::new(MemoryStore::new(pairs, volumes, u64::MAX));
    let Ok(array) = Array::open(backing.clone(), false) else { return };
    use_all(&array);
    // The array must be able to read its own records, with the same result.
    let again = Array::open(backing, false).expect("an array reads what it has written");
    assert_eq!(again.counts(), array.counts());
    assert_eq!(again.settings(), array.settings());
    assert_eq!(again.volumes(None, false, 100), array.volumes(None, false, 100));
    assert_eq!(again.hosts(None, 100), array.hosts(None, 100));
}

/// Reads all objects, and changes them.
fn use_all(array: &Array) {
    let (volumes, hosts) = (array.volumes(None, false, 100), array.hosts(None, 100));
    let _ = array.connections(None, None);
    for host in &hosts {
        for name in &host.initiators {
            let _ = array.initiator(name);
            let map = array.lun_map(name);
            assert!(map.luns.keys().all(|lun| *lun <= array::LUN_MAX));
        }
        for volume in &volumes {
            if array.connect(&volume.name, &host.name, None).is_ok() {
                let _ = array.disconnect(&volume.name, &host.name);
            }
        }
    }
    if let Some(volume) = volumes.first() {
        let name = VolumeName::new("fuzz-new").expect("the name is allowed");
        let _ = array.rename_volume(&volume.name, name);
    }
    if let Some(host) = hosts.first() {
        let names = host.initiators.iter().map(String::as_str);
        let added = names.chain(["iqn.2026-01.example:new"]);
        let initiators = added.map(|name| InitiatorName::new(name).expect("it was stored"));
        let initiators = Some(initiators.collect());
        let _ = array.change_host(&host.name, HostChange { initiators, ..HostChange::default() });
    }
}

fn record(script: Script, kind: u8, ids: &[u8], value: &str) -> Script {
    script.u8(kind).raw(ids).content(value.as_bytes())
}

/// Returns valid arrays.
pub fn seeds() -> Vec<Vec<u8>> {
    let settings = concat!(
        r#"{"v":1,"name":"lab","target_name":"iqn.2026-01.example:t","#,
        r#""company_id":149574}"#
    );
    let volume = |name: &str| {
        let rest = r#""size_sectors":2048,"block_bytes":512,"company_id":149574,"created_ms":1}"#;
        format!(r#"{{"v":1,"name":"{name}",{rest}"#)
    };
    let host = r#"{"v":1,"name":"esx","initiators":["iqn.2026-01.example:a"],"created_ms":1}"#;
    let chap = concat!(
        r#"{"v":1,"name":"qemu","initiators":[],"created_ms":1,"#,
        r#""chap":{"user":"anna","secret":"twelve bytes or more"},"#,
        r#""chap_target":{"user":"array","secret":"another good secret"}}"#
    );
    let start = record(Script::new().u8(0), 0, &[], settings);
    let one = record(start.clone(), 1, &[0], &volume("vm-1"));
    let two = record(one.clone(), 1, &[1], &volume("vm-2"));
    let with_host = record(two, 3, &[0], host);
    let connected = record(with_host.clone(), 5, &[0, 0], r#"{"v":1,"lun":1}"#);
    vec![
        start.done(),
        one.done(),
        with_host.done(),
        record(connected.clone(), 5, &[0, 1], r#"{"v":1,"lun":7}"#).done(),
        record(connected, 3, &[1], chap).done(),
    ]
}
