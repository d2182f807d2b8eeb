use proptest::prelude::*;

use super::{Part, PartError, Parts, segments_left};

fn parts_of(counts: &[u32]) -> Parts {
    let mut parts = Parts::default();
    for (number, count) in counts.iter().enumerate() {
        parts.add(number as u8, *count);
    }
    parts
}

/// Returns how many segments can be opened by taking the devices with the most free parts.
fn opened_greedily(free: &[u32], shards: usize) -> u32 {
    let mut free = free.to_vec();
    for opened in 0.. {
        free.sort_by_key(|free| std::cmp::Reverse(*free));
        if free.len() < shards || free[..shards].contains(&0) {
            return opened;
        }
        free[..shards].iter_mut().for_each(|free| *free -= 1);
    }
    unreachable!("each takes parts, of which there are so many")
}

/// Returns how many can be opened by the best of all choices.
fn opened_at_best(free: &mut [u32], shards: usize, from: usize, taken: usize) -> u32 {
    if taken == shards {
        return 1 + opened_at_best(free, shards, 0, 0);
    }
    let mut best = 0;
    for device in from..free.len() {
        if free[device] > 0 {
            free[device] -= 1;
            best = best.max(opened_at_best(free, shards, device + 1, taken + 1));
            free[device] += 1;
        }
    }
    best
}

#[test]
fn a_segment_takes_the_devices_with_the_most_free_parts() {
    let mut parts = parts_of(&[2, 9, 5, 9, 5]);
    let taken = parts.allot(0, 3).unwrap();
    let part = |device, number| Part { device, number };
    assert_eq!(taken, [part(1, 1), part(2, 1), part(3, 1)]);
    // Now devices 1 and 3 have 8 each, device 4 has 5, and columns are dealt from the next one on.
    let taken = parts.allot(1, 3).unwrap();
    assert_eq!(taken, [part(3, 2), part(4, 1), part(1, 2)]);
    let taken = parts.allot(2, 5).unwrap();
    assert_eq!(taken, [part(2, 2), part(3, 3), part(4, 2), part(0, 1), part(1, 3)]);
    assert_eq!(parts.free().map(|(_, free)| free).collect::<Vec<_>>(), [1, 6, 3, 6, 3]);
}

#[test]
fn parity_rotates_over_all_devices() {
    let mut parts = parts_of(&[60; 6]);
    let mut parity_on = [0; 6];
    for segment in 0..60 {
        let taken = parts.allot(segment, 6).unwrap();
        taken[4..].iter().for_each(|part| parity_on[usize::from(part.device)] += 1);
    }
    assert_eq!(parity_on, [20; 6]);
    assert_eq!(parts.allot(60, 6), None);
}

#[test]
fn parts_are_taken_once_and_given_back_once() {
    let mut parts = parts_of(&[130]);
    let part = |number| Part { device: 0, number };
    for number in [1, 64, 65, 130] {
        assert_eq!(parts.give_back(part(number)), Err(PartError::Free(part(number))));
        assert_eq!(parts.take(part(number)), Ok(()));
        assert_eq!(parts.take(part(number)), Err(PartError::Taken(part(number))));
    }
    assert_eq!(parts.free().collect::<Vec<_>>(), [(0, 126)]);
    assert_eq!(parts.allot(0, 1).unwrap(), [part(2)]);
    assert_eq!(parts.give_back(part(1)), Ok(()));
    assert_eq!(parts.allot(0, 1).unwrap(), [part(1)]);
    for number in [0, 131] {
        assert_eq!(parts.take(part(number)), Err(PartError::None(part(number))));
        assert_eq!(parts.give_back(part(number)), Err(PartError::None(part(number))));
    }
    // It has grown, and keeps its taken parts; another one was added, and removed again.
    parts.add(0, 200);
    parts.add(0, 7);
    assert_eq!(parts.take(part(130)), Err(PartError::Taken(part(130))));
    assert_eq!(parts.take(part(200)), Ok(()));
    let other = Part { device: 9, number: 1 };
    assert_eq!(parts.take(other), Err(PartError::None(other)));
    parts.add(9, 1);
    assert_eq!(parts.take(other), Ok(()));
    parts.remove(9);
    assert_eq!(parts.give_back(other), Err(PartError::None(other)));
}

