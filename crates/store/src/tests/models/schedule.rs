//! Which thread runs next: random orders, each identified by a number.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use shuttle::scheduler::{Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};

/// How long each model runs, in seconds, instead of its usual number of orders.
const SECONDS: &str = "HOLDFAST_MODELS_SECONDS";
/// The one order to run, or the first one if a time is set.
const ORDER: &str = "HOLDFAST_MODELS_ORDER";

/// The rarest change of the first thread: one in this many steps, as a power of two.
const RAREST_CHANGE: u64 = 16;
/// How much more often a thread becomes the last where it yields.
const MORE_WHERE_YIELDING: u64 = 16;
/// A model that takes this many steps runs forever.
const STEPS_MAX: usize = 1_000_000;
/// For each thread of a model; the unused part takes no memory.
const STACK_BYTES: usize = 1 << 20;

/// Runs a model in this many orders, or in those that the environment selects, each time from its
/// start. Prints an order in which it fails or deadlocks.
pub(super) fn explore(name: &str, orders: u64, model: fn()) {
    let number = |variable| {
        let text = std::env::var(variable).ok();
        text.map(|text| text.parse::<u64>().expect(variable))
    };
    let (seconds, order) = (number(SECONDS), number(ORDER));
    let first = order.unwrap_or(0);
    let last = match (seconds, order) {
        (Some(_), _) => u64::MAX,
        (None, Some(only)) => only,
        (None, None) => orders - 1,
    };
    let taken = Arc::<Taken>::default();
    let scheduler = Orders { next: first, last, taken: taken.clone(), order: Order::new(first) };
    let runner = Runner::new(scheduler, config(seconds.map(Duration::from_secs)));
    let ended = catch_unwind(AssertUnwindSafe(|| runner.run(model)));
    let count = taken.orders.load(Relaxed);
    if let Err(why) = ended {
        let order = first + count - 1;
        eprintln!("{name}: failed in order {order}; {ORDER}={order} repeats it");
        resume_unwind(why);
    }
    eprintln!("{name}: {count} orders, {} steps each", taken.steps.load(Relaxed) / count.max(1));
}

fn config(max_time: Option<Duration>) -> Config {
    let mut config = Config::new();
    config.max_time = max_time;
    config.stack_size = STACK_BYTES;
    config.failure_persistence = FailurePersistence::None;
    config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
    // It treats all atomics as sequentially consistent, as docs/testing.md says.
    config.silence_warnings = true;
    config
}

/// The steps taken so far.
#[derive(Default)]
struct Taken {
    orders: AtomicU64,
    steps: AtomicU64,
}

/// One order after the other.
struct Orders {
    next: u64,
    last: u64,
    taken: Arc<Taken>,
    order: Order,
}

impl Scheduler for Orders {
    fn new_execution(&mut self) -> Option<Schedule> {
        if self.next > self.last {
            return None;
        }
        self.order = Order::new(self.next);
        self.next += 1;
        self.taken.orders.fetch_add(1, Relaxed);
        Some(Schedule::new(0))
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        self.taken.steps.fetch_add(1, Relaxed);
        self.order.next(runnable, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.order.draw()
    }
}

/// One order. Each thread gets a random rank when it is first seen, and the runnable one with the
/// highest rank runs. At any step it may become the last of all instead: some threads do at every
/// other step, and some once in thousands, so that one stops anywhere while others go far.
struct Order {
    random: u64,
    threads: Vec<Ranked>,
    /// The lowest rank given so far.
    last: u64,
}

struct Ranked {
    rank: u64,
    /// It becomes the last at one in this many steps.
    change: u64,
}

/// Ranks of threads that were never last.
const RANKS: u64 = 1 << 32;

impl Order {
    fn new(order: u64) -> Self {
        Self { random: order, threads: Vec::new(), last: RANKS }
    }

    /// SplitMix64: neighbouring orders have nothing in common.
    fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn thread(&mut self, task: TaskId) -> &mut Ranked {
        let index = usize::from(task);
        while self.threads.len() <= index {
            let rank = RANKS + self.draw() % RANKS;
            let change = 2 << (self.draw() % RAREST_CHANGE);
            self.threads.push(Ranked { rank, change });
        }
        &mut self.threads[index]
    }

    fn next(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        if let [only] = runnable {
            return Some(only.id());
        }
        if let Some(current) = current {
            let change = self.thread(current).change;
            let change = if is_yielding { (change / MORE_WHERE_YIELDING).max(2) } else { change };
            if self.draw().is_multiple_of(change) {
                self.last -= 1;
                self.thread(current).rank = self.last;
            }
        }
        runnable.iter().map(|task| task.id()).max_by_key(|task| self.thread(*task).rank)
    }
}
