//! Many sessions over the portals of two controllers, limits of a volume over both, and silent
//! connections at the forwarding controller: part of the group `controllers`.

use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libiscsi::{Cdb, Data, Poller, Session, Status};
use rustix::net::{AddressFamily, SocketType, bind, connect, socket};

use crate::Arguments;
use crate::array::{Array, Controllers, Shape};
use crate::good::past_attentions;
use crate::hostile::attacks;
use crate::pair::{both, other, owner};
use crate::process;
use crate::report::Report;
use crate::target::{INITIATOR, Target};

const BLOCK: u32 = 512;
/// One address may have a quarter of all sessions, and all of these come from one.
const SETTINGS: &str = "[iscsi]\nsessions = 4096\n";
const SESSIONS: usize = 1000;
/// The number of initiator names: each may have 64 sessions.
const NAMES: usize = 20;
/// How long all of them may take to log in, and to log in again after the owner was killed.
const LOGINS: Duration = Duration::from_secs(60);
/// The limit of a controller's memory with all of them, in KiB.
const MEMORY_KIB: u64 = 1 << 20;
/// The number of silent connections: more than one address may have.
const STALLED: usize = 1100;
/// The last part of the address that they come from.
const ELSEWHERE: u8 = 77;
/// How long another host may wait for its login meanwhile.
const LOGIN: Duration = Duration::from_secs(2);
/// Fewer descriptors than connections.
const DESCRIPTORS: &str = "--nofile=200:200";
const COMING: u8 = 200;
const ADDRESSES: u8 = 8;
/// Longer than the supervisor's watchdog timeout.
const ALIVE: Duration = Duration::from_secs(7);
/// The most that the forwarding controller's memory may grow for sessions that read nothing, in
/// KiB.
const GROWTH_KIB: u64 = 64 << 10;
/// The limit of a volume, and how long hosts load it.
const IOPS: u64 = 500;
const TRY: Duration = Duration::from_secs(4);
const DEPTH: u64 = 8;

/// Runs all of it, on a separate array.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let shape = Shape { controllers: Controllers::Two, settings: SETTINGS, ..Shape::default() };
    let mut array = crate::array(arguments, shape)?;
    let names: Vec<String> = (0..NAMES).map(|number| format!("{INITIATOR}-{number}")).collect();
    array.host("crowd", &names.iter().map(String::as_str).collect::<Vec<_>>())?;
    let target = array.volume("crowded", "1G", "peer", 1)?;
    array.verb(&["connect", "crowded", "crowd", "--lun", "1"])?;
    report.check(
        "1,000 sessions at both controllers survive a switch and a kill of the owner",
        || thousand(&array, &target, &names),
    );
    report.check("a volume's limit holds over both together, and after a switch", || {
        limited(&array, &target)
    });
    report.check("1,100 silent connections do not keep hosts out", || stalled(&array, &target));
    report.check("sessions that do not receive cost the forwarding controller little", || {
        deaf(&array, &target)
    });
    report.check("afterwards both shut down cleanly", || {
        both(&array)?;
        array.stop()?;
        array.inspect().map(|_| String::new())
    });
    few_descriptors(report, arguments)
}

/// Returns the same volume at a portal of the array.
fn at(array: &Array, target: &Target, portal: usize) -> Result<Target> {
    let portal = array.portals.get(portal).context("the portal does not exist")?.clone();
    Ok(Target { portal, ..target.clone() })
}

/// Logs in, retrying for `patience` at most.
fn insist(target: &Target, begin: Instant, patience: Duration) -> Result<Session> {
    loop {
        match Session::connect(&target.config()) {
            Ok(session) => return Ok(session),
            Err(error) => ensure!(begin.elapsed() < patience, "{}: {error}", target.portal),
        }
    }
}

