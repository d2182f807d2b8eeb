//! What is held back, counted; and when it comes.

use std::time::Instant;

use block::FRAME_BYTES;
use sys::{Buffers, FileDisk};

use super::*;
use crate::Local;

/// Longer than any test takes.
const NEVER: Duration = Duration::from_secs(86_400);

fn file(frames: usize) -> (tempfile::TempDir, Arc<FileDisk>) {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::create(&dir.path().join("disk"), (frames * FRAME_BYTES) as u64).unwrap();
    (dir, Arc::new(disk))
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
        assert!(started.elapsed() < Duration::from_secs(30), "they do not end: {out:?}");
        channel.complete(&mut out).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    out
}

#[test]
fn all_that_was_queued_is_on_its_way_before_the_first_has_ended() {
    let (_dir, disk) = file(64);
    let mut channel = Local::slowed(disk, NEVER).channel(64).unwrap();
    for at in 0..64 {
        channel.read(at, at * FRAME_BYTES as u64, blank(1)).unwrap();
        channel.submit().unwrap();
        let mut out = Vec::new();
        channel.complete(&mut out).unwrap();
        assert!(out.is_empty(), "one has ended before its time");
    }
    assert_eq!(channel.in_flight(), 64);
}

#[test]
fn many_together_take_one_latency_and_not_one_each() {
    let latency = Duration::from_millis(100);
    let (_dir, disk) = file(64);
    let local = Local::slowed(disk, latency);
    let mut channel = local.channel(64).unwrap();
    let started = Instant::now();
    for at in 0..64_u64 {
        let frames = vec![filled(at as u8)];
        channel.write(at, at * FRAME_BYTES as u64, frames, Persist::Itself).unwrap();
    }
    channel.submit().unwrap();
    let ended = collect(&mut *channel, 64);
    assert!(ended.iter().all(|ended| ended.result.is_ok()));
    let took = started.elapsed();
    // One after the other they would take 6.4 s.
    assert!(took >= latency && took < 40 * latency, "{took:?}");
    for at in 0..64 {
        channel.read(at, at * FRAME_BYTES as u64, blank(1)).unwrap();
    }
    for Completion { user_data, buffers, result } in collect(&mut *channel, 64) {
        result.unwrap();
        let Buffers::Read(frames) = buffers else { panic!("it was a read") };
        assert_eq!(frames[0][0], user_data as u8);
    }
    assert_eq!(channel.in_flight(), 0);
}

/// Nobody calls the channel but when a descriptor has signalled.
#[test]
fn a_poller_hears_when_the_time_has_come() {
    let (_dir, disk) = file(1);
    let mut channel = Local::slowed(disk, Duration::from_millis(30)).channel(8).unwrap();
    assert!(channel.next_retry().is_none());
    channel.read(1, 0, blank(1)).unwrap();
    channel.submit().unwrap();
    let timer = *channel.poll_fds().last().unwrap();
    assert_eq!(channel.poll_fds().len(), 2, "the ring's, and the timer's");
    assert!(sys::timer::is_readable_within(timer, Duration::from_secs(30)));
    let mut out = Vec::new();
    channel.complete(&mut out).unwrap();
    // It is with the ring now, which tells by its own descriptor.
    assert!(sys::timer::is_readable_within(channel.poll_fds()[0], Duration::from_secs(30)));
    channel.complete(&mut out).unwrap();
    assert_eq!(out.len(), 1);
}

#[test]
fn what_is_not_inside_the_medium_is_refused_at_once() {
    let (_dir, disk) = file(4);
    let mut channel = Local::slowed(disk, NEVER).channel(8).unwrap();
    let end = 4 * FRAME_BYTES as u64;
    assert!(channel.read(1, end, blank(1)).is_err());
    assert!(channel.read(1, 1, blank(1)).is_err());
    assert!(channel.write(1, end - 4096, vec![filled(1); 2], Persist::Itself).is_err());
    assert_eq!(channel.in_flight(), 0);
}

/// A write that was queued before another one of the same place does not come over it.
#[test]
fn requests_go_on_in_their_order() {
    let (_dir, disk) = file(1);
    let mut channel = Local::slowed(disk.clone(), Duration::from_millis(5)).channel(1).unwrap();
    for round in 0..8 {
        channel.write(round, 0, vec![filled(round as u8)], Persist::Itself).unwrap();
    }
    let ended: Vec<u64> = collect(&mut *channel, 8).iter().map(|ended| ended.user_data).collect();
    assert_eq!(ended, (0..8).collect::<Vec<_>>());
    let mut read = [FrameMut::stale()];
    disk.read(0, &mut read).unwrap();
    assert_eq!(read[0][0], 7);
}

#[test]
fn who_may_wait_waits_at_each_request() {
    let latency = Duration::from_millis(5);
    let (_dir, disk) = file(4);
    let slow = Local::slowed(disk, latency).blocking();
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
