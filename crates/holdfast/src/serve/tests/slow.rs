//! A slow device: what waits for it, counted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use block::{DataOut, Sector, SectorRange, VolumeId, VolumeRequest};
use iscsi::Limits;
use segments::{Local, Segments as _};

use super::wire::Initiator;
use super::{Running, VOLUME_BYTES, create_pool, options, serve_with};

/// Longer than the test needs to send its commands.
const LATENCY: Duration = Duration::from_secs(3);
const MIB: u64 = 1 << 20;

/// Writes a block in the middle of each MiB of the first volume, in separate leaves and with
/// different content, then opens the pool again, so that nothing of it is in memory.
fn serve_cold(pool: &std::path::Path) -> Running {
    let (made, _) = options(pool, 1, Limits::default());
    let id = made.store.config()[0].1[..8].try_into().map(u64::from_le_bytes).unwrap();
    for mib in 0..VOLUME_BYTES / MIB {
        let bytes: Vec<u8> = (0..4096_u64).map(|at| ((at * (2 * mib + 1)) >> 3) as u8).collect();
        let range = SectorRange::new(mib * MIB / 512 + 64, 8);
        let data = DataOut::from_bytes(&bytes, 0);
        let write = VolumeRequest::Write { volume: VolumeId(id), range, data, fua: false };
        made.store.execute(write).unwrap();
    }
    made.store.checkpoint().unwrap();
    drop(made);
    let (mut options, access) = options(pool, 1, Limits::default());
    // Opening must not be slow.
    let geometry = options.medium.read_root().unwrap().geometry;
    let slow = Local::slowed(options.files[0].clone(), LATENCY);
    slow.lay_out(geometry);
    options.medium = Arc::new(slow).into();
    serve_with(options, access)
}

/// Returns READ (10) of the block that was written in a MiB.
fn read_10(mib: u64) -> [u8; 10] {
    let lba = Sector(mib * MIB / 512 + 64).0 as u32;
    let mut cdb = [0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0];
    cdb[2..6].copy_from_slice(&lba.to_be_bytes());
    cdb
}

#[test]
fn cold_reads_are_all_on_the_device_before_the_first_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("pool");
    create_pool(&pool);
    let array = serve_cold(&pool);
    let portal = array.running.portals[0];
    let (mut cold, mut other) =
        (Initiator::login(portal, "cold"), Initiator::login(portal, "other"));
    let before = array.running.counters.device().reads.ok();
    for mib in 0..64 {
        cold.command_to(1, read_10(mib), 0x40, 4096);
    }
    let started = Instant::now();
    while array.running.counters.device().reads.under_way < 64 {
        assert!(started.elapsed() < LATENCY / 2, "{:?}", array.running.counters.device().reads);
        std::thread::sleep(Duration::from_millis(1));
    }
    // The only thread serves others meanwhile.
    for _ in 0..64 {
        assert_eq!(other.ready(1), (0, None));
    }
    assert_eq!(array.running.counters.device().reads.ok(), before, "none has ended by now");
    drop((cold, other));
    array.stop();
}
