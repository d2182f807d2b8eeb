//! The work of a thread's turns, counted.

use super::wire::{Initiator, on_arrays};

/// READ (10) of 4 MiB of zeros, because nothing was written.
const READ_10: [u8; 10] = [0x28, 0, 0, 0, 0, 0, 0, 0x20, 0, 0];
const READ_BYTES: u32 = 4 << 20;

/// It does not process such a connection again and again, although more input has arrived.
#[test]
fn a_thread_sleeps_while_its_host_reads_no_responses() {
    on_arrays(&[1], |array| {
        let portal = array.running.portals[0];
        let (mut deaf, mut other) =
            (Initiator::login(portal, "deaf"), Initiator::login(portal, "other"));
        // More than fits into both sockets and the target's output limit for one connection.
        for _ in 0..16 {
            deaf.command_to(1, READ_10, 0x40, READ_BYTES);
        }
        for _ in 0..64 {
            deaf.command_to(1, [0; 10], 0, 0);
        }
        const ROUNDS: u64 = 20;
        let settle = std::time::Duration::from_millis(300);
        std::thread::sleep(settle);
        deaf.command_to(1, [0; 10], 0, 0);
        let before = array.running.counters.turns().turns;
        for _ in 0..ROUNDS {
            std::thread::sleep(settle / 30);
            assert_eq!(other.ready(1), (0, None));
        }
        let now = array.running.counters.turns();
        let turns = now.turns - before;
        assert!(turns < ROUNDS * 20, "{turns} turns for {ROUNDS} commands");
        // The budget of a turn, and one more read.
        assert!(now.most_bytes <= 2 * u64::from(READ_BYTES), "{now:?}");
        drop((deaf, other));
    });
}
