//! Serial numbers that wrap around, and the window.

use super::wire::*;
use super::*;

#[test]
fn cmd_sn_wraps_around() {
    let mut wire = Wire::logged_in(Options { first_cmd_sn: u32::MAX - 3, ..options() }, 1);
    for _ in 0..10 {
        wire.simple(0);
        assert_eq!(only_answer(wire.pump()).status, 0);
    }
    assert_eq!(wire.host.room(), 16);
}

#[test]
fn the_window_closes_and_opens() {
    let mut wire = Wire::logged_in(options(), 2);
    let tags: Vec<Itt> = (0..16).map(|_| wire.simple(NEVER_ANSWERED)).collect();
    let refused = wire.host.command(LUN, &[0; 6], Attribute::Simple, None, 0);
    assert_eq!(refused, Err(Busy::WindowClosed));
    assert_eq!(wire.pump(), []);
    assert_eq!(wire.host.room(), 0);
    let now = wire.host.immediate_command(LUN, &[0; 6], Attribute::HeadOfQueue, None, 0).unwrap();
    assert_eq!(only_answer(wire.pump()).itt, now);
    wire.host.abort(tags[3]).unwrap();
    assert_eq!(wire.pump().len(), 1);
    assert_eq!(wire.host.room(), 1);
}

/// The same calls and the same bytes: the same output.
#[test]
fn equal_calls_give_equal_output() {
    let run = || {
        let mut wire = Wire::logged_in(Options { data_digest: true, ..options() }, 3);
        wire.write(0, &pattern(4096, 1));
        wire.read(0, 4096);
        (wire.host.output().to_vec(), wire.pump())
    };
    assert_eq!(run(), run());
}
