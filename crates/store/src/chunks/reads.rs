//! Reads that go on side by side, for a thread that may wait for them, such as that of a recovery.
//!
//! They need a channel ([`segments::Channel`]). Where the medium has none, as in the simulator, the
//! caller reads one place after the other.

use std::collections::HashMap;

use block::FrameMut;
use format::Place;
use segments::{Buffers, Channel, Completion};

use crate::chunks::medium::Medium;
use crate::chunks::pages::FastState;

/// Reads under way, and those that have ended and nobody has asked for yet.
pub(crate) struct Reads {
    channel: Box<dyn Channel>,
    /// The number of the next one.
    next: u64,
    /// Those before this one are waited for no more.
    oldest: u64,
    ended: HashMap<u64, Option<Vec<FrameMut>>, FastState>,
    completions: Vec<Completion>,
}

impl Reads {
    /// For up to `side_by_side` reads at the same time; `None` if the medium has no channel.
    pub(crate) fn of(medium: &Medium, side_by_side: u32) -> Option<Self> {
        let channel = medium.disk.channel(side_by_side).ok()?;
        let (ended, completions) = Default::default();
        Some(Self { channel, next: 0, oldest: 0, ended, completions })
    }

    /// Queues a read of whole blocks inside of a segment; its number.
    pub(crate) fn queue(&mut self, place: Place, frames: Vec<FrameMut>) -> u64 {
        let number = self.next;
        self.next += 1;
        if self.channel.read(number, place, frames).is_err() {
            self.ended.insert(number, None);
        }
        number
    }

    /// Nobody waits any more for what was queued by now.
    pub(crate) fn forget(&mut self) {
        self.oldest = self.next;
        self.ended.clear();
    }

    /// Starts what was queued. What can't be started fails when its end is waited for.
    pub(crate) fn start(&mut self) {
        let _ = self.channel.submit();
    }

    /// Whether these reads have ended, none of which was waited for yet. Waits for nothing.
    pub(crate) fn have_ended(&mut self, numbers: &[u64]) -> bool {
        // If the system refuses to tell, it is time to wait.
        self.collect().is_none() || numbers.iter().all(|number| self.ended.contains_key(number))
    }

    /// Takes what has ended; how many that were.
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

    /// Waits for the end of a read that was started: what was read, or `None` if that has failed.
    /// To be called once for each.
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
