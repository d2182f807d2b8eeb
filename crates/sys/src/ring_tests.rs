use std::time::{Duration, Instant};

use io_uring::squeue;

use super::*;
use crate::Disk;
use crate::retry::Patience;
use crate::transfer::{Core, Next, Transfer};

#[path = "ring_flush_tests.rs"]
mod flushes;
#[path = "ring_model_tests.rs"]
mod model_tests;
#[path = "ring_read_tests.rs"]
mod reads;

fn disk(len_bytes: u64) -> (tempfile::TempDir, Arc<FileDisk>) {
    let dir = tempfile::tempdir().unwrap();
    let disk = FileDisk::create(&dir.path().join("disk"), len_bytes).unwrap();
    (dir, Arc::new(disk))
}

fn frames(seed: usize, count: usize) -> Vec<Frame> {
    (0..count)
        .map(|index| {
            let mut frame = FrameMut::zeroed();
            frame[..8].copy_from_slice(&(seed as u64 * 100_003 + index as u64).to_le_bytes());
            frame.freeze()
        })
        .collect()
}

/// Waits for the next event of the descriptor as a front end does.
fn wait(fd: RawFd) {
    let mut poll = libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // SAFETY: one pollfd is passed, which lives longer than the call.
    let ready = unsafe { libc::poll(&raw mut poll, 1, 10_000) };
    assert_eq!(ready, 1, "nothing has ended within 10 s");
}

fn collect(ring: &mut Ring, count: usize) -> Vec<Completion> {
    let mut out = Vec::new();
    let start = Instant::now();
    loop {
        ring.complete(&mut out).unwrap();
        if out.len() >= count {
            return out;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "{} of {count} have ended", out.len());
        if let Some(fd) = ring.poll_fd() {
            wait(fd);
        }
    }
}

fn write_and_read_back(mut ring: Ring) {
    let sizes = [1, 3, 1024, 1025, 2600, 1, 1, 1, 64, 2];
    let place = |index: usize| (index as u64) << 24;
    for (index, size) in sizes.into_iter().enumerate() {
        let persist = [Persist::Nothing, Persist::Itself, Persist::All][index % 3];
        ring.write(index as u64, place(index), frames(index, size), persist).unwrap();
    }
    assert_eq!(ring.in_flight(), sizes.len());
    ring.submit().unwrap();
    for completion in collect(&mut ring, sizes.len()) {
        completion.result.unwrap();
        let index = completion.user_data as usize;
        assert!(
            matches!(completion.buffers, Buffers::Write(f) if f == frames(index, sizes[index]))
        );
    }
    for (index, size) in sizes.into_iter().enumerate() {
        let room = (0..size).map(|_| FrameMut::stale()).collect();
        ring.read(1000 + index as u64, place(index), room).unwrap();
    }
    ring.submit().unwrap();
    for completion in collect(&mut ring, sizes.len()) {
        completion.result.unwrap();
        let index = completion.user_data as usize - 1000;
        let Buffers::Read(read) = completion.buffers else { panic!("a read returns its memory") };
        let read: Vec<Frame> = read.into_iter().map(FrameMut::freeze).collect();
        assert!(read == frames(index, sizes[index]), "transfer {index}");
    }
    assert_eq!(ring.in_flight(), 0);
}

#[test]
fn transfers_of_any_length_end_with_their_bytes() {
    let (_dir, disk) = disk(256 << 20);
    let ring = Ring::new(disk, 4); // fewer entries than transfers: the rest waits
    assert!(ring.poll_fd().is_some(), "no io_uring here: {:?}", ring.notices());
    write_and_read_back(ring);
}

#[test]
fn the_blocking_engine_behaves_like_the_ring() {
    let (_dir, disk) = disk(256 << 20);
    let ring = Ring::blocking(disk);
    assert!(ring.poll_fd().is_none());
    write_and_read_back(ring);
}

#[test]
fn ranges_outside_of_the_disk_are_refused() {
    let (_dir, disk) = disk(1 << 20);
    for mut ring in [Ring::new(disk.clone(), 4), Ring::blocking(disk)] {
        assert!(ring.write(1, 1 << 20, frames(1, 1), Persist::Itself).is_err());
        assert!(ring.read(1, u64::MAX - 4095, vec![FrameMut::stale()]).is_err());
        assert!(ring.read(1, 100, vec![FrameMut::stale()]).is_err());
        assert_eq!(ring.in_flight(), 0);
    }
}

