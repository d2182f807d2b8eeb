use proptest::prelude::*;

use super::{Part, PartError, Parts, Width, segments_left, stripe};

fn parts_of(counts: &[u32]) -> Parts {
    let mut parts = Parts::default();
    for (number, count) in counts.iter().enumerate() {
        parts.add(number as u8, *count);
    }
    parts
}

/// How many segments are opened by taking the devices with the most free parts, one after another.
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

/// How many can be opened by the best of all choices.
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

fn shape(devices: usize, with_room: usize, width: Width) -> Option<(usize, usize)> {
    stripe(devices, with_room, width).map(|stripe| (stripe.data(), stripe.parity()))
}

#[test]
fn stripes_are_as_wide_as_the_table_says() {
    let all = |devices| [Width::Wide, Width::Narrow].map(|width| shape(devices, devices, width));
    assert_eq!(all(0), [None, None]);
    assert_eq!(all(1), [Some((1, 0)); 2]);
    assert_eq!(all(2), [Some((1, 1)); 2]);
    assert_eq!(all(3), [Some((1, 2)); 2]);
    for devices in 4..=48 {
        assert_eq!(all(devices), [Some(((devices - 2).min(16), 2)), Some((1, 2))]);
    }
}

/// It is redundancy that a full device must not take.
#[test]
fn parity_is_as_many_devices_ask_for_however_few_have_room() {
    for devices in 3..=48 {
        assert_eq!(shape(devices, 2, Width::Wide), None);
        assert_eq!(shape(devices, 2, Width::Narrow), None);
        assert_eq!(shape(devices, 3, Width::Wide), Some((1, 2)));
    }
    assert_eq!(shape(2, 1, Width::Wide), None);
    assert_eq!(shape(6, 5, Width::Wide), Some((3, 2)));
    assert_eq!(shape(48, 19, Width::Wide), Some((16, 2)));
}

#[test]
fn a_segment_takes_the_devices_with_the_most_free_parts() {
    let mut parts = parts_of(&[2, 9, 5, 9, 5]);
    let (narrow, taken) = parts.allot(0, Width::Narrow).unwrap();
    assert_eq!(narrow.shards(), 3);
    let part = |device, number| Part { device, number };
    assert_eq!(taken, [part(1, 1), part(2, 1), part(3, 1)]);
    // Now devices 1 and 3 have 8 each, device 4 has 5, and columns are dealt from the next one on.
    let (_, taken) = parts.allot(1, Width::Narrow).unwrap();
    assert_eq!(taken, [part(3, 2), part(4, 1), part(1, 2)]);
    let (wide, taken) = parts.allot(2, Width::Wide).unwrap();
    assert_eq!((wide.data(), wide.parity()), (3, 2));
    assert_eq!(taken, [part(2, 2), part(3, 3), part(4, 2), part(0, 1), part(1, 3)]);
    assert_eq!(parts.free().map(|(_, free)| free).collect::<Vec<_>>(), [1, 6, 3, 6, 3]);
}

#[test]
fn parity_goes_around_all_devices() {
    let mut parts = parts_of(&[60; 6]);
    let mut parity_on = [0; 6];
    for segment in 0..60 {
        let (stripe, taken) = parts.allot(segment, Width::Wide).unwrap();
        taken[stripe.data()..].iter().for_each(|part| parity_on[usize::from(part.device)] += 1);
    }
    assert_eq!(parity_on, [20; 6]);
    assert_eq!(parts.allot(60, Width::Wide), None);
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
    assert_eq!(parts.allot(0, Width::Wide).unwrap().1, [part(2)]);
    assert_eq!(parts.give_back(part(1)), Ok(()));
    assert_eq!(parts.allot(0, Width::Wide).unwrap().1, [part(1)]);
    for number in [0, 131] {
        assert_eq!(parts.take(part(number)), Err(PartError::None(part(number))));
        assert_eq!(parts.give_back(part(number)), Err(PartError::None(part(number))));
    }
    // It has grown, and keeps what is taken; another one has come, and is gone again.
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

/// Four large devices and two small ones: when the small ones are full the others have most of
/// their room still.
#[test]
fn room_goes_on_in_narrower_segments() {
    let parts = parts_of(&[10, 1, 10, 10, 1, 10]);
    assert_eq!(parts.room(Width::Wide), 1);
    assert_eq!(parts.room(Width::Narrow), 14);
    assert_eq!(parts.data_parts_left(), 4 + 9 * 2);
    // The largest one alone protects nothing.
    assert_eq!(parts_of(&[9, 2, 2, 2]).data_parts_left(), 4);
    assert_eq!(parts_of(&[9, 2, 1]).data_parts_left(), 1);
    assert_eq!(parts_of(&[9, 2]).data_parts_left(), 2);
    assert_eq!(parts_of(&[9]).data_parts_left(), 9);
    assert_eq!(parts_of(&[]).data_parts_left(), 0);
}

#[test]
fn the_formula_holds_where_numbers_are_large() {
    assert_eq!(segments_left(&[3 << 30; 36], 18), u32::MAX, "there are no more numbers");
    assert_eq!(segments_left(&[1 << 30; 36], 18), 2 << 30);
    assert_eq!(segments_left(&[u32::MAX; 18], 18), u32::MAX);
    assert_eq!(segments_left(&[u32::MAX, 1], 1), u32::MAX);
    assert_eq!(segments_left(&[], 3), 0);
}

/// All devices with up to 3 free parts, up to 4 of them, and all widths: the formula, taking those
/// with the most free parts, and the best of all choices are the same number.
#[test]
fn the_formula_is_what_can_be_opened_of_small_numbers() {
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
    fn the_formula_is_what_can_be_opened(
        free in prop::collection::vec(0..60u32, 0..=48),
        shards in 1..=18usize,
    ) {
        prop_assert_eq!(segments_left(&free, shards), opened_greedily(&free, shards));
    }

    /// Segments of one width, and the widest each time, until there is no room: no part is in two,
    /// no segment has two of one device, and all that was promised was there.
    #[test]
    fn segments_are_opened_as_promised(
        counts in prop::collection::vec(0..40u32, 1..=24),
        width in prop_oneof![Just(Width::Wide), Just(Width::Narrow)],
    ) {
        let mut parts = parts_of(&counts);
        let mut seen = std::collections::HashSet::new();
        let (room, usual) = (parts.room(width), parts.stripe(width));
        let left = parts.data_parts_left();
        let parity = 2.min(counts.len() - 1);
        let (mut as_usual, mut data_parts) = (0, 0);
        for segment in 0.. {
            let Some((stripe, taken)) = parts.allot(segment, width) else { break };
            prop_assert_eq!((taken.len(), stripe.parity()), (stripe.shards(), parity));
            as_usual += u32::from(Some(stripe) == usual);
            data_parts += stripe.data() as u64;
            let devices: std::collections::HashSet<u8> =
                taken.iter().map(|part| part.device).collect();
            prop_assert_eq!(devices.len(), taken.len());
            for part in taken {
                prop_assert!((1..=counts[usize::from(part.device)]).contains(&part.number));
                prop_assert!(seen.insert(part));
            }
        }
        prop_assert_eq!(as_usual, room);
        if width == Width::Wide {
            prop_assert!(left <= data_parts, "{} of {}", left, data_parts);
            let short = if counts.len() > 18 { 18 } else { 0 };
            prop_assert!(left + short >= data_parts, "{} of {}", left, data_parts);
        }
    }

    /// Whatever is taken and given back, numbers are those of a set.
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
