//! Two controllers on one pool: each is repeatedly killed and stopped, they are switched, and
//! hosts at both continue. State set by hosts persists; commands in the sockets of a controller
//! that was stopped for long are never executed.
//!
//! The longest time without a response is printed, but not judged.

mod certificates;

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use libiscsi::{Cdb, Data, Direction, Poller, Session, Status};

use crate::Arguments;
use crate::array::{Array, Controllers, Shape};
use crate::command;
use crate::crowds;
use crate::good::past_attentions;
use crate::hosts::failover;
use crate::maintenance;
use crate::offload::good;
use crate::pair::{READY, both, owner};
use crate::process::Owned;
use crate::random::Random;
use crate::report::Report;
use crate::reservations::{HOLDER, REGISTER_AND_IGNORE, RESERVE, out, read};
use crate::restarts::{Host, beside_hosts, go_on};
use crate::target::{self, Target};

/// Longer than the silence after which nothing more is accepted from a controller.
const LONG: Duration = Duration::from_millis(2500);
const BLOCK: u32 = 512;

/// Runs the group `controllers`.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    under_load(report, arguments)?;
    failover::run(report, arguments)?;
    maintenance::run(report, arguments)?;
    certificates::run(report, arguments)?;
    stopped_for_long(report, arguments)?;
    asked_to_end(report, arguments)?;
    crowds::run(report, arguments)
}

pub fn signal(pid: u64, name: &str) -> Result<()> {
    command::run(5, "kill", &[&format!("-{name}"), &pid.to_string()])?.good().map(drop)
}

/// Kills both at once: first the one that would take over.
fn kill_both(array: &Array) -> Result<()> {
    let mut found = both(array)?;
    found.sort_by_key(|it| it.is_owner);
    let [other, owner] = found.map(|it| it.pid.to_string());
    command::run(5, "kill", &["-KILL", &other, &owner])?.good().map(drop)
}

fn under_load(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let shape = Shape { controllers: Controllers::Two, ..Shape::default() };
    let mut array = crate::array(arguments, shape)?;
    let targets = at_each(&array)?;
    report.check("data written at one controller is read at the other", || across(&targets));
    report.check("ports report their access states with either owner", || states(&array, &targets));
    report.check("registrations without APTPL survive a takeover", || registered(&array, &targets));
    let hosts: Vec<Host> = targets.iter().map(|_| Host::default()).collect();
    let mut random = Random::new(arguments.seed);
    let name = |host| format!("the host at ct{host}: not refused, every byte right");
    beside_hosts(report, (&hosts, &targets, arguments.seed), name, |report| {
        for round in 1..=arguments.kill_rounds {
            one_round(report, &array, &hosts, round, &mut random);
        }
    });
    report.check("a takeover starts from the followed state", || {
        let log = array.whole_log()?;
        let [followed, not] =
            ["the log was followed by", "the pool was recovered from its checkpoint"]
                .map(|text| log.matches(text).count());
        ensure!(followed > 0, "{followed} takeovers did, {not} did not:\n{log}");
        Ok(format!("{followed} of {}", followed + not))
    });
    report.check("after both controllers stop, the pool is sound", || {
        array.stop()?;
        array.inspect().map(|_| String::new())
    });
    Ok(())
}

/// Returns the number of switches in the audit log of the owner.
fn switches(array: &Array) -> Result<usize> {
    let log = array.verb(&["audit", "--limit", "1000", "--text", "controllers/switch"])?;
    let entries = log.as_array().context("no list")?;
    Ok(entries.iter().filter(|entry| entry["outcome"] == "done").count())
}

/// Each controller is killed and stopped, both are killed, and they are switched.
fn one_round(report: &mut Report, array: &Array, hosts: &[Host], round: u32, random: &mut Random) {
    for (name, whom) in [("owner", true), ("other one", false)] {
        for with in ["KILL", "STOP"] {
            let after = Duration::from_millis(200 + random.below(500));
            report.check(&format!("kill -{with} of the {name}, {round}"), || {
                thread::sleep(after);
                let found = both(array)?;
                let one =
                    found.iter().find(|it| it.is_owner == whom).context("no such controller")?;
                go_on(hosts, || signal(one.pid, with))
            });
        }
    }
    report.check(&format!("a switch, {round}"), || {
        let (before, asked) = (owner(array)?, switches(array)?);
        let told = go_on(hosts, || array.verb(&["controller", "switch"]).map(drop))?;
        ensure!(owner(array)?.name != before.name, "{} still has the pool", before.name);
        let after = switches(array)?;
        ensure!(after == asked + 1, "the audit log has {after} switches, {asked} before");
        Ok(told)
    });
    report.check(&format!("kill -KILL of both, {round}"), || {
        both(array)?;
        go_on(hosts, || kill_both(array))
    });
}

