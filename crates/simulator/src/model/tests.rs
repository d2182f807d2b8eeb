//! What the oracle allows, and what it does not.

use super::*;

fn state(tags: &[Tag]) -> State {
    let volume = ModelVolume { id: VolumeId(1), tags: tags.to_vec() };
    State { volumes: vec![volume], live: 1, config: 0 }
}

fn change(start: u64, tags: &[Tag], started: u64, by_block: bool) -> Changing {
    let tags = tags.to_vec();
    let effects = vec![Effect::Sectors { slot: 0, start, tags }];
    Changing { effects, started, by_block, racing: Vec::new() }
}

#[test]
fn an_acknowledged_durable_change_must_be_there() {
    let mut model = Model::new(state(&[0; 4]));
    model.answered(1, change(0, &[5, 5], 0, false), true);
    assert!(model.clone().resolve(state(&[5, 5, 0, 0])).is_ok());
    assert!(model.resolve(state(&[0; 4])).is_err());
}

#[test]
fn an_unknown_offload_is_all_or_nothing_and_a_write_each_block() {
    let mut model = Model::new(state(&[0; 16]));
    model.unknown(change(0, &[7; 16], 0, false));
    let mut half = [0; 16];
    half[..8].fill(7);
    assert!(model.clone().resolve(state(&half)).is_err());
    assert!(model.clone().resolve(state(&[7; 16])).is_ok());
    let mut model = Model::new(state(&[0; 16]));
    model.unknown(change(0, &[7; 16], 0, true));
    assert!(model.clone().resolve(state(&half)).is_ok());
    half[3] = 0;
    assert!(model.resolve(state(&half)).is_err());
}

#[test]
fn writes_acknowledged_from_memory_survive_in_order() {
    let mut model = Model::new(state(&[0; 4]));
    model.answered(2, change(0, &[1], 1, false), false);
    model.answered(4, change(1, &[2], 3, false), false);
    assert!(model.clone().resolve(state(&[1, 0, 0, 0])).is_ok());
    assert!(model.clone().resolve(state(&[0, 2, 0, 0])).is_err());
    model.flushed(3);
    assert!(model.clone().resolve(state(&[0; 4])).is_err());
    assert!(model.resolve(state(&[1, 2, 0, 0])).is_ok());
}

/// A change that takes a snapshot of slot 0, which holds 16 sectors of zeros, into slot 1, while
/// these requests are in progress; and the state if the snapshot holds `tags`.
fn snapshot(racing: Vec<(Changing, u64)>, tags: &[Tag]) -> (Changing, State) {
    let id = VolumeId(9);
    let effects = vec![Effect::Replace { slot: 1, id, tags: vec![0; 16], source: Some(0) }];
    let racing = racing.into_iter().map(|(change, answered)| Racing { change, answered }).collect();
    let mut found = state(&[0; 16]);
    found.volumes.push(ModelVolume { id, tags: tags.to_vec() });
    (Changing { effects, started: 5, by_block: false, racing }, found)
}

fn with(spans: &[(usize, &[Tag])]) -> Vec<Tag> {
    let mut tags = vec![0; 16];
    for (start, new) in spans {
        tags[*start..*start + new.len()].copy_from_slice(new);
    }
    tags
}

#[test]
fn a_snapshot_holds_each_concurrent_request_entirely_or_not_at_all() {
    let racing = || vec![(change(2, &[7, 7], 4, false), u64::MAX)];
    for (tags, allowed) in [
        (with(&[]), true),
        (with(&[(2, &[7, 7])]), true),
        (with(&[(2, &[7])]), false),
        (with(&[(9, &[3])]), false),
    ] {
        let (change, found) = snapshot(racing(), &tags);
        assert_eq!(change.seen(&found).is_ok(), allowed, "{tags:?}");
    }
}

#[test]
fn a_snapshot_with_a_request_has_all_that_were_acknowledged_before_it_began() {
    let racing = || vec![(change(0, &[7], 4, false), 6), (change(8, &[8], 7, false), 8)];
    for (tags, allowed) in [
        (with(&[(0, &[7])]), true),
        (with(&[(0, &[7]), (8, &[8])]), true),
        (with(&[(8, &[8])]), false),
    ] {
        let (change, found) = snapshot(racing(), &tags);
        assert_eq!(change.seen(&found).is_ok(), allowed, "{tags:?}");
    }
}
