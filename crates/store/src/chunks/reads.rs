//! Parallel reads for a thread that may wait for them, such as that of a recovery.
//!
//! They need a channel ([`segments::Channel`]). If the medium has none, as in the simulator, the
//! caller reads sequentially.

use std::collections::HashMap;

use block::FrameMut;
use format::Place;
use segments::{Buffers, Channel, Completion};

use crate::chunks::medium::Medium;
use crate::chunks::pages::FastState;

/// Reads in flight, and those that have ended and were not collected yet.
pub(crate) struct Reads {
    channel: Box<dyn Channel>,
    /// The number of the next one.
    next: u64,
    /// No caller waits for reads before this one.
    oldest: u64,
    ended: HashMap<u64, Option<Vec<FrameMut>>, FastState>,
    completions: Vec<Completion>,
}

impl Reads {
    /// Returns up to `side_by_side` parallel reads; `None` if the medium has no channel.
    pub(crate) fn of(medium: &Medium, side_by_side: u32) -> Option<Self> {
        let channel = medium.disk.channel(side_by_side).ok()?;
        let (ended, completions) = Default::default();
        Some(Self { channel, next: 0, oldest: 0, ended, completions })
    }

    /// Queues a read of whole blocks within a segment; returns its number.
    pub(crate) fn queue(&mut self, place: Place, frames: Vec<FrameMut>) -> u64 {
        let number = self.next;
        self.next += 1;
        if self.channel.read(number, place, frames).is_err() {
            self.ended.insert(number, None);
        }
        number
    }

    /// Drops everything that was queued so far.
    pub(crate) fn forget(&mut self) {
        self.oldest = self.next;
        self.ended.clear();
    }

    /// Starts what was queued. Reads that can't be started fail when they are waited for.
    pub(crate) fn start(&mut self) {
        let _ = self.channel.submit();
    }

    /// Returns whether these reads, none of which was waited for yet, have ended. Does not block.
    pub(crate) fn have_ended(&mut self, numbers: &[u64]) -> bool {
        // If the system returns an error, it is time to wait.
        self.collect().is_none() || numbers.iter().all(|number| self.ended.contains_key(number))
    }

    /// Collects what has ended; returns how many.
    fn collect(&mut self) -> Option<usize> {
        self.channel.complete(&mut self.completions).ok()?;
        let count = self.completions.len();
        for Completion { user_data, buffers, result } in self.completions.drain(..) {
            let frames = match (buffers, result) {
                (Buffers::Read(frames), Ok(())) => Some(frames),
                _ => None,
            };
            if user_data >= self.oldest {
                self.ended.insert(user_data, frames);
            }
        }
        Some(count)
    }

    /// Waits for the end of a read that was started; returns the data, or `None` if it failed. Call
    /// it once for each.
    pub(crate) fn end(&mut self, number: u64) -> Option<Vec<FrameMut>> {
        loop {
            if let Some(frames) = self.ended.remove(&number) {
                return frames;
            }
            if self.collect()? > 0 {
                continue;
            }
            if self.channel.in_flight() == 0 {
                return None;
            }
            self.channel.wait().ok()?;
        }
    }
}