/// Returns one volume at the portals of each controller.
pub fn at_each(array: &Array) -> Result<Vec<Target>> {
    let first = owner(array)?.name;
    ensure!(first == "CT0", "{first} had the pool first");
    let volume = |(portal, lun): (&String, u16)| {
        let target = array.volume(&format!("volume-{lun}"), "1G", "peer", lun)?;
        Ok(Target { portal: portal.clone(), ..target })
    };
    array.portals.iter().zip(1..).map(volume).collect()
}

/// Returns the same volume at the portal of another target.
fn at(target: &Target, portal: &Target) -> Target {
    Target { portal: portal.portal.clone(), ..target.clone() }
}

fn across(targets: &[Target]) -> Result<String> {
    let [here, there] = [&targets[0], &at(&targets[0], &targets[1])];
    let bytes = Random::new(7).bytes(1 << 20);
    let blocks = bytes.len() as u32 / BLOCK;
    for (from, to, lba) in [(here, there, 8), (there, here, 8 + u64::from(blocks))] {
        let mut session = Session::connect(&from.config())?;
        past_attentions(|| session.write(lba, bytes.clone(), BLOCK))?;
        let mut session = Session::connect(&to.config())?;
        let found = past_attentions(|| session.read(lba, blocks, BLOCK))?;
        ensure!(found == bytes, "other data than was written at {}", from.portal);
    }
    Ok(String::new())
}

/// Returns the access states of groups 1 and 2, at a portal.
fn states_at(target: &Target) -> Result<[u8; 2]> {
    let mut session = Session::connect(&target.config())?;
    past_attentions(|| session.read(0, 1, BLOCK))?;
    let cdb = Cdb::raw(&[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0], Direction::In);
    let answer = session.execute(cdb, Data::In(vec![0; 256]))?;
    good(answer.status)?;
    // Group 1 has one port.
    let state = |at: usize| answer.buffer.get(at).map(|byte| byte & 0x0f).context("too short");
    Ok([state(4)?, state(4 + 8 + 4)?])
}

fn states(array: &Array, targets: &[Target]) -> Result<String> {
    for (name, expected) in [("CT0", [0, 1]), ("CT1", [1, 0])] {
        let found = owner(array)?.name;
        ensure!(found == name, "{found} has the pool, not {name}");
        for target in targets {
            let found = states_at(target)?;
            ensure!(found == expected, "{found:?} at {}, not {expected:?}", target.portal);
        }
        array.verb(&["controller", "switch"])?;
    }
    both(array)?;
    Ok(String::new())
}

/// Registers at both controllers, lets one of them hold a reservation, and ends the owner.
fn registered(array: &Array, targets: &[Target]) -> Result<String> {
    let here = targets[0].clone();
    let there = at(&here, &targets[1]);
    let there = there.as_initiator(&target::second(&there.initiator));
    let sessions = || -> Result<[Session; 2]> {
        let mut both = [Session::connect(&here.config())?, Session::connect(&there.config())?];
        for session in &mut both {
            past_attentions(|| session.read(0, 1, BLOCK))?;
        }
        Ok(both)
    };
    let [mut holder, mut other] = sessions()?;
    for (session, key) in [(&mut holder, HOLDER), (&mut other, 7)] {
        good(out(session, REGISTER_AND_IGNORE, 0, 0, key)?)?;
    }
    good(out(&mut holder, RESERVE, 0, HOLDER, 0)?)?;
    let before = [read(&mut other, 3)?, read(&mut other, 1)?];
    let first = owner(array)?;
    signal(first.pid, "KILL")?;
    ensure!(owner(array)?.name != first.name, "no controller took over from {}", first.name);
    let [_, mut other] = sessions()?;
    let after = [read(&mut other, 3)?, read(&mut other, 1)?];
    ensure!(before == after, "changed: {before:02x?}, {after:02x?}");
    // A power on, with no takeover, ends them.
    kill_both(array)?;
    both(array)?;
    let [mut holder, _] = sessions()?;
    let after = read(&mut holder, 3)?;
    ensure!(after == [0; 8], "still registered after a power on: {after:02x?}");
    Ok(String::new())
}