#[test]
fn a_truncated_file_is_an_error_and_not_a_hang() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("disk");
    let disk = Arc::new(FileDisk::create(&path, 1 << 20).unwrap());
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(8192).unwrap();
    for mut ring in [Ring::new(disk.clone(), 4), Ring::blocking(disk)] {
        ring.read(7, 4096, (0..4).map(|_| FrameMut::stale()).collect()).unwrap();
        ring.submit().unwrap();
        let ended = collect(&mut ring, 1);
        assert_eq!(ended[0].user_data, 7);
        let kind = ended[0].result.as_ref().unwrap_err().kind();
        assert_eq!(kind, io::ErrorKind::UnexpectedEof);
    }
}

#[test]
fn dropping_a_ring_waits_for_the_kernel() {
    let (_dir, disk) = disk(64 << 20);
    for round in 0..20 {
        let mut ring = Ring::new(disk.clone(), 64);
        for index in 0..32 {
            ring.write(index, index << 20, frames(round, 64), Persist::Nothing).unwrap();
        }
        ring.submit().unwrap();
        drop(ring);
        let mut read = vec![FrameMut::stale()];
        disk.read(31 << 20, &mut read).unwrap();
        assert_eq!(read[0][..], frames(round, 1)[0][..]);
    }
}

#[test]
fn a_partial_transfer_is_continued() {
    let core = Core::default();
    let mut transfer = Transfer::write(&core, 0, 3, Persist::Itself);
    let mut ended = |result: Result<usize, i32>| {
        transfer.begin(&core);
        let next = transfer.ended(result.map_err(io::Error::from_raw_os_error), &core);
        (next, transfer.step(), transfer.done_bytes())
    };
    let write = |dsync| Some(Step::Write { dsync });
    assert!(matches!(ended(Err(libc::EAGAIN)), (Next::Step, step, 0) if step == write(true)));
    assert!(matches!(ended(Err(libc::EOPNOTSUPP)), (Next::Step, step, 0) if step == write(false)));
    assert!(matches!(ended(Ok(4096 + 512)), (Next::Step, step, 4608) if step == write(false)));
    let rest = ended(Ok(3 * 4096 - 4608));
    assert!(matches!(rest, (Next::Step, Some(Step::Sync), _)), "the flush is missing");
    assert!(matches!(ended(Ok(0)), (Next::Ended(Ok(())), ..)));
    // From here on no write requests what the filesystem does not have.
    let next = Transfer::write(&core, 0, 3, Persist::Itself);
    assert_eq!(next.step(), write(false));
    let mut read = Transfer::read(0, 3, Patience::None);
    let error = io::Error::from_raw_os_error(libc::EIO);
    assert!(matches!(read.ended(Err(error), &core), Next::Ended(Err(_))));
}

/// Not a test of behaviour: prints how fast this disk is. `--ignored --nocapture` runs it.
#[test]
#[ignore = "a measurement"]
fn measure_ring() {
    let dir = tempfile::tempdir_in(std::env::var("MEASURE_DIR").unwrap_or(".".into())).unwrap();
    for (prepared, preparer) in [(false, true), (true, false)] {
        let path = dir.path().join(format!("disk-{prepared}-{preparer}"));
        let disk = Arc::new(FileDisk::create(&path, 768 << 20).unwrap());
        if prepared {
            disk.prepare_ahead(0, 768 << 20).unwrap();
        }
        let background = preparer.then(|| {
            crate::Preparer::start(disk.clone(), 256 << 20, |text| println!("{text}")).unwrap()
        });
        for frames_each in [2, 16] {
            let mut ring = Ring::new(disk.clone(), 64);
            let start = Instant::now();
            let count = 6_000;
            let base = (frames_each as u64 - 2) * (12 << 20);
            for index in 0..count {
                let at = base + index * frames_each as u64 * 4096;
                ring.write(index, at, frames(1, frames_each), Persist::Itself).unwrap();
                ring.submit().unwrap();
                collect(&mut ring, 1);
            }
            println!(
                "prepared {prepared} preparer {preparer}: {:?} a durable write of {} KiB",
                start.elapsed() / count as u32,
                frames_each * 4
            );
        }
        drop(background);
    }
}

/// Returns opcode and flags of a step as the kernel sees it: `struct io_uring_sqe` of
/// `linux/io_uring.h`.
fn submitted(entry: &squeue::Entry) -> (u8, i32) {
    assert_eq!(size_of::<squeue::Entry>(), 64);
    // SAFETY: an entry is the kernel's plain structure of 64 bytes, all of which are initialised.
    let bytes: [u8; 64] = unsafe { std::mem::transmute_copy(entry) };
    (bytes[0], i32::from_le_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]))
}