fn thousand(array: &Array, target: &Target, names: &[String]) -> Result<String> {
    let place = |number: usize| {
        let target = at(array, target, number % 2)?;
        Ok(target.as_initiator(&names[number / 2 % NAMES]))
    };
    let targets = (0..SESSIONS).map(place).collect::<Result<Vec<_>>>()?;
    let log_in = || -> Result<(Vec<Session>, Duration)> {
        let begin = Instant::now();
        let all = targets.iter().map(|target| insist(target, begin, LOGINS));
        Ok((all.collect::<Result<Vec<_>>>()?, begin.elapsed()))
    };
    let (mut sessions, first) = log_in()?;
    let bytes = |number: usize| vec![number as u8 ^ (number >> 8) as u8; BLOCK as usize];
    for (number, session) in sessions.iter_mut().enumerate() {
        past_attentions(|| session.write(number as u64, bytes(number), BLOCK))?;
    }
    let open = array.open_connections()?;
    ensure!(open >= SESSIONS as u64, "{open} connections are open");
    // Sessions of libiscsi don't reconnect.
    let begin = Instant::now();
    array.verb(&["controller", "switch"])?;
    let switched = begin.elapsed();
    for (number, session) in sessions.iter_mut().enumerate() {
        let found = past_attentions(|| session.read(number as u64, 1, BLOCK))?;
        ensure!(found == bytes(number), "block {number} contains other data");
    }
    both(array)?;
    let before = owner(array)?;
    let most = memory(array)?;
    ensure!(most < MEMORY_KIB, "a controller has {} MiB", most >> 10);
    crate::command::run(5, "kill", &["-KILL", &before.pid.to_string()])?.good()?;
    drop(sessions);
    let (mut sessions, second) = log_in()?;
    ensure!(owner(array)?.name != before.name, "{} still has the pool", before.name);
    for (number, session) in sessions.iter_mut().enumerate() {
        // Each reads what the next one has written, mostly at the other controller.
        let next = (number + 1) % SESSIONS;
        let found = past_attentions(|| session.read(next as u64, 1, BLOCK))?;
        ensure!(found == bytes(next), "block {next} contains other data");
    }
    Ok(format!(
        "logged in within {} ms, switched in {} ms, logged in {} ms after the kill; at most {} MiB",
        first.as_millis(),
        switched.as_millis(),
        second.as_millis(),
        memory(array)?.max(most) >> 10
    ))
}

/// Returns the peak memory of the controllers, in KiB.
fn memory(array: &Array) -> Result<u64> {
    let all = both(array)?.map(|it| process::peak_kib(it.pid));
    all.into_iter().try_fold(0, |most, one| Ok(most.max(one.context("no VmHWM")?)))
}

/// Hosts at both controllers read as fast as the limit allows.
fn limited(array: &Array, target: &Target) -> Result<String> {
    array.verb(&["volume", "limit", "crowded", "--iops", &IOPS.to_string()])?;
    let mut told = Vec::new();
    for _ in 0..2 {
        let (over, answers) = (AtomicBool::new(false), [AtomicU64::new(0), AtomicU64::new(0)]);
        let places = [at(array, target, 0)?, at(array, target, 1)?];
        thread::scope(|scope| {
            let working: Vec<_> = (places.iter().zip(&answers))
                .map(|(place, count)| scope.spawn(|| read_on(place, &over, count)))
                .collect();
            thread::sleep(TRY);
            over.store(true, Ordering::Relaxed);
            let ended = working
                .into_iter()
                .map(|worker| worker.join().map_err(|_| anyhow::anyhow!("a host panicked"))?);
            ended.collect::<Result<Vec<()>>>()
        })?;
        let counts = answers.map(AtomicU64::into_inner);
        let (sum, may) = (counts.iter().sum::<u64>(), IOPS * TRY.as_secs());
        // The bucket may have accumulated a burst, and commands in progress at the end still
        // complete.
        ensure!(sum <= may * 13 / 10 && sum >= may * 7 / 10, "{counts:?} commands; {may} may be");
        ensure!(counts.iter().all(|count| count * 5 >= sum), "one host is starved: {counts:?}");
        told.push(format!("{} and {}", counts[0], counts[1]));
        array.verb(&["controller", "switch"])?;
        both(array)?;
    }
    array.verb(&["volume", "limit", "crowded", "--iops", "none"])?;
    Ok(format!("{} of {}", told.join(", then "), IOPS * TRY.as_secs()))
}

