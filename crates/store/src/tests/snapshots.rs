//! Snapshots, clones and overwriting a volume: their content, their point in time, and their cost.

use super::*;
use crate::Durability;

fn change(store: &Store, volumes: Vec<VolumeChange>) {
    store.change(Change { volumes, ..Change::default() }).unwrap();
}

pub(super) fn clone_of(store: &Store, source: VolumeId, snapshot: bool) -> VolumeId {
    let id = store.allocate_volume_id();
    change(store, vec![VolumeChange::Clone { source, id, snapshot }]);
    id
}

/// Returns the costs so far: nodes ever made, and bytes of log.
fn spent(store: &Store) -> (u64, u64) {
    let writer = store.writer.lock();
    (writer.state.next_node, writer.log.bytes())
}

/// Returns the cost of an action, in nodes and bytes of log.
fn cost(store: &Store, action: impl FnOnce()) -> (u64, u64) {
    let before = spent(store);
    action();
    let after = spent(store);
    (after.0 - before.0, after.1 - before.1)
}

#[test]
fn a_snapshot_keeps_its_content_and_a_clone_diverges() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 4 * MIB);
    let (old, new) = (distinct(2048, 1), distinct(2048, 2));
    write(&store, id, 0, &old).unwrap();
    let snapshot = clone_of(&store, id, true);
    write(&store, id, 0, &new).unwrap();
    let clone = clone_of(&store, snapshot, false);
    write(&store, clone, 8, &new[..4096]).unwrap();
    let check = |store: &Store| {
        assert!(read(store, id, 0, 2048) == new);
        assert!(read(store, snapshot, 0, 2048) == old);
        assert!(read(store, clone, 0, 8) == old[..4096]);
        assert!(read(store, clone, 8, 8) == new[..4096]);
        assert!(read(store, clone, 16, 2032) == old[8192..]);
        let status = store.pool_status();
        assert_eq!((status.volume_count, status.snapshot_count), (2, 1));
        assert_eq!(status.provisioned_bytes, 8 * MIB * 512);
        assert_eq!(status.mapped_bytes, 2 << 20);
        assert_sound(store);
    };
    check(&store);
    drop(store);
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    check(&store);
    store.checkpoint().unwrap();
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    check(&store);
    // Deleting the last volume that references a block frees it.
    change(&store, vec![VolumeChange::Destroy { id }, VolumeChange::Destroy { id: clone }]);
    while store.housekeep() {}
    assert_eq!(store.pool_status().data_bytes, 1 << 20);
    assert!(read(&store, snapshot, 0, 2048) == old);
    change(&store, vec![VolumeChange::Destroy { id: snapshot }]);
    while store.housekeep() {}
    assert_eq!(store.pool_status().data_bytes, 0);
    assert_sound(&store);
}

#[test]
fn nothing_changes_a_snapshot() {
    let (_disk, store) = pool(1 << 30);
    let id = volume(&store, 8 * MIB);
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    let snapshot = clone_of(&store, id, true);
    let range = SectorRange::new(0, 8);
    let data = || DataOut::from_bytes(&[1; 4096], 0);
    let refused = VolumeError::Snapshot(snapshot);
    let requests = [
        VolumeRequest::Write { volume: snapshot, range, data: data(), fua: false },
        VolumeRequest::Zero { volume: snapshot, range, fua: false },
        VolumeRequest::Unmap { volume: snapshot, ranges: vec![range] },
        VolumeRequest::Copy { segments: vec![segment(id, 0, snapshot, 16, 8)] },
        // In a long copy of another phase the blocks are staged before the refusal, and must be
        // released.
        VolumeRequest::Copy { segments: vec![segment(id, 1, snapshot, 0, 6 * MIB)] },
    ];
    for request in requests {
        let told = format!("{request:?}");
        assert_eq!(store.execute(request).expect_err(&told), refused, "{told}");
    }
    let swap = VolumeRequest::CompareAndWrite {
        volume: snapshot,
        range,
        expected: DataOut::from_bytes(&read(&store, snapshot, 0, 8), 0),
        data: data(),
        fua: false,
        sender: None,
    };
    assert_eq!(store.execute(swap).unwrap_err(), refused);
    for forbidden in [
        VolumeChange::Resize { id: snapshot, size: SectorCount(8) },
        VolumeChange::Overwrite { source: id, destination: snapshot },
    ] {
        let volumes = vec![forbidden];
        let error = store.change(Change { volumes, ..Change::default() }).unwrap_err();
        assert!(matches!(error, crate::StoreError::Volume(VolumeError::Snapshot(_))), "{error}");
    }
    assert_eq!(read(&store, snapshot, 0, 8), distinct(8, 1));
    assert_sound(&store);
}

