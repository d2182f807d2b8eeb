use proptest::prelude::*;

use super::model::{Event, STEP_MS, World};
use super::plan::{KERNEL_MS, TAKEN_AFTER_MS, VALID_S};
use super::*;

/// The longest time until every address is where it belongs.
const SETTLED_MS: u64 = 20_000;

fn event() -> impl Strategy<Value = Event> {
    let at = 0..2_usize;
    prop_oneof![
        2 => at.clone().prop_map(Event::Kill),
        2 => at.clone().prop_map(Event::Stop),
        3 => at.clone().prop_map(Event::GoOn),
        3 => at.clone().prop_map(Event::Cut),
        3 => Just(Event::Heal),
        2 => (at.clone(), any::<bool>()).prop_map(|(at, reaches)| Event::Devices(at, reaches)),
        1 => (at, any::<bool>()).prop_map(|(at, refuses)| Event::Refuse(at, refuses)),
        1 => prop_oneof![Just(1), Just(100), Just(1500), Just(5000)].prop_map(Event::Delay),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Whatever is killed, stopped, cut or refused, with clocks that differ by a fiftieth: no
    /// address is at both machines, and once all is well each is where it belongs.
    #[test]
    fn no_address_is_at_both_machines_and_each_returns_to_its_own(
        rates in [980..1020_u64, 980..1020_u64],
        late_ms in 0..=KERNEL_MS - u64::from(VALID_S) * 1000,
        events in prop::collection::vec((event(), 0..12_000_u64), 1..30),
    ) {
        let mut world = World::new(rates, late_ms);
        world.run(SETTLED_MS);
        for (event, after_ms) in events {
            world.event(event);
            world.run(after_ms);
        }
        for at in 0..2 {
            world.event(Event::GoOn(at));
            world.event(Event::Devices(at, true));
            world.event(Event::Refuse(at, false));
        }
        world.event(Event::Heal);
        world.event(Event::Delay(1));
        world.run(SETTLED_MS);
        prop_assert_eq!(world.places(), [[true, false], [false, true]]);
    }
}

fn settled() -> World {
    let mut world = World::new([1000; 2], 500);
    world.run(SETTLED_MS);
    assert_eq!(world.places(), [[true, false], [false, true]]);
    assert!(world.machines[0].process.as_ref().unwrap().is_owner);
    world
}

#[test]
fn the_owner_takes_over_addresses_and_returns_them() {
    let mut world = settled();
    world.event(Event::Stop(1));
    world.run(TAKEN_AFTER_MS - 1000);
    assert_eq!(world.places()[1], [false, false], "not yet");
    world.run(2000);
    assert_eq!(world.places(), [[true, false], [true, false]]);
    let announced = world.machines[0].table().announced;
    world.event(Event::Kill(1));
    world.run(2000);
    assert_eq!(world.places(), [[true, false], [false, true]]);
    world.run(10_000);
    assert!(announced >= 1 && world.machines[1].table().announced >= 5);
}

#[test]
fn a_new_owner_keeps_its_addresses_and_takes_the_others() {
    let mut world = settled();
    world.event(Event::Stop(0));
    let moves = world.moves;
    for _ in 0..100 {
        world.run(STEP_MS);
        assert_eq!(world.places()[1], [false, true], "its own stay all the time");
    }
    world.run(5000);
    assert!(world.machines[1].process.as_ref().unwrap().is_owner);
    assert_eq!((world.places(), world.moves), ([[false, true], [false, true]], moves + 1));
    // The previous owner finds itself fenced, and restarts.
    world.event(Event::GoOn(0));
    world.run(5000);
    assert_eq!(world.places(), [[true, false], [false, true]]);
}

#[test]
fn a_broken_link_moves_the_addresses_to_the_owner() {
    for cut in [vec![0], vec![1], vec![0, 1]] {
        let mut world = settled();
        cut.iter().for_each(|at| world.event(Event::Cut(*at)));
        world.run(SETTLED_MS);
        assert_eq!(world.places(), [[true, false], [true, false]], "{cut:?}");
    }
}

#[test]
fn a_grant_refers_to_the_beat_that_it_answers() {
    let mut beats = Beats::default();
    assert_eq!((beats.granted(BEATS), beats.granted(DOT)), (None, None), "nothing was sent");
    for at in 1..=300_u64 {
        let beat = beats.next(at);
        assert_eq!(beats.granted(answer_of(beat, true)), Some(at));
        assert_eq!(beats.granted(answer_of(beat, false)), None);
    }
    // Input from the other end is not assumed to be a beat.
    assert_eq!(answer_of(BEATS, true), DOT);
}

#[test]
fn failed_changes_of_addresses_are_retried() {
    let mut world = settled();
    world.event(Event::Stop(1));
    world.event(Event::Refuse(0, true));
    world.run(SETTLED_MS);
    assert_eq!(world.places(), [[false; 2]; 2], "the kernel of 0 takes nothing");
    world.event(Event::Refuse(0, false));
    world.run(1000);
    assert_eq!(world.places(), [[true, false], [true, false]]);
    world.event(Event::Refuse(0, true));
    world.event(Event::Kill(1));
    // Until the kernel has removed it: `check` verifies that.
    world.run(SETTLED_MS);
    assert_eq!(world.places()[1], [false, true]);
}

#[test]
fn a_portal_listens_while_its_address_is_elsewhere() {
    let address = "192.0.2.77:0".parse().unwrap();
    assert!(TcpListener::bind(address).is_err(), "it is not here");
    let bound = bind_absent(address).unwrap();
    assert_eq!(bound.local_addr().unwrap().ip(), address.ip());
    assert!(bind_absent("[2001:db8::77]:0".parse().unwrap()).is_ok());
    assert!(bind_absent(bound.local_addr().unwrap()).is_err(), "it is in use");
}
