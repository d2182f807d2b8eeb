//! The target by itself, without a protocol.

mod machine;
mod tokens;

use std::sync::Arc;

use block::{LunMap, SectorCount, VolumeAttributes, VolumeId};

use crate::reservations::at_ports;
use crate::*;

const VOLUME: VolumeId = VolumeId(1);

pub(super) fn target() -> Target {
    let port = |relative_id| TargetPort {
        relative_id,
        group: relative_id,
        name: format!("port {relative_id}"),
    };
    let rods = RodVolume { id: VolumeId(99), size: SectorCount(1 << 20), key: TokenKey([5; 32]) };
    Target::new(vec![port(1), port(2)], rods)
}

pub(super) fn nexus(number: u8, target_port: u16) -> NexusId {
    NexusId { host: HostPort { name: format!("host {number}"), id: [number; 16] }, target_port }
}

pub(super) fn of_volume(kept: Kept) -> KeptState {
    KeptState { volumes: vec![(VOLUME, kept)], rods: None }
}

fn registered() -> Kept {
    let registrants = (1..=2).map(|n| Registrant { nexus: nexus(n, 1), key: n.into() }).collect();
    Kept { registrants, ..Kept::default() }
}

fn held_by(kind: Kind, holder: NexusId) -> Kept {
    Kept { reservation: Some(Reservation { kind, holder }), ..registered() }
}

#[test]
fn an_invalid_state_is_not_restored() {
    let all = held_by(Kind::WriteExclusiveAllRegistrants, nexus(9, 1));
    for kept in [Kept::default(), registered(), held_by(Kind::ExclusiveAccess, nexus(2, 1)), all] {
        assert_eq!(target().restore(Start::PowerOn, of_volume(kept)), Ok(()));
    }
    let mut twice = registered();
    twice.registrants[1].nexus = nexus(1, 1);
    let mut keyless = registered();
    keyless.registrants[1].key = 0;
    let mut many = registered();
    let ports: Vec<u16> = (1..=512).collect();
    let more = at_ports(&nexus(7, 1).host, &ports).into_iter();
    many.registrants.extend(more.map(|nexus| Registrant { nexus, key: 1 }));
    let both = Kept { exclusive: Some(nexus(1, 1)), ..registered() };
    let stranger = held_by(Kind::WriteExclusive, nexus(1, 2));
    let all = held_by(Kind::WriteExclusiveAllRegistrants, nexus(1, 1));
    let nobody = Kept { registrants: Vec::new(), ..all };
    for kept in [twice, keyless, many, both, stranger, nobody] {
        let flaw = kept.flaw().expect("it makes no sense");
        let restored = target().restore(Start::PowerOn, of_volume(kept));
        assert_eq!(restored, Err(Nonsense::Volume(VOLUME, flaw)));
    }
}

#[test]
#[should_panic(expected = "before any session")]
fn nothing_is_restored_after_a_session_has_begun() {
    let target = target();
    let luns = Arc::new(LunMap::default());
    let _nexus = target.new_nexus(nexus(1, 1).host, 1, &luns);
    let _ = target.restore(Start::PowerOn, KeptState::default());
}

/// RESERVE and REGISTER that were both admitted before either was executed.
#[test]
fn reserve_and_register_exclude_each_other_in_any_order() {
    let asked = |nexus| Asked {
        nexus,
        action: Action::Register,
        whole_unit: true,
        kind: None,
        key: 0,
        action_key: 7,
        aptpl: false,
        ports: vec![1],
        listed: None,
        moved_to: None,
        unregisters: false,
    };
    let (a, b) = (nexus(1, 1), nexus(2, 1));
    let target = self::target();
    assert!(target.reserve(VOLUME, &a).is_ok());
    assert_eq!(target.act(VOLUME, &asked(&b)), Err(Refusal::Conflict));
    let target = self::target();
    assert!(target.act(VOLUME, &asked(&b)).is_ok());
    assert_eq!(target.reserve(VOLUME, &a), Err(Refusal::Conflict));
}