#[test]
fn an_overwritten_volume_has_the_size_of_its_source() {
    let (disk, store) = pool(1 << 30);
    let (small, large) = (volume(&store, 8), volume(&store, 1024 * MIB));
    write(&store, small, 0, &distinct(8, 1)).unwrap();
    write(&store, large, 1000 * MIB, &distinct(8, 2)).unwrap();
    let snapshot = clone_of(&store, large, true);
    let overwrite = |source, destination| VolumeChange::Overwrite { source, destination };
    change(&store, vec![overwrite(small, large)]);
    assert_eq!(store.volume_status(large).unwrap().size, SectorCount(8));
    assert_eq!(read(&store, large, 0, 8), distinct(8, 1));
    assert_eq!(write(&store, large, 8, &[1; 512]), Err(VolumeError::OutOfRange));
    assert_sound(&store);
    change(&store, vec![overwrite(snapshot, large), overwrite(snapshot, small)]);
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    for id in [small, large] {
        assert_eq!(store.volume_status(id).unwrap().size, SectorCount(1024 * MIB));
        assert_eq!(read(&store, id, 1000 * MIB, 8), distinct(8, 2));
    }
    assert_eq!(store.pool_status().provisioned_bytes, 2 << 30);
    assert_sound(&store);
}

#[test]
fn a_change_may_not_use_a_volume_both_as_source_and_destination() {
    let (_disk, store) = pool(1 << 30);
    let (a, b) = (volume(&store, MIB), volume(&store, MIB));
    let id = store.allocate_volume_id();
    let clone = |source, id| VolumeChange::Clone { source, id, snapshot: true };
    for volumes in [
        vec![VolumeChange::Destroy { id: a }, clone(a, id)],
        vec![clone(a, id), clone(b, id)],
        vec![clone(a, b)],
        vec![clone(a, id), clone(id, a)],
        vec![VolumeChange::Overwrite { source: a, destination: a }],
        vec![
            VolumeChange::Overwrite { source: a, destination: b },
            VolumeChange::Overwrite { source: b, destination: a },
        ],
        vec![clone(VolumeId(99), id)],
    ] {
        let change = Change { volumes, ..Change::default() };
        store.change(change.clone()).expect_err(&format!("{change:?}"));
    }
    // These are not refused: all of them look at the earlier state.
    change(&store, vec![clone(a, id), VolumeChange::Overwrite { source: b, destination: a }]);
    assert_sound(&store);
}

/// Ten thousand snapshots, with a write before each: each costs what the first one cost, and holds
/// what was written before it.
#[test]
fn the_ten_thousandth_snapshot_costs_what_the_first_one_cost() {
    let (disk, store) = pool(2 << 30);
    let id = volume(&store, 64 * MIB);
    write(&store, id, 0, &distinct(64 * 8, 1)).unwrap();
    let number = |n: u64| n.to_le_bytes().repeat(64); // a pattern of 64 bits: it is data
    let mut snapshots = Vec::new();
    let mut costs = Vec::new();
    for n in 0..10_000 {
        let written = cost(&store, || write(&store, id, n % 64 * 8, &number(n)).unwrap());
        let made = cost(&store, || snapshots.push(clone_of(&store, id, true)));
        costs.push((written, made));
    }
    // A snapshot makes no node, and writes one block of log. A write after it copies the path down:
    // the root and a leaf. The first one owned both.
    assert!(costs.iter().all(|(_, made)| *made == (0, 4096)), "{:?}", costs.last());
    assert!(costs[1..].iter().all(|(written, _)| *written == costs[1].0), "{:?}", costs[1]);
    assert_eq!(costs[1].0.0, 2);
    let held = |store: &Store, n: u64| {
        assert_eq!(read(store, snapshots[n as usize], n % 64 * 8, 1), number(n), "snapshot {n}");
        if n >= 64 {
            let last = read(store, snapshots[n as usize], (n + 1) % 64 * 8, 1);
            assert_eq!(last, number(n - 63), "snapshot {n}");
        }
    };
    (0..10_000).step_by(97).for_each(|n| held(&store, n));
    store.checkpoint().unwrap();
    assert_sound(&store);
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert_eq!(store.pool_status().snapshot_count, 10_000);
    (0..10_000).step_by(997).for_each(|n| held(&store, n));
    let gone = |id: &VolumeId| VolumeChange::Destroy { id: *id };
    for some in snapshots.chunks(1_000) {
        change(&store, some.iter().map(gone).collect());
    }
    while store.housekeep() {}
    assert_eq!(store.pool_status().data_bytes, 64 * 4096);
    assert_sound(&store);
}

/// Copies, zeros and unmaps of clones and of volumes with snapshots cost what they cost elsewhere:
/// the same bytes of log, and the nodes on the path down, at any length.
#[test]
fn offloads_cost_the_same_with_snapshots() {
    let offloads = |a: VolumeId, b: VolumeId| {
        let range = SectorRange::new(256 * MIB, 256 * MIB);
        [
            VolumeRequest::Copy { segments: vec![segment(a, 0, b, 256 * MIB, 256 * MIB)] },
            VolumeRequest::Zero { volume: b, range, fua: false },
            VolumeRequest::Unmap { volume: b, ranges: vec![range] },
        ]
    };
    let run = |snapshots: usize| {
        let (_disk, store) = pool(1 << 30);
        let (a, b) = (volume(&store, 1024 * MIB), volume(&store, 1024 * MIB));
        for id in [a, b] {
            for mib in (0..512).step_by(64) {
                write(&store, id, mib * MIB, &distinct(64, mib)).unwrap();
            }
        }
        for _ in 0..snapshots {
            clone_of(&store, a, true);
            clone_of(&store, b, true);
        }
        let costs = offloads(a, b).map(|request| cost(&store, || drop(store.execute(request))));
        assert_sound(&store);
        costs
    };
    let (without, with, with_many) = (run(0), run(1), run(100));
    assert_eq!(with, with_many);
    for ((nodes, log), (nodes_with, log_with)) in without.into_iter().zip(with) {
        assert_eq!(log, log_with);
        // The root of the volume is shared, once: the first of them copies it.
        assert!(nodes_with <= nodes + 1, "{nodes_with} nodes instead of {nodes}");
    }
}

