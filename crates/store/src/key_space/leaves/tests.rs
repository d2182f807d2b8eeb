//! Tests of leaves against a naive model: the content of a medium to which checkpoints write.

use std::collections::HashMap;

use super::*;
use crate::key_space::KeySpace;

/// The pairs of a leaf.
type Held = Vec<(Key, Vec<u8>)>;

/// The stored leaves, by number.
#[derive(Clone, Default)]
struct Medium {
    leaves: HashMap<u64, (Vec<Piece>, Held)>,
    places: u32,
}

/// A captured checkpoint: the numbers that it removes, and the previous state of each leaf in it.
struct Checkpoint {
    gone: Vec<u64>,
    before: Vec<(u64, Vec<Piece>)>,
    medium: Medium,
}

fn draw(state: &mut u64, below: u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) % below
}

/// Applies a checkpoint to a medium.
fn capture(space: &mut KeySpace, mut medium: Medium) -> Checkpoint {
    let KeySpace { pairs, leaves: Some(leaves), .. } = space else { panic!("no leaves") };
    let dropped = leaves.take_dropped();
    for (number, stored) in &dropped {
        assert_eq!(medium.leaves.remove(number).map(|(stored, _)| stored), Some(stored.clone()));
    }
    let gone = dropped.iter().map(|(number, _)| *number).collect();
    let mut before = dropped;
    for (cut, end) in leaves.take_dirty() {
        medium.places += 1;
        let stored = vec![(Place { segment: 1, offset_units: medium.places * 64 }, 64)];
        let (number, was) = leaves.set_stored(&cut, stored.clone());
        let end = end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let held = pairs.range::<[u8], _>((Bound::Included(&cut[..]), end));
        let held = held.map(|(key, value)| (key.clone(), value.clone())).collect();
        let old = medium.leaves.insert(number, (stored, held));
        assert_eq!(old.map(|(stored, _)| stored).unwrap_or_default(), was);
        before.push((number, was));
    }
    Checkpoint { gone, before, medium }
}

fn assert_divided_well(space: &KeySpace) {
    assert_eq!(space.finding(), None);
    let leaves = space.leaves().unwrap();
    let all: Vec<&Leaf> = leaves.by_cut.values().collect();
    assert!(all.iter().all(|leaf| leaf.count == 1 || leaf.bytes <= LEAF_BYTES_MAX));
    assert!(all.iter().all(|leaf| leaf.count > 0));
    assert!(all.windows(2).all(|two| two[0].bytes + two[1].bytes > JOINED_BYTES_MAX));
    assert!(leaves.by_cut.keys().next().is_none_or(Vec::is_empty));
    let mut numbers: Vec<u64> = all.iter().map(|leaf| leaf.number).collect();
    numbers.extend(&leaves.free);
    numbers.extend(leaves.dropped.iter().map(|(number, _)| *number));
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), count, "a number is given twice");
    assert!(numbers.last().is_none_or(|last| *last < leaves.next));
}

/// Checks that reading a medium returns what was there at the capture, with the same division.
fn assert_holds(medium: &Medium, pairs: &Pairs) -> Leaves {
    let leaves = medium.leaves.iter().map(|(number, (stored, pairs))| StoredLeaf {
        number: *number,
        stored: stored.clone(),
        pairs: pairs.clone(),
    });
    let (leaves, found) = Leaves::stored(leaves.collect()).expect("the leaves do not overlap");
    assert!(found == *pairs);
    leaves
}

fn value(state: &mut u64) -> Vec<u8> {
    let most = [3, 40, 300, 3000, 9000, 70_000][draw(state, 12) as usize % 6];
    let most = if most > 300 && draw(state, 4) > 0 { 100 } else { most };
    vec![draw(state, 256) as u8; draw(state, most) as usize]
}