#[test]
fn a_power_on_keeps_only_state_with_aptpl() {
    let all = Kept {
        generation: 7,
        aptpl: true,
        access: [(1, AccessState::Standby)].into(),
        attentions: [1; 4],
        ..held_by(Kind::ExclusiveAccess, nexus(2, 1))
    };
    let left = Kept { aptpl: true, ..held_by(Kind::ExclusiveAccess, nexus(2, 1)) };
    assert_eq!(all.clone().after_power_on(), left);
    assert!(Kept { aptpl: false, ..all }.after_power_on().is_empty());
    assert!(Kept { exclusive: Some(nexus(1, 1)), ..Kept::default() }.after_power_on().is_empty());
}

/// The events of other units are checked once for a host that sees many units and uses one, not
/// with each command; and it misses none of its own.
#[test]
fn a_command_does_not_search_other_units_for_unit_attentions() {
    let luns = luns(1000);
    let nexus = target().new_nexus(nexus(1, 1).host, 1, &luns);
    assert!(nexus.take_attention(VOLUME).is_some(), "of its past");
    let looks = || nexus.looks.load(std::sync::atomic::Ordering::Relaxed);
    let before = looks();
    (0..100).for_each(|_| assert_eq!(nexus.take_attention(VOLUME), None));
    assert_eq!(looks(), before + 1);
    nexus.attend(VOLUME, Attention::Capacity);
    assert_eq!(nexus.take_attention(VOLUME), Some(Attention::Capacity));
    assert_eq!(nexus.take_attention(VOLUME), None);
    assert!(nexus.take_attention(VolumeId(2)).is_some());
}

fn luns(count: u16) -> Arc<LunMap> {
    let unit = |id: u16| VolumeAttributes {
        id: VolumeId(id.into()),
        size: SectorCount(8),
        logical_block: block::LogicalBlockSize::default(),
        naa: [id as u8; 16],
        serial: id.to_string(),
        group: None,
        write_cache: false,
        offloads: block::Offloads::default(),
        limits: block::VolumeLimits::default(),
    };
    let luns = (1..=count).map(|id| (id, Arc::new(unit(id)))).collect();
    Arc::new(LunMap { generation: 1, luns })
}

/// Returns all pending events of a nexus for a unit.
fn told(nexus: &Nexus, volume: u64) -> Vec<Attention> {
    std::iter::from_fn(|| nexus.take_attention(VolumeId(volume))).collect()
}

/// For hosts a planned switch is only a change of paths; pending notifications are delivered
/// afterwards.
#[test]
fn a_moved_session_keeps_pending_attentions_and_gets_path_states() {
    let (before, after) = (target(), target());
    let live = before.new_nexus(nexus(1, 1).host, 1, &luns(3));
    for unit in [1, 2] {
        assert_eq!(told(&live, unit), [Attention::PowerOn]);
    }
    live.attend(VolumeId(1), Attention::Capacity);
    assert!(before.reset(&[VolumeId(2)], Attention::TargetReset).is_empty());
    let untold = before.hand_over(&live);
    after.restore(Start::Takeover, KeptState::default()).unwrap();
    assert!(after.expect(nexus(1, 1), &untold));
    let goes_on = after.new_nexus(nexus(1, 1).host, 1, &luns(3));
    assert_eq!(told(&goes_on, 1), [Attention::AccessState, Attention::Capacity]);
    assert_eq!(told(&goes_on, 2), [Attention::TargetReset]);
    assert_eq!(told(&goes_on, 3), [Attention::PowerOn], "it was never taken");
    // A nexus that logs in has lost a session, as after any takeover.
    let other = after.new_nexus(nexus(2, 1).host, 1, &luns(3));
    assert_eq!(told(&other, 1), [Attention::NexusLoss]);
}

#[test]
fn pending_attentions_of_a_session_must_be_valid() {
    // An invalid kind, a duplicate, and one after the end.
    for bits in [0xe, 0x11, 0x10, 0x1001] {
        assert!(!target().expect(nexus(1, 1), &vec![(1, bits)]), "{bits:x}");
    }
    for bits in [0, 0x1, 0x51, 0x15, 0xd98] {
        assert!(target().expect(nexus(1, 1), &vec![(1, bits)]), "{bits:x}");
    }
}
