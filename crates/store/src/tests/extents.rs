//! What an extent query returns, and where it stops.

use block::{LbaExtent, LbaState, VolumeRequest};

use super::*;

const TIB: u64 = 1 << 31;

fn look(store: &Store, volume: VolumeId, range: SectorRange, limit: usize) -> Vec<LbaExtent> {
    match store.execute(VolumeRequest::Extents { volume, range, limit }) {
        Ok(VolumeReply::Extents(extents)) => extents,
        other => panic!("{other:?}"),
    }
}

fn mapped(start: u64, count: u64) -> LbaExtent {
    LbaExtent { range: SectorRange::new(start, count), state: LbaState::Mapped }
}

fn hole(start: u64, count: u64) -> LbaExtent {
    LbaExtent { range: SectorRange::new(start, count), state: LbaState::Deallocated }
}

/// Returns the extents of a whole volume, and the number of queries for them.
fn look_at_all(
    store: &Store,
    volume: VolumeId,
    sectors: u64,
    limit: usize,
) -> (Vec<LbaExtent>, usize) {
    let (mut all, mut looks): (Vec<LbaExtent>, _) = (Vec::new(), 0);
    let mut left = SectorRange::new(0, sectors);
    while !left.is_empty() {
        looks += 1;
        let found = look(store, volume, left, limit);
        assert!(!found.is_empty() && found.len() <= limit);
        for extent in found {
            assert_eq!(extent.range.start, left.start, "consecutive");
            left.take_front(extent.range.count.0);
            match all.last_mut().filter(|last| last.state == extent.state) {
                Some(last) => last.range.count.0 += extent.range.count.0,
                None => all.push(extent),
            }
        }
    }
    (all, looks)
}

#[test]
fn one_query_reports_a_uniform_range_of_any_length() {
    let (_, store) = pool(1 << 30);
    let id = volume(&store, 64 * TIB);
    let all = SectorRange::new(0, 64 * TIB);
    assert_eq!(look(&store, id, all, 1), [hole(0, 64 * TIB)]);
    let part = SectorRange::new(5, TIB);
    assert_eq!(look(&store, id, part, 9), [hole(5, TIB)]);
    store.execute(VolumeRequest::Zero { volume: id, range: all, fua: false }).unwrap();
    assert_eq!(look(&store, id, all, 1), [mapped(0, 64 * TIB)]);
    store.execute(VolumeRequest::Unmap { volume: id, ranges: vec![all] }).unwrap();
    // One block in the middle: two holes beside it, and the nodes down to it.
    write(&store, id, 40 * TIB, &distinct(8, 1)).unwrap();
    let after = 40 * TIB + 8;
    let (told, looks) = look_at_all(&store, id, 64 * TIB, 100);
    assert_eq!(told, [hole(0, 40 * TIB), mapped(40 * TIB, 8), hole(after, 64 * TIB - after)]);
    assert_eq!(looks, 1);
}

#[test]
fn fully_mapped_nodes_are_reported_without_their_entries() {
    let (_, store) = pool(1 << 30);
    let id = volume(&store, TIB);
    write(&store, id, 0, &distinct(MIB, 1)).unwrap();
    let mut done = MIB;
    while done < TIB {
        store
            .execute(VolumeRequest::Copy { segments: vec![segment(id, 0, id, done, done)] })
            .unwrap();
        done *= 2;
    }
    // None of its 2^28 blocks is a hole.
    assert_eq!(look(&store, id, SectorRange::new(0, TIB), 1), [mapped(0, TIB)]);
    let ranges = vec![SectorRange::new(77 * MIB + 8, 8)];
    store.execute(VolumeRequest::Unmap { volume: id, ranges }).unwrap();
    let (told, looks) = look_at_all(&store, id, TIB, 100);
    let (from, to) = (77 * MIB + 8, 77 * MIB + 16);
    assert_eq!(told, [mapped(0, from), hole(from, 8), mapped(to, TIB - to)]);
    assert_eq!(looks, 1);
}

#[test]
fn a_search_has_a_limit_and_the_next_one_continues() {
    let (_, store) = pool(1 << 30);
    let sectors = 96 * MIB;
    let id = volume(&store, sectors);
    let range = SectorRange::new(0, sectors);
    let zeros = |range| VolumeRequest::Zero { volume: id, range, fua: false };
    store.execute(zeros(range)).unwrap();
    // Every second block is a hole.
    let blocks: Vec<_> = (0..sectors / 16).map(|n| SectorRange::new(16 * n + 8, 8)).collect();
    for ranges in blocks.chunks(512) {
        store.execute(VolumeRequest::Unmap { volume: id, ranges: ranges.to_vec() }).unwrap();
    }
    let once = look(&store, id, range, usize::MAX);
    assert_eq!(once.len(), 63 * 256, "64 nodes: the root, and leaves");
    assert_eq!(look(&store, id, range, 3), [mapped(0, 8), hole(8, 8), mapped(16, 8)]);
    for limit in [7, 1000, usize::MAX] {
        let (told, _) = look_at_all(&store, id, sectors, limit);
        assert_eq!(told.len() as u64, sectors / 8);
        assert!(told.iter().enumerate().all(|(n, extent)| {
            *extent == if n % 2 == 0 { mapped(8 * n as u64, 8) } else { hole(8 * n as u64, 8) }
        }));
    }
    // From the middle of a block to the middle of another.
    let part = SectorRange::new(sectors / 2 + 3, 17);
    let at = sectors / 2;
    assert_eq!(look(&store, id, part, 9), [mapped(at + 3, 5), hole(at + 8, 8), mapped(at + 16, 4)]);
}