#[test]
fn leaves_hold_all_pairs_after_any_sets_and_captures() {
    for seed in 0..18 {
        let mut state = seed;
        let mut space = KeySpace::default();
        space.divide();
        let mut medium = Medium::default();
        let mut under_way: Option<Checkpoint> = None;
        let keys = [30, 300, 3000][seed as usize % 3];
        for step in 0..3000 {
            // Keys are added, and then removed.
            let goes = 20 + step / 50;
            match draw(&mut state, 200) {
                0 if under_way.is_none() => {
                    let changed = space.leaves().unwrap().changed_count();
                    let blocks = space.leaves().unwrap().dirty_blocks();
                    let checkpoint = capture(&mut space, medium.clone());
                    assert_eq!(checkpoint.before.len() as u64, changed);
                    assert!(blocks >= changed - checkpoint.gone.len() as u64);
                    assert_eq!(space.leaves().unwrap().dirty_blocks(), 0);
                    assert_holds(&checkpoint.medium, &space.pairs);
                    under_way = Some(checkpoint);
                }
                1 | 2 if let Some(checkpoint) = under_way.take() => {
                    if draw(&mut state, 3) > 0 {
                        medium = checkpoint.medium;
                        space.written(checkpoint.gone);
                    } else {
                        // It is refused: everything is at its previous location.
                        let leaves = space.leaves_mut().unwrap();
                        for (number, before) in checkpoint.before {
                            leaves.give_back(number, before);
                        }
                    }
                }
                drawn => {
                    let key = format!("{:05}", draw(&mut state, keys)).into_bytes();
                    let value = (drawn > goes).then(|| value(&mut state));
                    space.set(&key, value.as_deref());
                }
            }
            if step % 16 == 0 || keys < 100 {
                assert_divided_well(&space);
            }
        }
        if let Some(checkpoint) = under_way {
            medium = checkpoint.medium;
            space.written(checkpoint.gone);
        }
        let checkpoint = capture(&mut space, medium);
        let leaves = assert_holds(&checkpoint.medium, &space.pairs);
        let divided = |leaves: &Leaves| -> Vec<(u64, usize)> {
            leaves.by_cut.values().map(|leaf| (leaf.number, leaf.count)).collect()
        };
        assert_eq!(divided(&leaves), divided(space.leaves().unwrap()));
    }
}

#[test]
fn keys_added_in_order_fill_their_leaves() {
    let mut space = KeySpace::default();
    space.divide();
    let mut bytes = 0;
    for id in 0..10_000 {
        let (key, value) = (format!("{id:08}").into_bytes(), vec![1; 100]);
        space.set(&key, Some(&value));
        bytes += pair_bytes(&key, &value);
    }
    let leaves = space.leaves().unwrap();
    assert!(leaves.by_cut.len() <= bytes * 21 / 20 / LEAF_BYTES_MAX, "{}", leaves.by_cut.len());
    assert_divided_well(&space);
}

#[test]
fn a_change_touches_few_leaves_however_many_there_are() {
    let mut space = KeySpace::default();
    for id in 0..20_000u64 {
        space.set(format!("{:08}", id * 7919 % 20_000).as_bytes(), Some(&[1; 90]));
    }
    space.divide();
    let mut medium = capture(&mut space, Medium::default()).medium;
    let mut state = 5;
    let mut most = 0;
    for _ in 0..2000 {
        let key = format!("{:08}", draw(&mut state, 30_000)).into_bytes();
        let value = (draw(&mut state, 2) > 0).then(|| value(&mut state));
        space.set(&key, value.as_deref());
        let checkpoint = capture(&mut space, medium);
        most = most.max(checkpoint.before.len());
        medium = checkpoint.medium;
        space.written(checkpoint.gone);
    }
    assert!(most <= 5, "{most}");
    // A long new pair does not change its neighbors.
    space.set(b"000", Some(&[1; 9000]));
    space.set(b"~", Some(&[1; 9000]));
    let checkpoint = capture(&mut space, medium);
    assert_eq!(checkpoint.before.len(), 2);
    medium = checkpoint.medium;
    // What is unchanged is not written.
    space.set(b"key", Some(b"value"));
    medium = capture(&mut space, medium).medium;
    space.set(b"key", Some(b"value"));
    space.set(b"no key", None);
    assert_eq!(capture(&mut space, medium).before.len(), 0);
}

#[test]
fn inconsistent_leaves_are_rejected() {
    let leaf = |number, keys: &[&str]| StoredLeaf {
        number,
        stored: Vec::new(),
        pairs: keys.iter().map(|key| (key.as_bytes().to_vec(), Vec::new())).collect(),
    };
    assert!(Leaves::stored(vec![leaf(1, &["c", "d"]), leaf(0, &["a", "b"])]).is_some());
    assert!(Leaves::stored(vec![leaf(1, &["a", "c"]), leaf(0, &["b"])]).is_none());
    assert!(Leaves::stored(vec![leaf(1, &["a", "b"]), leaf(0, &["b"])]).is_none());
    assert!(Leaves::stored(vec![leaf(1, &["a"]), leaf(0, &[])]).is_none());
    assert!(Leaves::stored(vec![leaf(format::key_space::LEAF_NUMBERS_MAX, &["a"])]).is_none());
}