/// A lost column is rebuilt on a device where its segment has none yet.
#[test]
fn a_column_is_moved_to_a_device_without_one() {
    let mut parts = parts_of(&[5, 0, 3, 5, 1]);
    assert_eq!(parts.allot_beside(&[0, 1]), Some(Part { device: 3, number: 1 }));
    assert_eq!(parts.allot_beside(&[1]), Some(Part { device: 0, number: 1 }));
    assert_eq!(parts.allot_beside(&[0, 2, 3]), Some(Part { device: 4, number: 1 }));
    assert_eq!(parts.allot_beside(&[0, 2, 3]), None);
}

#[test]
fn the_formula_holds_for_large_numbers() {
    assert_eq!(segments_left(&[3 << 30; 36], 18), u32::MAX, "there are no more numbers");
    assert_eq!(segments_left(&[1 << 30; 36], 18), 2 << 30);
    assert_eq!(segments_left(&[u32::MAX; 18], 18), u32::MAX);
    assert_eq!(segments_left(&[u32::MAX, 1], 1), u32::MAX);
    assert_eq!(segments_left(&[], 3), 0);
}

/// For all devices with up to 3 free parts, up to 4 of them, and all widths, the formula, taking
/// those with the most free parts, and the best of all choices give the same number.
#[test]
fn the_formula_is_exact_for_small_numbers() {
    for devices in 0..=4u32 {
        for code in 0..4u32.pow(devices) {
            let mut free: Vec<u32> =
                (0..devices).map(|device| code / 4u32.pow(device) % 4).collect();
            if !free.is_sorted() {
                continue;
            }
            for shards in 1..=4 {
                let formula = segments_left(&free, shards);
                assert_eq!(formula, opened_greedily(&free, shards), "{free:?} by {shards}");
                let best = opened_at_best(&mut free, shards, 0, 0);
                assert_eq!(formula, best, "{free:?} by {shards}");
            }
        }
    }
}

proptest! {
    #[test]
    fn the_formula_matches_greedy_allocation(
        free in prop::collection::vec(0..60u32, 0..=48),
        shards in 1..=18usize,
    ) {
        prop_assert_eq!(segments_left(&free, shards), opened_greedily(&free, shards));
    }

    /// No part is in two segments, no segment has two on one device, and all that was promised was
    /// there.
    #[test]
    fn segments_are_opened_as_promised(
        counts in prop::collection::vec(0..40u32, 1..=24),
        columns in 1..=18usize,
    ) {
        let mut parts = parts_of(&counts);
        let mut seen = std::collections::HashSet::new();
        let room = parts.room(columns);
        for segment in 0..room {
            let taken = parts.allot(segment, columns).unwrap();
            prop_assert_eq!(taken.len(), columns);
            let devices: std::collections::HashSet<u8> =
                taken.iter().map(|part| part.device).collect();
            prop_assert_eq!(devices.len(), taken.len());
            for part in taken {
                prop_assert!((1..=counts[usize::from(part.device)]).contains(&part.number));
                prop_assert!(seen.insert(part));
            }
        }
        prop_assert_eq!(parts.allot(room, columns), None);
    }

    /// After anything was taken and given back, the numbers are those of a set.
    #[test]
    fn free_parts_are_a_set(
        counts in prop::collection::vec(0..200u32, 1..4),
        calls in prop::collection::vec((0..4u8, 0..210u32, any::<bool>()), 0..300),
    ) {
        let mut parts = parts_of(&counts);
        let mut taken = std::collections::HashSet::new();
        for (device, number, takes) in calls {
            let part = Part { device, number };
            let count = counts.get(usize::from(device)).copied().unwrap_or(0);
            let exists = (1..=count).contains(&number);
            let expected = match (exists, takes) {
                (false, _) => Err(PartError::None(part)),
                (_, true) => taken.insert(part).then_some(()).ok_or(PartError::Taken(part)),
                (_, false) => taken.remove(&part).then_some(()).ok_or(PartError::Free(part)),
            };
            let got = if takes { parts.take(part) } else { parts.give_back(part) };
            prop_assert_eq!(got, expected);
        }
        for (device, free) in parts.free() {
            let used = taken.iter().filter(|part| part.device == device).count();
            prop_assert_eq!(free as usize + used, counts[usize::from(device)] as usize);
        }
    }
}