/// A writer increments one volume, then another: in no snapshot of both is the second ahead. A
/// clone, an overwritten volume and a snapshot of the same change all hold one moment.
#[test]
fn snapshots_of_a_group_are_of_one_point_in_time() {
    for durability in [Durability::Commit, Durability::Flush] {
        let disk = MemoryDisk::new(1 << 30);
        Store::create(&*disk, &[7; 64]).unwrap();
        let options = OpenOptions { durability, ..OpenOptions::default() };
        let store = Store::open(disk, options).unwrap();
        let (a, b) = (volume(&store, MIB), volume(&store, 256 * MIB));
        let count = |id, start| {
            let held = read(&store, id, start, 1);
            u64::from_le_bytes(held[..8].try_into().unwrap())
        };
        let mut groups = Vec::new();
        std::thread::scope(|scope| {
            let counting = scope.spawn(|| {
                for n in 1..2_000u64 {
                    let bytes = n.to_le_bytes().repeat(512);
                    write(&store, a, 0, &bytes).unwrap();
                    write(&store, b, 200 * MIB, &bytes).unwrap();
                }
            });
            while !counting.is_finished() {
                let ids = [(); 2].map(|()| store.allocate_volume_id());
                let made = [(a, ids[0]), (b, ids[1])];
                let clone = |(source, id)| VolumeChange::Clone { source, id, snapshot: true };
                change(&store, made.map(clone).to_vec());
                groups.push(ids);
            }
        });
        for [first, second] in &groups {
            let (first, second) = (count(*first, 0), count(*second, 200 * MIB));
            assert!(first == second || first == second + 1, "{first} in A, {second} in B");
        }
        assert!(groups.len() > 1);
        assert_sound(&store);
    }
}

/// While a volume is repeatedly overwritten by one of another size, hosts compare and write, copy
/// and write: each acknowledged request took effect before an overwrite or after it, and none
/// half-way.
#[test]
fn hosts_continue_while_a_volume_is_overwritten() {
    let (_disk, store) = pool(1 << 30);
    let (id, target) = (volume(&store, 16), volume(&store, MIB));
    let (short, long) = (volume(&store, 8), volume(&store, 2 * MIB));
    for (id, byte) in [(id, 9), (short, 1), (long, 2)] {
        write(&store, id, 0, &[byte; 4096]).unwrap();
    }
    write(&store, long, MIB, &distinct(8, 5)).unwrap();
    let zeros = || {
        let range = SectorRange::new(0, 8);
        store.execute(VolumeRequest::Zero { volume: target, range, fua: false }).unwrap();
    };
    std::thread::scope(|scope| {
        let overwriting = scope.spawn(|| {
            for source in [long, short].into_iter().cycle().take(1_000) {
                change(&store, vec![VolumeChange::Overwrite { source, destination: id }]);
            }
        });
        while !overwriting.is_finished() {
            // Only the longer source has these blocks: they are copied, or the copy is refused.
            zeros();
            let segments = vec![segment(id, MIB, target, 0, 8)];
            match store.execute(VolumeRequest::Copy { segments }) {
                Ok(_) => assert_eq!(read(&store, target, 0, 8), distinct(8, 5)),
                Err(VolumeError::OutOfRange) => {
                    assert_eq!(read(&store, target, 0, 8), vec![0; 4096]);
                }
                Err(other) => panic!("{other}"),
            }
            let swap = VolumeRequest::CompareAndWrite {
                volume: id,
                range: SectorRange::new(1, 2),
                expected: DataOut::from_bytes(&[2; 1024], 512),
                data: DataOut::from_bytes(&[3; 1024], 512),
                fua: false,
                sender: None,
            };
            match store.execute(swap) {
                Ok(_) | Err(VolumeError::Miscompare { offset_bytes: 0 }) => {}
                other => panic!("{other:?}"),
            }
            let seen = read(&store, id, 0, 8);
            let is_edge = |byte: u8| seen[0] == byte && seen[4095] == byte;
            assert!(is_edge(9) || is_edge(1) || is_edge(2), "{:?}", &seen[..2]);
        }
    });
    for (source, byte) in [(short, 1), (long, 2)] {
        assert_eq!(read(&store, source, 0, 8), vec![byte; 4096]);
    }
    assert_sound(&store);
}
