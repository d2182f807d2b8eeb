//! What a slowed medium delays, and for how long.

use std::time::Instant;

use block::FRAME_BYTES;
use format::Geometry;
use sys::{Buffers, FileDisk};

use super::*;
use crate::{Local, Segments as _};

/// Longer than any test takes.
const NEVER: Duration = Duration::from_secs(86_400);

const GEOMETRY: Geometry = Geometry { part_bytes: 1 << 20, segment_count: 16, columns: 1 };

/// A medium of 16 segments of 256 blocks, in a file.
fn slowed(latency: Duration) -> (tempfile::TempDir, Local) {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::create(&dir.path().join("disk"), GEOMETRY.pool_bytes()).unwrap();
    let local = Local::slowed(Arc::new(disk), latency);
    local.lay_out(GEOMETRY);
    (dir, local)
}

/// Returns the location of a block of the last segment.
fn at(block: u64) -> Place {
    Place::of_block(15, block as u32)
}

fn blank(count: usize) -> Vec<FrameMut> {
    (0..count).map(|_| FrameMut::stale()).collect()
}

fn filled(byte: u8) -> Frame {
    FrameMut::from_bytes(&[byte; FRAME_BYTES]).freeze()
}

fn collect(channel: &mut dyn Channel, count: usize) -> Vec<Completion> {
    let (started, mut out) = (Instant::now(), Vec::new());
    while out.len() < count {
        assert!(started.elapsed() < Duration::from_secs(30), "they do not complete: {out:?}");
        channel.complete(&mut out).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    out
}

#[test]
fn all_queued_requests_are_in_flight_before_the_first_completes() {
    let (_dir, local) = slowed(NEVER);
    let mut channel = local.channel(64).unwrap();
    for block in 0..64 {
        channel.read(block, at(block), blank(1)).unwrap();
        channel.submit().unwrap();
        let mut out = Vec::new();
        channel.complete(&mut out).unwrap();
        assert!(out.is_empty(), "one has completed too early");
    }
    assert_eq!(channel.in_flight(), 64);
}

#[test]
fn parallel_requests_take_one_latency_together() {
    let latency = Duration::from_millis(100);
    let (_dir, local) = slowed(latency);
    let mut channel = local.channel(64).unwrap();
    let started = Instant::now();
    for block in 0..64_u64 {
        let frames = vec![filled(block as u8)];
        channel.append(block, at(block), frames, Persist::Itself).unwrap();
    }
    channel.submit().unwrap();
    let ended = collect(&mut *channel, 64);
    assert!(ended.iter().all(|ended| ended.result.is_ok()));
    let took = started.elapsed();
    // In sequence they would take 6.4 s.
    assert!(took >= latency && took < 40 * latency, "{took:?}");
    for block in 0..64 {
        channel.read(block, at(block), blank(1)).unwrap();
    }
    for Completion { user_data, buffers, result } in collect(&mut *channel, 64) {
        result.unwrap();
        let Buffers::Read(frames) = buffers else { panic!("it was a read") };
        assert_eq!(frames[0][0], user_data as u8);
    }
    assert_eq!(channel.in_flight(), 0);
}

/// The caller polls the channel only when a descriptor is readable.
#[test]
fn a_poller_is_signaled_when_the_delay_expires() {
    let (_dir, local) = slowed(Duration::from_millis(30));
    let mut channel = local.channel(8).unwrap();
    assert!(channel.next_retry().is_none());
    channel.read(1, at(0), blank(1)).unwrap();
    channel.submit().unwrap();
    let timer = *channel.poll_fds().last().unwrap();
    assert_eq!(channel.poll_fds().len(), 2, "the ring's, and the timer's");
    assert!(sys::timer::is_readable_within(timer, Duration::from_secs(30)));
    let mut out = Vec::new();
    channel.complete(&mut out).unwrap();
    // It is with the ring now, which signals through its own descriptor.
    assert!(sys::timer::is_readable_within(channel.poll_fds()[0], Duration::from_secs(30)));
    channel.complete(&mut out).unwrap();
    assert_eq!(out.len(), 1);
}

/// The file is shorter than its declared length, as after a failed growth.
#[test]
fn a_request_beyond_the_medium_is_refused_at_once() {
    let (_dir, local) = slowed(NEVER);
    local.lay_out(Geometry { segment_count: 17, ..GEOMETRY });
    let mut channel = local.channel(8).unwrap();
    let beyond = Place::of_block(16, 0);
    assert!(channel.read(1, beyond, blank(1)).is_err());
    assert!(channel.append(1, beyond, vec![filled(1); 2], Persist::Itself).is_err());
    assert_eq!(channel.in_flight(), 0);
    // A flush alone has no location.
    channel.append(2, Place::NONE, Vec::new(), Persist::All).unwrap();
    assert_eq!(channel.in_flight(), 1);
}

/// A write that was queued before another one of the same location does not overwrite it.
#[test]
fn requests_continue_in_order() {
    let (_dir, local) = slowed(Duration::from_millis(5));
    let mut channel = local.channel(1).unwrap();
    for round in 0..8 {
        channel.append(round, at(0), vec![filled(round as u8)], Persist::Itself).unwrap();
    }
    let ended: Vec<u64> = collect(&mut *channel, 8).iter().map(|ended| ended.user_data).collect();
    assert_eq!(ended, (0..8).collect::<Vec<_>>());
    let mut read = [FrameMut::stale()];
    local.read(at(0), &mut read).unwrap();
    assert_eq!(read[0][0], 7);
}

#[test]
fn a_blocking_caller_waits_at_each_request() {
    let latency = Duration::from_millis(5);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let disk = FileDisk::create(&path, 4 * FRAME_BYTES as u64).unwrap();
    let slow = SlowDisk::new(Arc::new(disk), latency);
    let takes = |times: u32, call: &mut dyn FnMut() -> io::Result<()>| {
        let started = Instant::now();
        call().unwrap();
        assert!(started.elapsed() >= latency * times);
    };
    takes(1, &mut || slow.read(0, &mut blank(1)));
    takes(1, &mut || slow.read_patiently(0, &mut blank(1)));
    takes(1, &mut || slow.write(0, &[filled(1)]));
    takes(1, &mut || slow.write_durable(0, &[filled(1)]));
    takes(1, &mut || slow.write_as(0, &[filled(1)], Persist::All));
    takes(1, &mut || slow.flush());
    takes(2, &mut || slow.write_and_flush(&mut || slow.write(0, &[filled(2)])));
    takes(1, &mut || slow.grow(8 * FRAME_BYTES as u64));
    assert_eq!(slow.len_bytes(), 8 * FRAME_BYTES as u64);
    assert!(!slow.has_given_up() && !slow.is_refusing());
    assert_eq!((slow.retry_count(), slow.flush_failures()), (0, 0));
}

/// Waiting lasts no longer than the delay, and does not spin.
#[test]
fn waiting_ends_when_the_delayed_request_completes() {
    let (_dir, local) = slowed(Duration::from_millis(2));
    local.append(at(0), &[filled(7)]).unwrap();
    let mut channel = local.channel(8).unwrap();
    channel.read(1, at(0), blank(1)).unwrap();
    channel.submit().unwrap();
    let (mut out, mut turns) = (Vec::new(), 0);
    while channel.in_flight() > 0 {
        channel.wait().unwrap();
        channel.complete(&mut out).unwrap();
        turns += 1;
        assert!(turns <= 10, "it returns although nothing has ended");
    }
    assert_eq!(out.len(), 1);
    channel.wait().unwrap();
}
