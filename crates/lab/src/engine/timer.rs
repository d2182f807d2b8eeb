//! Timers of waiting futures.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

use futures::channel::oneshot;

/// The timers: the next to expire is on top.
#[derive(Default)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<Due>>,
    count: u64,
}

struct Due {
    when: Instant,
    /// The first to wait is woken first.
    number: u64,
    waiter: oneshot::Sender<()>,
}

impl PartialEq for Due {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Due {}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Due {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl Due {
    fn key(&self) -> (Instant, u64) {
        (self.when, self.number)
    }
}

impl Timers {
    pub(super) fn add(&mut self, when: Instant) -> oneshot::Receiver<()> {
        let (waiter, due) = oneshot::channel();
        self.count += 1;
        self.heap.push(Reverse(Due { when, number: self.count, waiter }));
        due
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(due)| due.when)
    }

    /// Wakes the futures whose timers have expired.
    pub(super) fn take_due(&mut self, now: Instant) {
        while self.next_due().is_some_and(|when| when <= now)
            && let Some(Reverse(due)) = self.heap.pop()
        {
            // A future that no longer waits does not need it.
            let _ = due.waiter.send(());
        }
    }
}