const WRITEV: u8 = 2;
const FSYNC: u8 = 3;
const FSYNC_DATASYNC: i32 = 1;

/// Returns the steps of a write of `frame_count` frames, each of which moves all that it can.
fn steps_of(frame_count: usize, persist: Persist) -> Vec<(u8, i32)> {
    let (_dir, disk) = disk(8 << 20);
    let mut transfers = Transfers::default();
    transfers.write(&disk, 0, 0, frames(0, frame_count), persist).unwrap();
    let (mut steps, mut out) = (Vec::new(), Vec::new());
    while let Some(index) = transfers.ready.pop_front() {
        let slot = &mut transfers.slots[index as usize];
        let mut iovecs = Vec::new();
        let step = submitted(&next_step(slot, &mut iovecs));
        steps.push(step);
        let moved = iovecs.iter().map(|iovec| iovec.iov_len).sum();
        slot.as_mut().unwrap().transfer.begin(disk.core());
        let result = Ok(if step.0 == FSYNC { 0 } else { moved });
        transfers.step_ended(disk.core(), index, result, &mut out);
        assert!(steps.len() < 9);
    }
    out.remove(0).result.unwrap();
    steps
}

/// Only what the kernel was asked to persist is durable. A separate flush is needed where earlier
/// writes count: `RWF_DSYNC` covers only the write that carries it.
#[test]
fn the_kernel_is_requested_to_persist_durable_writes() {
    let dsync = (WRITEV, libc::RWF_DSYNC);
    let (plain, flush) = ((WRITEV, 0), (FSYNC, FSYNC_DATASYNC));
    assert_eq!(steps_of(3, Persist::Nothing), [plain]);
    assert_eq!(steps_of(3, Persist::Itself), [dsync]);
    assert_eq!(steps_of(3, Persist::All), [plain, flush]);
    assert_eq!(steps_of(iovec::IOVECS_MAX + 1, Persist::Itself), [plain, plain, flush]);
    assert_eq!(steps_of(iovec::IOVECS_MAX + 1, Persist::All), [plain, plain, flush]);
    assert_eq!(steps_of(0, Persist::All), [flush]);
}

/// Makes the next writes fail with these errors, without a pause before they are retried.
fn refuse(disk: &FileDisk, errors: &[i32]) {
    disk.retries().at_once.store(true, std::sync::atomic::Ordering::Relaxed);
    disk.retries().faults.lock().unwrap().extend(errors);
}

/// Makes the next flushes fail with these errors, without a pause before anything is retried.
fn refuse_flushes(disk: &FileDisk, errors: &[i32]) {
    refuse(disk, &[]);
    disk.retries().flush_faults.lock().unwrap().extend(errors);
}

type Told = Arc<std::sync::Mutex<Vec<String>>>;

/// Returns each engine, and what it has reported.
fn engines() -> Vec<(tempfile::TempDir, Arc<FileDisk>, Ring, Told)> {
    let made = [Ring::new as fn(Arc<FileDisk>, u32) -> Ring, |disk, _| Ring::blocking(disk)];
    let engine = |make: fn(Arc<FileDisk>, u32) -> Ring| {
        let (dir, disk) = disk(8 << 20);
        let told = Told::default();
        let sentences = told.clone();
        disk.report_to(move |text| sentences.lock().unwrap().push(text.to_owned()));
        let ring = make(disk.clone(), 8);
        (dir, disk, ring, told)
    };
    made.map(engine).into()
}

/// Collects completions, polling as often as the ring asks for.
fn collect_patiently(ring: &mut Ring, count: usize) -> Vec<Completion> {
    let mut out = Vec::new();
    while out.len() < count {
        ring.complete(&mut out).unwrap();
        if out.len() < count && ring.next_retry().is_none() && !ring.has_ended() {
            wait(ring.poll_fd().expect("the blocking engine has ended all transfers"));
        }
    }
    out
}

