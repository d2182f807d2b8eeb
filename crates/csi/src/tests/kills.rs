//! The driver or the array is killed at every step of every call, and the call is repeated.

use super::calls::{CALLS, Call, GROWN_BYTES, Machine, SIZE_BYTES, TESTED, Usage};
use super::process::{Kill, Moment, Victim};
use super::world::Content;

/// The kinds of kill; each is tried at each step.
const KILLS: [(Victim, Moment); 6] = [
    (Victim::Driver, Moment::Before),
    (Victim::Driver, Moment::Amid),
    (Victim::Driver, Moment::After),
    (Victim::Array, Moment::Before),
    (Victim::Array, Moment::After),
    (Victim::ArrayForOneStep, Moment::Before),
];

/// Checks the invariants.
fn check(machine: &Machine, context: &str) {
    assert!(machine.world.violations.is_empty(), "{context}: {:?}", machine.world.violations);
}

/// Makes a call that is interrupted, and repeats it as kubelet does. Returns its outcome;
/// `None` if it ended before the kill.
fn interrupted(machine: &Machine, call: Call, usage: &Usage, kill: Kill) -> Option<Machine> {
    let context = format!("{call:?} of {usage:?}, {kill:?}");
    let broken = machine.make(call, TESTED, usage, Some(kill));
    if broken.steps <= kill.step {
        return None;
    }
    check(&broken.machine, &context);
    if let Victim::Driver = kill.victim {
        assert!(broken.result.is_err(), "{context}: a killed driver has answered");
    }
    let again = broken.machine.make(call, TESTED, usage, None);
    check(&again.machine, &context);
    assert!(again.result.is_ok(), "{context}: {:?}", again.result);
    Some(again.machine)
}

/// Makes all calls, with a kill at each step of each, and compares the outcomes with those of
/// uninterrupted calls. Returns the number of kills.
fn every_step(mut machine: Machine, usage: &Usage) -> usize {
    let mut kills = 0;
    for call in CALLS {
        if call == Call::Expand {
            machine.world.volumes.get_mut(TESTED.1).unwrap().size_bytes = GROWN_BYTES;
        }
        let whole = machine.make(call, TESTED, usage, None);
        check(&whole.machine, "an uninterrupted call");
        assert!(whole.result.is_ok(), "{call:?} of {usage:?}: {:?}", whole.result);
        let twice = whole.machine.make(call, TESTED, usage, None);
        assert!(twice.result.is_ok(), "{call:?} of {usage:?} again: {:?}", twice.result);
        assert_eq!(twice.machine.summary(), whole.machine.summary(), "{call:?} of {usage:?} again");
        for (victim, moment) in KILLS {
            for step in 0.. {
                let kill = Kill { victim, moment, step };
                let Some(left) = interrupted(&machine, call, usage, kill) else { break };
                kills += 1;
                let context = format!("{call:?} of {usage:?}, {kill:?}");
                assert_eq!(left.summary(), whole.machine.summary(), "{context}");
            }
        }
        machine = whole.machine;
    }
    kills
}

/// The same, beside another volume in the same sessions.
fn every_step_of(usage: &Usage, content: Content) -> usize {
    every_step(Machine::new(usage, content), usage)
}

fn of(filesystem: Option<&'static str>) -> Usage {
    Usage { filesystem, ..Usage::default() }
}

#[test]
fn a_kill_at_any_step_changes_nothing_with_ext4() {
    assert!(every_step_of(&of(Some("ext4")), Content::Blank) > 200);
}

#[test]
fn a_kill_at_any_step_changes_nothing_with_xfs() {
    assert!(every_step_of(&of(Some("xfs")), Content::Blank) > 200);
}

#[test]
fn a_kill_at_any_step_changes_nothing_with_a_raw_device() {
    assert!(every_step_of(&of(None), Content::Blank) > 150);
}

/// The first volume of a node: records and sessions are made on the way.
#[test]
fn a_kill_at_any_step_changes_nothing_with_the_first_volume_and_its_secrets() {
    let setting = |name: &str, text: &str| (format!("node.session.auth.{name}"), text.to_owned());
    let secrets = [setting("username", "node"), setting("password", "secret-of-the-node")].into();
    let usage = Usage { secrets, ..of(Some("xfs")) };
    assert!(every_step(Machine::fresh(&usage, Content::Blank), &usage) > 250);
}

/// A clone, whose filesystem is as large as that of its source.
#[test]
fn a_kill_at_any_step_leaves_no_clone_smaller_than_its_volume() {
    for filesystem in ["ext4", "xfs"] {
        let size_bytes = SIZE_BYTES / 2;
        let content = Content::Made { filesystem, generation: 0, size_bytes };
        assert!(every_step_of(&of(Some(filesystem)), content) > 200);
    }
}

/// Two mounts: bound, and then made read-only.
#[test]
fn a_kill_at_any_step_leaves_no_pod_without_its_read_only_volume() {
    let usage = Usage { is_read_only: true, ..of(Some("ext4")) };
    assert!(every_step_of(&usage, Content::Blank) > 200);
}

/// blkid reports a device that it can't read as blank.
#[test]
fn an_array_that_is_briefly_absent_costs_no_filesystem() {
    for filesystem in ["ext4", "xfs"] {
        let content = Content::Made { filesystem, generation: 0, size_bytes: SIZE_BYTES };
        let usage = of(Some(filesystem));
        let machine = Machine::new(&usage, content.clone());
        for step in 0.. {
            let kill = Kill { victim: Victim::ArrayForOneStep, moment: Moment::Before, step };
            let Some(left) = interrupted(&machine, Call::Stage, &usage, kill) else { break };
            assert_eq!(left.world.volumes[TESTED.1].content, content, "{kill:?}");
        }
    }
}
