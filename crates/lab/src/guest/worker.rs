//! A worker of a load: one request after another.

use std::rc::Rc;
use std::time::{Duration, Instant};

use super::content::{GUEST_BLOCK_BYTES, fill_block};
use super::load::{Known, LoadPlan, State, Target};
use crate::disk::DiskError;
use crate::engine::Reactor;

/// How often to choose another location if the chosen one is busy.
const CHOICES: usize = 16;

/// Reads and writes one disk until the load is stopped.
pub(super) async fn run(state: Rc<State>, reactor: Reactor, index: usize) -> Result<(), DiskError> {
    let target = &state.disks[index];
    let mut buffer = vec![0; state.plan.bytes as usize];
    let mut due = Instant::now();
    while !state.stopped.get() {
        let Some(request) = target.choose(&state.plan) else {
            reactor.step_back().await;
            continue;
        };
        let started = Instant::now();
        let end = target.perform(&request, &mut buffer).await;
        target.finish(&request, end.is_ok());
        end?;
        state.meter.borrow_mut().add(state.plan.bytes, started.elapsed());
        if let Some(interval) = state.interval.get() {
            due = next(due, interval, Instant::now());
            reactor.sleep(due.saturating_duration_since(Instant::now())).await;
        }
    }
    Ok(())
}

/// Returns when the next request is due: delays persist, and no request is made up for.
fn next(due: Instant, interval: Duration, now: Instant) -> Instant {
    (due + interval).max(now)
}

/// A read or a write of some blocks.
struct Request {
    first: u64,
    count: u64,
    is_read: bool,
}

impl Request {
    fn blocks(&self) -> std::ops::Range<u64> {
        self.first..self.first + self.count
    }
}

impl Target {
    /// Returns a location without a request in flight; `None` if all that were tried are busy.
    fn choose(&self, plan: &LoadPlan) -> Option<Request> {
        let known = &mut *self.known.borrow_mut();
        let count = plan.bytes / GUEST_BLOCK_BYTES as u64;
        let span_bytes = plan.span_bytes.unwrap_or(u64::MAX).min(self.disk.bytes());
        let slots = (span_bytes / GUEST_BLOCK_BYTES as u64 / count).max(1);
        for _ in 0..CHOICES {
            let first = if known.random.percent(plan.sequential_percent) {
                let first = known.next_block;
                known.next_block = (first + count) % (slots * count);
                first
            } else {
                known.random.below(slots) * count
            };
            let is_read = known.random.percent(plan.read_percent);
            let request = Request { first, count, is_read };
            if request.blocks().all(|block| !known.busy.contains(&block)) {
                known.busy.extend(request.blocks());
                return Some(request);
            }
        }
        None
    }

    async fn perform(&self, request: &Request, buffer: &mut [u8]) -> Result<(), DiskError> {
        let offset = request.first * GUEST_BLOCK_BYTES as u64;
        if request.is_read {
            let held = self.disk.read(offset, buffer.len() as u64).await?;
            return self.check(offset, &held);
        }
        {
            let known = self.known.borrow();
            let seed = known.seed_of_writes();
            let blocks = request.blocks().zip(buffer.chunks_exact_mut(GUEST_BLOCK_BYTES));
            for (block, chunk) in blocks {
                fill_block(seed, block, known.next_version(block), chunk);
            }
        }
        self.disk.write(offset, buffer).await
    }

    fn finish(&self, request: &Request, is_done: bool) {
        let known = &mut *self.known.borrow_mut();
        for block in request.blocks() {
            known.busy.remove(&block);
            if is_done && !request.is_read {
                let version = known.next_version(block);
                known.versions.insert(block, version);
            }
        }
    }
}

impl Known {
    fn next_version(&self, block: u64) -> u32 {
        self.versions.get(&block).map_or(1, |version| version + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_evenly_spaced_and_missed_ones_are_skipped() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        assert_eq!(next(start, ms(10), start + ms(3)), start + ms(10));
        assert_eq!(next(start, ms(10), start + ms(25)), start + ms(25));
    }
}
