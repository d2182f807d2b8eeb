//! Work that is due by the clock, and eradicated volumes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use block::{DataOut, VolumeId};
use front::command_set::{Asked, CommandSet, Commands, Step};
use front::transport::CommandBytes;
use iscsi::Limits;
use store::Next;

use super::super::background;
use super::super::shared::Shared;
use super::{Open, create_pool, options};

/// Returns the shared state of an array whose threads do not run.
fn shared(dir: &std::path::Path) -> (Arc<Shared>, Arc<Open>) {
    let pool = dir.join("pool");
    create_pool(&pool);
    let (options, open) = options(&pool, 1, Limits::default());
    (Shared::new(&options, &["127.0.0.1:3260".parse().unwrap(); 2]).unwrap(), open)
}

/// Returns a function that begins commands with some of their announced data.
fn beginner(shared: &Shared, open: &Open) -> impl Fn(&[u8], usize, u32) -> Step {
    let luns = open.map.lock().clone();
    let port = scsi::InitiatorPort { name: "iqn.2026-01.example:one".into(), isid: [0; 6] };
    let nexus = shared.front.scsi.new_nexus(port, 1, &luns);
    move |cdb, bytes, announced| {
        let asked = Asked {
            lun: [0, 1, 0, 0, 0, 0, 0, 0],
            bytes: CommandBytes::new(cdb),
            data_out: DataOut::new(bytes, 0),
            expected_out_bytes: announced,
            expected_in_bytes: 0,
        };
        let traits = Commands::traits_of(&luns, asked.lun, &asked.bytes);
        shared.front.begin(&nexus, &luns, traits, asked)
    }
}

/// As while hosts overwrite a pool that is nearly full.
#[test]
fn due_work_is_done_while_maintenance_never_ends() {
    for next in [Next::AtOnce, Next::Soon, Next::Gently] {
        let dir = tempfile::tempdir().unwrap();
        let (shared, open) = shared(dir.path());
        let attendants = background::start_with(move |_| Ok(next), &shared).unwrap();
        let began = Instant::now();
        while open.looks.load(Ordering::Relaxed) < 3 {
            assert!(began.elapsed() < Duration::from_secs(20), "{next:?}: nothing is eradicated");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(attendants);
    }
}

#[test]
fn eradicated_volumes_are_noted_before_a_token_is_used() {
    let dir = tempfile::tempdir().unwrap();
    let (shared, open) = shared(dir.path());
    let begin = beginner(&shared, &open);
    let send = |cdb: &[u8]| {
        open.gone.lock().push(VolumeId(99));
        drop(begin(cdb, 0, 0));
        std::mem::take(&mut *open.gone.lock())
    };
    // READ (10) has no token; WRITE USING TOKEN has one.
    assert_eq!(send(&[0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0]), [VolumeId(99)]);
    assert_eq!(send(&[0x83, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), []);
}

/// The unit at the LUN when the command arrived took less data, or there was none.
#[test]
fn unsolicited_data_does_not_count_as_written() {
    let dir = tempfile::tempdir().unwrap();
    let (shared, open) = shared(dir.path());
    let begin = beginner(&shared, &open);
    let write = [0x2a, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    let status = |step| match step {
        Step::Done(response) => Some(response.status),
        _ => None,
    };
    assert_eq!(status(begin(&write, 0, 0)), Some(scsi::Status::CheckCondition as u8), "power on");
    for (bytes, announced, expected) in [
        (0, 4096, Some(scsi::Status::Busy as u8)),
        (2048, 4096, Some(scsi::Status::Busy as u8)),
        (4096, 4096, None),
        (4096, 8192, None),
        (2048, 2048, None),
    ] {
        assert_eq!(status(begin(&write, bytes, announced)), expected, "{bytes} of {announced}");
    }
}
