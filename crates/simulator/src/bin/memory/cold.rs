//! Reads of a pool whose metadata is not in memory, from a slow device: how many requests in flight
//! keep it busy, and their effect on reads that need no device.
//!
//! One thread drives the store as a front end does: it performs the reads that the store requests,
//! all of a request at once, each after the latency, and waits for nothing else. In addition a
//! block that is in memory is read every half a millisecond. Reads by the store itself take as
//! long, and block everything.

use std::sync::Arc;
use std::time::Duration;

use block::VolumeRequest;
use store::{Outcome, ReadOperation, Sink, SinkId, Started, Token};

use sys::Disk;

use crate::pool::{self, Pool};
use crate::{Measured, Options};

/// The number of requests in flight, compared with one at a time.
const DEPTH: usize = 64;
/// How often a block that is in memory is read.
const HOT_EVERY_S: f64 = 0.0005;

struct Nobody;

impl Sink for Nobody {
    fn complete(&self, _id: u64, _outcome: Outcome) {}

    fn commit_wanted(&self) {}
}

/// A request for a cold block, and when its device reads have ended.
struct Cold {
    operation: Box<ReadOperation>,
    due_s: f64,
}

/// The measurements of one run.
struct Run {
    cold_per_s: f64,
    hot_p99_us: f64,
}

struct Front<'a> {
    pool: &'a mut Pool,
    sink: SinkId,
    latency_s: f64,
    cold: Vec<Cold>,
    ended: u64,
    hot_us: Vec<f64>,
}

impl Front<'_> {
    fn token(&self) -> Token {
        Token { sink: self.sink, id: 0 }
    }

    fn took(&mut self, started: Started) -> Measured<()> {
        match started {
            Started::Done(reply) => {
                reply?;
                self.ended += 1;
            }
            Started::Read(operation) => {
                let due_s = self.pool.seconds() + self.latency_s;
                self.cold.push(Cold { operation, due_s });
            }
            Started::Queued => return Err("a read was queued behind a commit".into()),
        }
        Ok(())
    }

    /// Begins reads of cold blocks until `depth` are in flight.
    fn begin(&mut self, depth: usize) -> Measured<()> {
        while self.cold.len() < depth {
            let range = self.pool.random_block();
            let request = VolumeRequest::Read { volume: self.pool.volume, range };
            let started = self.pool.store.start(request, self.token());
            self.took(started)?;
        }
        Ok(())
    }

    /// Continues with what the device has read by now.
    fn go_on(&mut self) -> Measured<()> {
        while let Some(at) = self.cold.iter().position(|cold| cold.due_s <= self.pool.seconds()) {
            let Cold { mut operation, .. } = self.cold.swap_remove(at);
            for read in &mut operation.reads {
                let at = self.pool.store.segments().locate(read.place);
                let frames = &mut read.frames;
                read.failed = self.pool.disk.below.read(at, frames).is_err();
            }
            let started = self.pool.store.resume(operation, self.token());
            self.took(started)?;
        }
        Ok(())
    }

    /// Reads the block that is in memory, at its planned time.
    fn read_hot(&mut self, planned_s: f64) -> Measured<()> {
        let range = block::SectorRange::new(0, 8);
        let request = VolumeRequest::Read { volume: self.pool.volume, range };
        self.pool.store.execute(request)?;
        self.hot_us.push((self.pool.seconds() - planned_s) * 1e6);
        Ok(())
    }

    fn run(&mut self, depth: usize, seconds: f64) -> Measured<Run> {
        self.read_hot(0.0)?;
        self.hot_us.clear();
        self.ended = 0;
        let start = self.pool.seconds();
        let mut next_hot = start;
        while self.pool.seconds() - start < seconds {
            self.begin(depth)?;
            let due = self.cold.iter().map(|cold| cold.due_s).fold(next_hot, f64::min);
            // A front end sleeps in its poller.
            #[allow(clippy::disallowed_methods)]
            std::thread::sleep(Duration::from_secs_f64((due - self.pool.seconds()).max(0.0)));
            self.go_on()?;
            while next_hot <= self.pool.seconds() {
                self.read_hot(next_hot)?;
                next_hot += HOT_EVERY_S;
            }
        }
        let cold_per_s = self.ended as f64 / (self.pool.seconds() - start);
        self.cold.clear();
        self.hot_us.sort_by(f64::total_cmp);
        let hot_p99_us = self.hot_us[self.hot_us.len() * 99 / 100];
        Ok(Run { cold_per_s, hot_p99_us })
    }
}

/// Prints a line for each latency.
pub fn table(options: &Options, chunks: u64) -> Measured<()> {
    let memory_bytes = pool::budget_bytes(chunks, options.per_tib_gib[0]);
    let mut pool = pool::make(&options.dir, chunks, pool::budget_bytes(chunks, 1.0))?;
    println!(
        "| latency, ms | reads/s, one | reads/s, {DEPTH} in flight | ratio | cached read p99, us, \
         alone | beside one | beside {DEPTH} |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|");
    for &latency_ms in &options.latency_ms {
        pool = pool.reopen(memory_bytes)?.0;
        pool.settle()?;
        let latency = Duration::from_secs_f64(latency_ms / 1e3);
        pool.disk.set_latency(latency);
        let sink = pool.store.register_sink(Arc::new(Nobody));
        let mut front = Front {
            pool: &mut pool,
            sink,
            latency_s: latency.as_secs_f64(),
            cold: Vec::new(),
            ended: 0,
            hot_us: Vec::new(),
        };
        let runs: Vec<Run> = [0, 1, DEPTH]
            .into_iter()
            .map(|depth| front.run(depth, options.seconds))
            .collect::<Measured<_>>()?;
        pool.disk.set_latency(Duration::ZERO);
        println!(
            "| {latency_ms} | {:.0} | {:.0} | {:.1} | {:.0} | {:.0} | {:.0} |",
            runs[1].cold_per_s,
            runs[2].cold_per_s,
            runs[2].cold_per_s / runs[1].cold_per_s,
            runs[0].hot_p99_us,
            runs[1].hot_p99_us,
            runs[2].hot_p99_us,
        );
    }
    println!();
    Ok(())
}
