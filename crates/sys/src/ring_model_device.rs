//! A simulated kernel and device.

use std::collections::BTreeMap;

use io_uring::squeue;

pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// A device with a cache, by bytes.
pub(super) struct Device {
    pub(super) seen: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// What is only in the cache: ranges that were written, oldest first.
    cached: Vec<(usize, Vec<u8>)>,
    /// How often it has lost what was cached.
    pub(super) losses: u64,
    /// How many steps fail from here on.
    failing: u64,
    /// How often each result was returned.
    pub(super) answers: BTreeMap<i32, u64>,
}

/// A step as the kernel sees it: `struct io_uring_sqe`.
pub(super) struct Step {
    opcode: u8,
    offset: usize,
    vectors: Vec<(usize, usize)>,
    dsync: bool,
}

impl Step {
    pub(super) fn of(entry: &squeue::Entry) -> Self {
        assert_eq!(size_of::<squeue::Entry>(), 64);
        // SAFETY: an entry is the kernel's plain structure of 64 bytes, all of them initialised.
        let bytes: [u8; 64] = unsafe { std::mem::transmute_copy(entry) };
        let long = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let word = |at: usize| i32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let count = if bytes[0] == FSYNC { 0 } else { word(24) as usize };
        let first = long(16) as *const libc::iovec;
        // SAFETY: the entry points to this many vectors of the slot, which does not move meanwhile.
        let vectors = (0..count).map(|index| unsafe { *first.add(index) });
        let vectors = vectors.map(|vector| (vector.iov_base as usize, vector.iov_len)).collect();
        let dsync = bytes[0] == WRITEV && word(28) & libc::RWF_DSYNC != 0;
        Self { opcode: bytes[0], offset: long(8), vectors, dsync }
    }

    fn len(&self) -> usize {
        self.vectors.iter().map(|(_, len)| len).sum()
    }

    /// Calls `at` with the memory of the first `count` bytes, and their offset on the device.
    fn for_each(&self, count: usize, mut at: impl FnMut(usize, &mut [u8])) {
        let mut done = 0;
        for (base, len) in &self.vectors {
            let here = (*len).min(count - done);
            // SAFETY: the vector points to memory that the transfer owns, and nothing else accesses
            // now.
            at(self.offset + done, unsafe {
                std::slice::from_raw_parts_mut(*base as *mut u8, here)
            });
            done += here;
        }
    }
}

const READV: u8 = 1;
const WRITEV: u8 = 2;
const FSYNC: u8 = 3;

impl Device {
    pub(super) fn new(len: usize) -> Self {
        let (seen, durable) = (vec![0; len], vec![0; len]);
        Self { seen, durable, cached: Vec::new(), losses: 0, failing: 0, answers: BTreeMap::new() }
    }

    /// Does a step, or a part of it, or fails.
    pub(super) fn perform(&mut self, step: &Step, rng: &mut Rng) -> i32 {
        let result = self.answer(step, rng);
        *self.answers.entry(result.min(1)).or_default() += 1;
        result
    }

    fn answer(&mut self, step: &Step, rng: &mut Rng) -> i32 {
        if self.failing > 0 && step.opcode != READV {
            self.failing -= 1;
            return self.fail(step, libc::EIO, rng);
        }
        match rng.below(24) {
            0 => return -libc::EINTR,
            1 => return -libc::EAGAIN,
            2 if step.dsync => return -libc::EOPNOTSUPP,
            3 if step.opcode == WRITEV => return self.fail(step, libc::ENOSPC, rng),
            4 => return self.fail(step, libc::EIO, rng),
            5 if rng.below(8) == 0 => self.failing = 20 + rng.below(60),
            _ => {}
        }
        match step.opcode {
            FSYNC => {
                for (at, bytes) in self.cached.drain(..) {
                    self.durable[at..at + bytes.len()].copy_from_slice(&bytes);
                }
                0
            }
            WRITEV => self.write(step, rng),
            _ => {
                let count = part_of(step.len(), rng);
                step.for_each(count, |at, memory| {
                    memory.copy_from_slice(&self.seen[at..at + memory.len()]);
                });
                count as i32
            }
        }
    }

    fn write(&mut self, step: &Step, rng: &mut Rng) -> i32 {
        let count = part_of(step.len(), rng);
        step.for_each(count, |at, memory| {
            self.seen[at..at + memory.len()].copy_from_slice(memory);
            if step.dsync {
                self.durable[at..at + memory.len()].copy_from_slice(memory);
            } else {
                self.cached.push((at, memory.to_vec()));
            }
        });
        if step.dsync {
            // It has replaced what the cache had of it; transfers do not overlap.
            let range = step.offset..step.offset + count;
            for (at, bytes) in &mut self.cached {
                let overlap = range.start.max(*at)..range.end.min(*at + bytes.len());
                for byte in overlap {
                    bytes[byte - *at] = self.durable[byte];
                }
            }
        }
        count as i32
    }

    /// A write that fails may have written anything; a flush, or a write with one, loses any part.
    fn fail(&mut self, step: &Step, error: i32, rng: &mut Rng) -> i32 {
        if step.opcode == WRITEV && rng.below(2) == 0 && step.len() > 0 {
            let count = part_of(step.len(), rng);
            step.for_each(count, |at, memory| {
                self.seen[at..at + memory.len()].copy_from_slice(memory);
                self.cached.push((at, memory.to_vec()));
            });
        }
        if (step.opcode == FSYNC || step.dsync) && error == libc::EIO {
            self.losses += 1;
            self.cached.retain(|_| rng.below(2) == 0);
            self.seen = self.durable.clone();
            for (at, bytes) in &self.cached {
                self.seen[*at..at + bytes.len()].copy_from_slice(bytes);
            }
        }
        -error
    }
}

/// All of it, or any part.
fn part_of(len: usize, rng: &mut Rng) -> usize {
    if rng.below(3) > 0 { len } else { 1 + rng.below(len as u64) as usize }
}
