//! Bounded work of management: each request in its largest legal form, several at once, on volumes
//! of 64 TiB, while another host reads and writes 4 KiB and 64 KiB and checks each byte.
//!
//! A row passes if every request ends as expected, the other host continues, and no more than a
//! bounded amount for each request is written to the device. In total the array's memory grows by
//! no more than its limit. The API description that the array serves lists all requests: each of
//! them has a row. Times are printed, but not judged, except by a watchdog. At the end the process
//! is killed, the pool opens, and all acknowledged changes are present.

mod connections;
mod containers;
mod groups;
mod hosts;
mod http;
mod kept;
mod lists;
mod names;
mod people;
mod receivers;
mod routes;
mod snapshots;
mod system;
mod volumes;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use libiscsi::Session;
use serde_json::Value;

use self::http::{Answer, Connection, Request};
use self::routes::Operation;
use crate::array::{Array, Shape};
use crate::bounded::{self, Slowest};
use crate::good::{BLOCK, Good};
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;
use crate::{Arguments, array};

/// How many requests are in flight in each row; fewer if a row has fewer.
const IN_FLIGHT: usize = 32;
/// The most that one request may write to the device: the changes of one commit, and of maps.
const WRITTEN_BYTES_EACH: u64 = 4 << 20;
/// The most that may be written meanwhile for the other host and for earlier work.
const WRITTEN_BYTES_BASE: u64 = 1 << 30;

/// The context of all rows.
pub struct World<'a> {
    pub array: &'a Array,
    good: &'a Good,
    token: String,
    operations: Vec<Operation>,
    /// The operations that were used: method and path.
    used: Mutex<BTreeSet<(String, String)>>,
    slowest: Mutex<Slowest>,
}

/// Runs all of it.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let settings = system::settings();
    let shape = Shape { capacity: "6G", settings: settings.leak(), ..Shape::default() };
    let mut array = array(arguments, shape)?;
    let watched = array.volume("watched", "1G", "peer", 1)?;
    fill_two_percent(&watched)?;
    let units = bounded::units(&array, &watched)?;
    // It gets unit attentions: thresholds are crossed, and volumes are connected to it.
    let good = Good::resending();
    let (mut kept, mut slowest) = (None, String::new());
    thread::scope(|scope| {
        let worker = scope.spawn(|| good.work(&watched));
        report.check("volumes of 64 TiB, full of one block and of references", || {
            good.beside(|| bounded::fill_two(&units))
        });
        let before = array.peak_kib();
        match World::new(&array, &good) {
            Ok(world) => {
                kept = rows(report, &world);
                slowest = world.slowest.lock().unwrap_or_else(PoisonError::into_inner).says();
            }
            Err(error) => report.check("the description is served", || Err(error)),
        }
        bounded::check_growth(report, &array, before);
        good.stop.store(true, Ordering::Relaxed);
        report.check("the other host's commands all ended, with the right data", || {
            let detail = worker.join().map_err(|_| anyhow!("it panicked"))??;
            Ok(format!("{detail}; {slowest}"))
        });
    });
    report.check("after kill -9 the pool opens with all acknowledged data", || {
        array.kill()?;
        let took = array.start()?;
        good.verify(&mut Session::connect(&watched.config())?)?;
        let kept = kept.context("the state before the kill was not recorded")?;
        let detail = kept.check(&World::new(&array, &good)?)?;
        Ok(format!("{detail}; ready in {} ms", took.as_millis()))
    });
    Ok(())
}

/// Writes 2% of the pool, after what the other host writes: the space alert stays open however
/// much reclaim frees.
fn fill_two_percent(watched: &Target) -> Result<()> {
    const MIB: usize = 1 << 20;
    let (mut session, mut random) = (Session::connect(&watched.config())?, Random::new(2));
    for number in 512..512 + 128 {
        session.write((number * MIB / BLOCK) as u64, random.bytes(MIB), BLOCK as u32)?;
    }
    Ok(())
}