fn read_on(target: &Target, over: &AtomicBool, answers: &AtomicU64) -> Result<()> {
    let mut session = Session::connect(&target.config())?;
    past_attentions(|| session.read(0, 1, BLOCK))?;
    let submit = |session: &mut Session, number: u64| {
        session.submit(
            Cdb::read_16(number % 1000, 8),
            Data::In(vec![0; 8 * BLOCK as usize]),
            number,
        )
    };
    for number in 0..DEPTH {
        submit(&mut session, number)?;
    }
    let mut poller = Poller::new();
    while !over.load(Ordering::Relaxed) {
        poller.poll(&mut [&mut session], 100);
        while let Some(done) = session.next_completion() {
            ensure!(done.status == Status::Good, "a read ended with {}", done.status);
            let number = answers.fetch_add(1, Ordering::Relaxed) + DEPTH;
            submit(&mut session, number)?;
        }
        ensure!(!session.is_lost(), "the connection is lost");
    }
    Ok(())
}

/// Opens a connection from an address without hosts.
fn from_elsewhere(portal: &str, last: u8) -> Result<TcpStream> {
    let own = SocketAddr::from(([127, 0, 0, last], 0));
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&socket, &own)?;
    connect(&socket, &portal.parse::<SocketAddr>()?)?;
    Ok(TcpStream::from(socket))
}

fn stalled(array: &Array, target: &Target) -> Result<String> {
    let forwarding = other(array)?.number();
    let there = at(array, target, forwarding)?;
    let mut silent = Vec::new();
    for _ in 0..STALLED {
        silent.push(from_elsewhere(&there.portal, ELSEWHERE)?);
    }
    let mut longest = Duration::ZERO;
    for portal in [forwarding, 1 - forwarding, forwarding] {
        let begin = Instant::now();
        let mut session = Session::connect(&at(array, target, portal)?.config())?;
        past_attentions(|| session.read(0, 1, BLOCK))?;
        longest = longest.max(begin.elapsed());
    }
    ensure!(longest < LOGIN, "a host waited for {} ms", longest.as_millis());
    Ok(format!("a host waited for at most {} ms", longest.as_millis()))
}

fn deaf(array: &Array, target: &Target) -> Result<String> {
    let other = other(array)?;
    let there = at(array, target, other.number())?;
    let before = process::peak_kib(other.pid).context("no VmHWM")?;
    attacks::deaf(&attacks::Field::new(&there))?;
    // The kernel adds up the counters of CPUs approximately.
    let grown = process::peak_kib(other.pid).context("no VmHWM")?.saturating_sub(before);
    ensure!(grown < GROWTH_KIB, "its memory grew by {} MiB", grown >> 10);
    let mut session = Session::connect(&there.config())?;
    past_attentions(|| session.read(0, 1, BLOCK))?;
    Ok(format!("{} KiB", grown))
}

/// A process with few descriptors, and more connections at the portal where it forwards.
fn few_descriptors(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let shape = Shape { controllers: Controllers::Two, ..Shape::default() };
    let array = Array::made(&crate::programs(arguments)?, shape)?;
    let serve = array.command()?;
    let log = File::create(array.scratch().join("few.log"))?;
    let mut limited = Command::new("prlimit");
    limited.arg(DESCRIPTORS).arg(serve.get_program()).args(serve.get_args());
    let serving = Serving(Some(limited.stdout(log.try_clone()?).stderr(log).spawn()?));
    both(&array)?;
    array.host("peer", &[INITIATOR])?;
    let target = array.volume("few", "1G", "peer", 1)?;
    report.check(
        "a forwarding controller survives a lack of descriptors, and serves again",
        || {
            let before = other(&array)?;
            let forwarding = before.number();
            let there = at(&array, &target, forwarding)?;
            let coming = (0..COMING).map(|number| {
                // Some are closed at once.
                from_elsewhere(&there.portal, ELSEWHERE + number % ADDRESSES)
            });
            let silent: Vec<_> = coming.collect();
            let begin = Instant::now();
            while begin.elapsed() < ALIVE {
                let mut session = Session::connect(&at(&array, &target, 1 - forwarding)?.config())?;
                past_attentions(|| session.read(0, 1, BLOCK))?;
                thread::sleep(Duration::from_millis(200));
            }
            drop(silent);
            let mut session = insist(&there, Instant::now(), LOGIN)?;
            past_attentions(|| session.read(0, 1, BLOCK))?;
            ensure!(other(&array)?.pid == before.pid, "it was ended");
            Ok(String::new())
        },
    );
    drop(serving);
    Ok(())
}

/// A supervisor that does not outlive the test, nor do its processes.
struct Serving(Option<Child>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(process::end);
    }
}