/// A device refuses writes for a while: each completes once, successfully, with its bytes.
#[test]
fn a_temporarily_refused_write_succeeds_once() {
    for (_dir, disk, mut ring, told) in engines() {
        refuse(&disk, &[libc::EIO, libc::ENOSPC, libc::EIO, libc::ENOSPC, libc::ENOSPC]);
        for (index, persist) in [Persist::Itself, Persist::Nothing].into_iter().enumerate() {
            let at = index as u64 * 65_536;
            ring.write(index as u64, at, frames(index, 5), persist).unwrap();
        }
        ring.submit().unwrap();
        let mut ended: Vec<u64> = Vec::new();
        for completion in collect_patiently(&mut ring, 2) {
            completion.result.unwrap();
            ended.push(completion.user_data);
        }
        ended.sort_unstable();
        assert_eq!((ended, ring.in_flight(), disk.retry_count()), (vec![0, 1], 0, 5));
        for index in 0..2 {
            let mut read: Vec<FrameMut> = (0..5).map(|_| FrameMut::stale()).collect();
            disk.read(index as u64 * 65_536, &mut read).unwrap();
            let read: Vec<Frame> = read.into_iter().map(FrameMut::freeze).collect();
            assert!(read == frames(index, 5));
        }
        let told = told.lock().unwrap();
        assert!(told[0].contains("refuses a write, which is retried"), "{told:?}");
        assert!(told.last().unwrap().contains("accepts writes again"), "{told:?}");
    }
}

/// A device refuses writes forever: the write fails, once, and the next one can succeed.
#[test]
fn a_permanently_refused_write_fails_once() {
    for (_dir, disk, mut ring, told) in engines() {
        // At one location it is retried a few times; a write that fails at a second one is retried
        // longer.
        for (tries, retries) in [(4, 3), (36, 38)] {
            refuse(&disk, &vec![libc::EIO; tries]);
            ring.write(7, 0, frames(1, 1), Persist::Itself).unwrap();
            ring.submit().unwrap();
            let ended = collect_patiently(&mut ring, 1);
            assert_eq!(ended.len(), 1);
            assert_eq!(ended[0].result.as_ref().unwrap_err().raw_os_error(), Some(libc::EIO));
            assert_eq!((ring.in_flight(), disk.retry_count()), (0, retries));
            let text = format!("given up after {tries} tries");
            assert!(told.lock().unwrap().last().unwrap().contains(&text));
        }
        // Permanent errors are not retried, nor is anything once the owner stops.
        for error in [libc::EROFS, libc::ENOSPC] {
            refuse(&disk, &[error]);
            ring.write(8, 0, frames(1, 1), Persist::Itself).unwrap();
            ring.submit().unwrap();
            assert!(collect_patiently(&mut ring, 1)[0].result.is_err());
            disk.end_retries();
        }
        ring.write(9, 0, frames(2, 1), Persist::Itself).unwrap();
        ring.submit().unwrap();
        assert!(collect_patiently(&mut ring, 1)[0].result.is_ok());
    }
}

/// A blocking write is retried as well.
#[test]
fn a_blocking_write_is_retried() {
    let (_dir, disk) = disk(1 << 20);
    refuse(&disk, &[libc::ENOSPC; 50]);
    disk.write(0, &frames(1, 3)).unwrap();
    disk.write_durable(4096, &frames(2, 1)).unwrap();
    assert_eq!(disk.retry_count(), 50);
    refuse(&disk, &[libc::EIO; 4]);
    assert!(disk.write(0, &frames(1, 3)).is_err());
    assert!(disk.retries().faults.lock().unwrap().is_empty());
}

/// A fenced node learns it from the first request of any kind that the device refuses, and before
/// the caller does.
#[test]
fn a_device_reserved_for_another_is_reported_at_once() {
    for (_dir, disk, mut ring, _) in engines() {
        let told = Arc::new(std::sync::atomic::AtomicU32::new(0));
        let count = told.clone();
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        disk.when_fenced(move || _ = count.fetch_add(1, relaxed));
        refuse(&disk, &[libc::EIO]);
        disk.write(0, &frames(1, 1)).unwrap();
        assert_eq!(told.load(relaxed), 0, "the device fails without a reservation");
        refuse(&disk, &[libc::EBADE, libc::EBADE]);
        ring.write(1, 0, frames(1, 1), Persist::Itself).unwrap();
        ring.submit().unwrap();
        assert!(collect_patiently(&mut ring, 1)[0].result.is_err());
        assert_eq!(told.load(relaxed), 1, "it is not retried");
        assert!(disk.write(0, &frames(1, 1)).is_err());
        assert_eq!(told.load(relaxed), 2);
    }
}

#[test]
fn a_flush_refused_by_a_reservation_is_also_reported() {
    let (_dir, disk) = disk(1 << 20);
    let told = Arc::new(std::sync::atomic::AtomicU32::new(0));
    let (count, relaxed) = (told.clone(), std::sync::atomic::Ordering::Relaxed);
    disk.when_fenced(move || _ = count.fetch_add(1, relaxed));
    refuse_flushes(&disk, &[libc::EBADE]);
    assert!(disk.flush().is_err());
    assert_eq!(told.load(relaxed), 1);
}