/// Without a supervisor, so that a stopped controller resumes later.
fn stopped_for_long(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let shape = Shape { controllers: Controllers::First, ..Shape::default() };
    let mut array = crate::array(arguments, shape)?;
    let mut second = Owned(array.command()?.args(["--controller", "ct1"]).spawn()?);
    both(&array)?;
    let targets = at_each(&array)?;
    let there = at(&targets[0], &targets[1]);
    report.check("a briefly stopped controller continues with its commands", || {
        let status = late_write(&second.0, &targets[0], &there, Duration::from_millis(300), 1)?;
        ensure!(status == Some(Status::Good), "the write ended with {status:?}");
        Ok(String::new())
    });
    report.check("a controller that was stopped for long executes no old command", || {
        let status = late_write(&second.0, &targets[0], &there, LONG, 2)?;
        ensure!(status != Some(Status::Good), "the late write was executed");
        let mut session = Session::connect(&targets[0].config())?;
        let found = past_attentions(|| session.read(0, 1, BLOCK))?;
        ensure!(found == [0xee; BLOCK as usize], "a late write has overwritten another");
        Ok(String::new())
    });
    report.check("it serves hosts again", || across(&targets));
    report.check("a termination leaves the other controller running", || {
        signal(second.0.id().into(), "TERM")?;
        let status = second.0.wait()?;
        ensure!(status.success(), "it ended with {status}");
        array.must_run()?;
        let states = states_at(&targets[0])?;
        ensure!(states == [0, 3], "{states:?}, not unavailable");
        Ok(String::new())
    });
    array.stop()
}

/// Stops a controller for a while, has a host send a write there meanwhile, and another host write
/// the same block elsewhere (EEh). Returns how the first write ended.
fn late_write(
    second: &Child,
    here: &Target,
    there: &Target,
    stopped: Duration,
    value: u8,
) -> Result<Option<Status>> {
    let mut late = Session::connect(&there.config())?;
    past_attentions(|| late.read(0, 1, BLOCK))?;
    let mut other = Session::connect(&here.config())?;
    past_attentions(|| other.read(0, 1, BLOCK))?;
    let pid = u64::from(second.id());
    signal(pid, "STOP")?;
    let data = Data::Out(vec![value; BLOCK as usize]);
    late.submit(Cdb::write_16(0, 1), data, 1)?;
    late.flush();
    thread::sleep(stopped);
    let written = past_attentions(|| other.write(0, vec![0xee; BLOCK as usize], BLOCK));
    signal(pid, "CONT")?;
    written?;
    let begin = Instant::now();
    while begin.elapsed() < READY {
        Poller::new().poll(&mut [&mut late], 100);
        if let Some(done) = late.next_completion() {
            return Ok(Some(done.status));
        }
        if late.is_lost() {
            return Ok(None);
        }
    }
    Err(anyhow!("the write got no response, and its connection was not lost"))
}

/// A controller gets SIGTERM during a takeover, which takes about 100 ms: it ends, regardless of
/// the state of the takeover.
fn asked_to_end(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let shape = Shape { controllers: Controllers::First, ..Shape::default() };
    let mut array = crate::array(arguments, shape)?;
    report.check("a termination during a takeover succeeds", || {
        for after in [0, 5, 15, 30, 60, 120] {
            let mut second = Owned(array.command()?.args(["--controller", "ct1"]).spawn()?);
            both(&array)?;
            array.kill()?;
            thread::sleep(Duration::from_millis(after));
            signal(second.0.id().into(), "TERM")?;
            let begin = Instant::now();
            while second.0.try_wait()?.is_none() {
                let log = || array.log();
                ensure!(
                    begin.elapsed() < READY,
                    "SIGTERM after {after} ms did not end it:\n{}",
                    log()
                );
                thread::sleep(Duration::from_millis(10));
            }
            array.start()?;
        }
        Ok(String::new())
    });
    report.check("a termination during a switch is clean", || {
        for after in [5, 15, 30, 60] {
            let second = Owned(array.command()?.args(["--controller", "ct1"]).spawn()?);
            both(&array)?;
            let pool = array.pool().display().to_string();
            let switch = ["controller", "switch", "--pool", &pool];
            let mut switching = Owned(array.program().args(switch).spawn()?);
            thread::sleep(Duration::from_millis(after));
            match array.stop() {
                // It had handed over before.
                Err(error) if error.to_string().contains("exit status: 75") => {}
                ended => ended?,
            }
            switching.0.wait()?;
            drop(second);
            array.start()?;
        }
        Ok(String::new())
    });
    // The portals of an ended controller refuse connections, so that hosts go elsewhere at once.
    array.stop()?;
    let shape = Shape { controllers: Controllers::Two, ..Shape::default() };
    let array = crate::array(arguments, shape)?;
    report.check("a stopped controller refuses hosts, and the other serves", || {
        let [here, there] = <[Target; 2]>::try_from(at_each(&array)?)
            .map_err(|_| anyhow!("the number of targets is fixed"))?;
        signal(owner(&array)?.pid, "TERM")?;
        let begin = Instant::now();
        while !here.refuses() {
            ensure!(
                begin.elapsed() < READY,
                "{} accepts connections although no process serves it",
                here.portal
            );
            thread::sleep(Duration::from_millis(10));
        }
        let mut session = Session::connect(&there.config())?;
        past_attentions(|| session.read(0, 1, BLOCK))?;
        Ok(String::new())
    });
    Ok(())
}
