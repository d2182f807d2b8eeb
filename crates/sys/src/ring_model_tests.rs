//! The ring's own code over a modelled kernel and device: steps are done in any order, move any
//! part of their bytes, and fail, and their completions come in any order as well; flushes that
//! fail lose what was cached. Each result of the ring is compared with the device's content.

use std::collections::BTreeMap;

use block::FRAME_BYTES;

use super::*;

#[path = "ring_model_device.rs"]
mod device;

use device::{Device, Rng, Step};

/// Frames of each small location, and of the one that takes more vectors than one call.
const SMALL: usize = 5;
const LARGE: usize = iovec::IOVECS_MAX + 7;
const PLACES: usize = 5;

/// A location on the device, and what is known about it.
struct Place {
    start: usize,
    frames: usize,
    /// A transfer is in flight.
    busy: bool,
    /// The content that the last successful write left; `None` after a failed one.
    seen: Option<Vec<u8>>,
    /// Whether a transfer has reported that content durable.
    durable: bool,
    /// How often the device had lost its cache when the transfer began.
    losses: u64,
    /// How many flushes had failed when the last write began.
    failures: u64,
    /// How many writes have begun.
    writes: u64,
}

/// Locations, and how many writes had begun there.
type Covered = Vec<(usize, u64)>;

struct World {
    disk: Arc<FileDisk>,
    transfers: Transfers,
    /// Steps that the device has done, whose completions were not reported yet.
    untold: Vec<(u32, i32)>,
    device: Device,
    places: Vec<Place>,
    /// For each write in flight: its persistence, its bytes, and the locations whose content it
    /// would make durable, with how many writes had begun there.
    writes: BTreeMap<u64, (Persist, Vec<u8>, Covered)>,
    rng: Rng,
    seed: u8,
    ok: [u64; 4],
    failed: u64,
}

