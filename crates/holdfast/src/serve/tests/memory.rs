//! Commands that find no memory for their data, over the wire.

use std::time::Duration;

use iscsi::Limits;

use super::wire::Initiator;
use super::{create_pool, serve_within};

const READ: u8 = 0x40;
const SCSI_RESPONSE: u8 = 0x21;
const TASK_SET_FULL: u8 = 0x28;

/// Its response would be longer than all memory for data.
#[test]
fn a_read_that_finds_no_memory_ends_with_task_set_full() {
    let limits = Limits {
        data_bytes: 16 << 20,
        data_out_bytes_per_command: 1 << 20,
        data_timeout: Duration::from_secs(1),
        ..Limits::default()
    };
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("pool");
    create_pool(&pool);
    let array = serve_within(&pool, 1, limits);
    let mut one = Initiator::login(array.running.portals[0], "one");
    for _ in 0..2 {
        // READ (10) of 8 MiB.
        let tag = one.command_to(1, [0x28, 0, 0, 0, 0, 0, 0, 0x40, 0, 0], READ, 8 << 20);
        let (bhs, _) = one.receive(SCSI_RESPONSE);
        assert_eq!((bhs[3], &bhs[16..20]), (TASK_SET_FULL, &tag.to_be_bytes()[..]));
        assert_eq!(one.test_unit_ready(), (0, None));
    }
    array.stop();
}
