//! What is due by the clock, and what is gone.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use block::{DataOut, VolumeId};
use iscsi::Limits;
use store::Next;

use super::super::shared::Shared;
use super::super::{background, commands};
use super::{Open, create_pool, options};

/// What all threads would share, of an array whose threads do not run.
fn shared(dir: &std::path::Path) -> (Arc<Shared>, Arc<Open>) {
    let pool = dir.join("pool");
    create_pool(&pool);
    let (options, open) = options(&pool, 1, Limits::default());
    (Shared::new(&options, &["127.0.0.1:3260".parse().unwrap(); 2]).unwrap(), open)
}

/// As it is while hosts overwrite a pool that is nearly full.
#[test]
fn what_is_due_is_done_while_maintenance_is_never_done() {
    for next in [Next::AtOnce, Next::Soon, Next::Gently] {
        let dir = tempfile::tempdir().unwrap();
        let (shared, open) = shared(dir.path());
        let attendants = background::start_with(move || Ok(next), &shared).unwrap();
        let began = Instant::now();
        while open.looks.load(Ordering::Relaxed) < 3 {
            assert!(began.elapsed() < Duration::from_secs(20), "{next:?}: nothing is eradicated");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(attendants);
    }
}

#[test]
fn whoever_comes_with_a_token_sees_first_what_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (shared, open) = shared(dir.path());
    let luns = open.map.lock().clone();
    let port = scsi::InitiatorPort { name: "iqn.2026-01.example:one".into(), isid: [0; 6] };
    let nexus = Arc::new(shared.scsi.new_nexus(port, 1, &luns));
    let send = |cdb: &[u8]| {
        open.gone.lock().push(VolumeId(99));
        let command = scsi::Command {
            lun: [0, 1, 0, 0, 0, 0, 0, 0],
            cdb: scsi::Cdb::new(cdb),
            data_out: DataOut::default(),
            expected_in_bytes: 0,
        };
        drop(commands::begin(&shared, &nexus, &luns, command));
        std::mem::take(&mut *open.gone.lock())
    };
    // READ (10) has no token; WRITE USING TOKEN has.
    assert_eq!(send(&[0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0]), [VolumeId(99)]);
    assert_eq!(send(&[0x83, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), []);
}