/// Objects are created, listed, changed and ended again, except the first of each kind.
fn rows(report: &mut Report, world: &World) -> Option<kept::Kept> {
    system::settled(report, world);
    volumes::made(report, world);
    snapshots::made(report, world);
    groups::made(report, world);
    hosts::made(report, world);
    connections::made(report, world);
    people::all(report, world);
    receivers::all(report, world);
    containers::volume_groups(report, world);
    containers::pods(report, world);
    lists::all(report, world);
    system::all(report, world);
    connections::ended(report, world);
    hosts::ended(report, world);
    groups::ended(report, world);
    snapshots::ended(report, world);
    volumes::ended(report, world);
    report.check("each request in the description has a row", || {
        let used = world.used.lock().unwrap_or_else(PoisonError::into_inner);
        routes::check_all(&world.operations, &used, routes::WITHOUT_ROW)
    });
    let mut kept = None;
    report.check("all remaining data can be read", || {
        let found = kept::Kept::read(world)?;
        let detail = found.says();
        kept = Some(found);
        Ok(detail)
    });
    kept
}

impl<'a> World<'a> {
    fn new(array: &'a Array, good: &'a Good) -> Result<Self> {
        let token = array.token()?;
        let request = Request::new("GET", "/v1/openapi.json");
        let answer = Connection::open(&array.api, &token)?.ask(&request)?;
        request.check(&answer)?;
        let operations = routes::operations(&answer.json()?)?;
        let (used, slowest) = (Mutex::default(), Mutex::default());
        Ok(Self { array, good, token, operations, used, slowest })
    }

    /// Sends one request, whose response must be as expected.
    pub fn ask(&self, request: &Request) -> Result<Value> {
        let answer = Connection::open(&self.array.api, &self.token)?.ask(request)?;
        request.check(&answer)?;
        answer.json()
    }

    /// Runs a row: many requests at once.
    pub fn row(&self, report: &mut Report, name: &str, requests: &[Request]) -> Vec<Answer> {
        self.row_of(report, name, requests, IN_FLIGHT)
    }

    /// Runs a row with this many requests in flight.
    pub fn row_of(
        &self,
        report: &mut Report,
        name: &str,
        requests: &[Request],
        in_flight: usize,
    ) -> Vec<Answer> {
        let mut all = Vec::new();
        report.check(name, || {
            let begin = Instant::now();
            let (peak, written) = (self.array.peak_kib()?, self.array.written_bytes()?);
            self.good.take_slowest();
            self.good.beside(|| {
                all = self.issue(requests, in_flight)?;
                Ok(String::new())
            })?;
            let took = begin.elapsed().as_millis();
            let grown = self.array.written_bytes()?.saturating_sub(written);
            let most = WRITTEN_BYTES_BASE + WRITTEN_BYTES_EACH * requests.len() as u64;
            ensure!(grown <= most, "{grown} bytes were written");
            let bytes: usize = all.iter().map(|answer| answer.body.len()).sum();
            let memory = self.array.peak_kib()?.saturating_sub(peak) >> 10;
            let mut slowest = self.slowest.lock().unwrap_or_else(PoisonError::into_inner);
            let note = slowest.note(name, self.good.take_slowest());
            let detail = format!("{} in {took} ms, {} KiB", requests.len(), bytes >> 10);
            Ok(format!("{detail}, memory +{memory} MiB{note}"))
        });
        all
    }

    /// Sends requests over connections that each have one in flight. All begin at once.
    fn issue(&self, requests: &[Request], in_flight: usize) -> Result<Vec<Answer>> {
        let workers = in_flight.min(requests.len());
        let (next, start) = (AtomicUsize::new(0), Barrier::new(workers));
        let answers = Mutex::new(Vec::new());
        let work = || {
            let connection = Connection::open(&self.array.api, &self.token);
            start.wait();
            let mut connection = connection?;
            while let Some(request) = requests.get(next.fetch_add(1, Ordering::Relaxed)) {
                let answer = connection.ask(request)?;
                request.check(&answer)?;
                let all = &mut *answers.lock().unwrap_or_else(PoisonError::into_inner);
                all.push(answer);
            }
            Ok(())
        };
        thread::scope(|scope| {
            let all: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
            let ended = all.into_iter().map(|worker| worker.join().expect("a worker panicked"));
            ended.collect::<Vec<Result<()>>>().into_iter().collect::<Result<()>>()
        })?;
        self.note(requests)?;
        Ok(answers.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes which operations have had a row.
    fn note(&self, requests: &[Request]) -> Result<()> {
        for request in requests {
            let operation = routes::of(&self.operations, request)?;
            // An operation that can succeed must have done so.
            if operation.is_served && request.status >= 300 {
                continue;
            }
            let key = (operation.method.clone(), operation.path.clone());
            self.used.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        }
        Ok(())
    }
}