impl World {
    fn new(disk: &Arc<FileDisk>, seed: u64) -> Self {
        let mut start = 0;
        let places: Vec<Place> = (0..PLACES)
            .map(|index| {
                let frames = if index == 0 { LARGE } else { SMALL };
                let (busy, seen, durable) = (false, None, false);
                start += frames * FRAME_BYTES;
                let start = start - frames * FRAME_BYTES;
                Place { start, frames, busy, seen, durable, losses: 0, failures: 0, writes: 0 }
            })
            .collect();
        let rng = Rng(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let (device, writes) = (Device::new(start), BTreeMap::new());
        let (disk, transfers, untold) = (disk.clone(), Transfers::default(), Vec::new());
        let (ok, failed) = ([0; 4], 0);
        Self { disk, transfers, untold, device, places, writes, rng, seed: 0, ok, failed }
    }

    /// Queues a transfer of a location that has none.
    fn begin(&mut self) {
        let index = self.rng.below(PLACES as u64 * 4) as usize;
        // The large one seldom: it takes the time of all others.
        let index = if index == 0 { 0 } else { 1 + index % (PLACES - 1) };
        if self.places[index].busy {
            return;
        }
        let place = &self.places[index];
        let (start, frames) = (place.start, place.frames);
        let (buffers, persist) = match self.rng.below(4) {
            0 => {
                (Buffers::Read((0..frames).map(|_| FrameMut::stale()).collect()), Persist::Nothing)
            }
            kind => {
                self.seed = self.seed.wrapping_add(1);
                let count = if kind == 3 && self.rng.below(3) == 0 { 0 } else { frames };
                let frames = (0..count).map(|frame| {
                    let mut bytes = FrameMut::zeroed();
                    bytes.fill(self.seed.wrapping_add(frame as u8));
                    bytes.freeze()
                });
                let persist = [Persist::Nothing, Persist::Itself, Persist::All][kind as usize - 1];
                (Buffers::Write(frames.collect()), persist)
            }
        };
        if let Buffers::Write(frames) = &buffers {
            let bytes: Vec<u8> = frames.iter().flat_map(|frame| frame.to_vec()).collect();
            let others = (0..PLACES).filter(|at| !self.places[*at].busy);
            let written = others.filter(|at| self.places[*at].seen.is_some());
            let covered = match persist {
                Persist::All => written.map(|at| (at, self.places[at].writes)).collect(),
                _ => Vec::new(),
            };
            if !bytes.is_empty() {
                (self.places[index].seen, self.places[index].durable) = (None, false);
                self.places[index].failures = self.disk.flush_failures();
                self.places[index].writes += 1;
            }
            self.writes.insert(index as u64, (persist, bytes, covered));
        }
        (self.places[index].busy, self.places[index].losses) = (true, self.device.losses);
        let (user_data, offset_bytes) = (index as u64, start as u64);
        let queued = match buffers {
            Buffers::Read(frames) => {
                self.transfers.read(&self.disk, user_data, offset_bytes, frames)
            }
            Buffers::Write(frames) => {
                self.transfers.write(&self.disk, user_data, offset_bytes, frames, persist)
            }
        };
        queued.unwrap();
    }

    /// Does any one of the steps that are due, or reports any one completion.
    fn step(&mut self) {
        let mut out = Vec::new();
        self.transfers.wake_all(&self.disk, &mut out);
        let (due, untold) = (self.transfers.ready_count() as u64, self.untold.len() as u64);
        if due > 0 && (untold == 0 || self.rng.below(2) == 0) {
            let at = self.rng.below(due) as usize;
            let index = self.transfers.ready.remove(at).unwrap();
            let slot = &mut self.transfers.slots[index as usize];
            let mut iovecs = Vec::new();
            let step = Step::of(&next_step(slot, &mut iovecs));
            slot.as_mut().unwrap().transfer.begin(self.disk.core());
            self.untold.push((index, self.device.perform(&step, &mut self.rng)));
        } else if untold > 0 {
            let (index, result) = self.untold.swap_remove(self.rng.below(untold) as usize);
            let result = usize::try_from(result).map_err(|_| io::Error::from_raw_os_error(-result));
            self.transfers.step_ended(self.disk.core(), index, result, &mut out);
        }
        out.into_iter().for_each(|completion| self.ended(completion));
    }

    fn ended(&mut self, completion: Completion) {
        let index = completion.user_data as usize;
        let place = &mut self.places[index];
        let range = place.start..place.start + place.frames * FRAME_BYTES;
        assert!(std::mem::take(&mut place.busy), "a transfer ended twice");
        if completion.result.is_err() {
            self.failed += 1;
        }
        match completion.buffers {
            Buffers::Read(frames) => {
                // What is lost during a read may be in one part of it and not in another.
                if completion.result.is_ok() && place.losses == self.device.losses {
                    let read: Vec<u8> = frames.iter().flat_map(|frame| frame.to_vec()).collect();
                    assert!(read == self.device.seen[range], "a read returned wrong bytes");
                    self.ok[0] += 1;
                }
            }
            Buffers::Write(_) => {
                let (persist, bytes, covered) = self.writes.remove(&completion.user_data).unwrap();
                if completion.result.is_ok() {
                    self.written(index, persist, bytes, &covered);
                }
            }
        }
    }

    /// A write has succeeded: its promise must hold.
    fn written(
        &mut self,
        index: usize,
        persist: Persist,
        bytes: Vec<u8>,
        covered: &[(usize, u64)],
    ) {
        // A flush covers those writes that no failed flush could have lost since they began.
        let failures = self.disk.flush_failures();
        let place = &mut self.places[index];
        let speaks = !bytes.is_empty() || place.failures == failures;
        if !bytes.is_empty() {
            place.seen = Some(bytes);
        }
        match persist {
            Persist::Nothing => self.ok[1] += 1,
            Persist::Itself => {
                place.durable = true;
                self.ok[2] += 1;
            }
            Persist::All => {
                self.ok[3] += 1;
                place.durable |= place.seen.is_some() && speaks;
                for (at, writes) in covered {
                    // Since then others may have begun there, and completed.
                    let other = &mut self.places[*at];
                    let speaks = other.writes == *writes && other.failures == failures;
                    other.durable |= other.seen.is_some() && speaks;
                }
            }
        }
        self.check();
    }

    /// After a power loss the device holds everything that was reported durable.
    fn check(&self) {
        for place in self.places.iter().filter(|place| place.durable) {
            let Some(bytes) = &place.seen else { continue };
            let range = place.start..place.start + bytes.len();
            assert!(self.device.durable[range] == **bytes, "durable data is lost");
        }
    }
}

/// A durable write stays intact until another begins at its location, regardless of failures.
#[test]
fn completions_are_true_for_any_results_of_the_kernel() {
    let dir = tempfile::tempdir().unwrap();
    let len = ((LARGE + PLACES * SMALL) * FRAME_BYTES) as u64;
    let (mut ok, mut failed, mut answers) = ([0; 4], 0, BTreeMap::new());
    for seed in 0..30 {
        let path = dir.path().join(format!("disk-{seed}"));
        let disk = Arc::new(FileDisk::create(&path, len).unwrap());
        disk.retries().at_once.store(true, std::sync::atomic::Ordering::Relaxed);
        let mut world = World::new(&disk, seed);
        for _ in 0..400 {
            if world.rng.below(3) == 0 {
                world.begin();
            }
            world.step();
        }
        while world.places.iter().any(|place| place.busy) {
            world.step();
        }
        world.check();
        assert_eq!((world.transfers.in_flight(), world.untold.len()), (0, 0));
        ok.iter_mut().zip(world.ok).for_each(|(sum, count)| *sum += count);
        failed += world.failed;
        world
            .device
            .answers
            .iter()
            .for_each(|(of, count)| *answers.entry(*of).or_default() += count);
        std::fs::remove_file(path).unwrap();
    }
    assert!(ok.iter().all(|count| *count > 30) && failed > 30, "{ok:?}, {failed} failed");
    let given: u64 = answers.values().sum();
    assert!(answers.len() >= 6 && given > 5_000, "{answers:?}");
}
