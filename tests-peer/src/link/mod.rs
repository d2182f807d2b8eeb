//! Two controllers on two machines, with a link over the network: hosts at both continue while one
//! is killed, while they are switched, and while the cable between them is cut or loses packets. A
//! peer without the secret gets nothing, and disturbs no host.
//!
//! The machines are network namespaces (which requires root, `ip` and `nft`), so a lock decides
//! which controller has the pool. `tests-guest/run --only fence` tests the devices as the arbiter.

mod moving;
mod nets;
mod site;
mod strangers;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use libiscsi::{Cdb, Data, Poller, Session, Status};

use crate::Arguments;
use crate::command;
use crate::controllers::signal;
use crate::good::past_attentions;
use crate::offload::good;
use crate::pair::READY;
use crate::process;
use crate::random::Random;
use crate::report::Report;
use crate::reservations::{HOLDER, REGISTER_AND_IGNORE, RESERVE, out, read};
use crate::restarts::{Host, beside_hosts, go_on, go_on_for};
use crate::target::{self, Target};
use nets::Nets;
use site::Site;

const BLOCK: u32 = 512;
/// Longer than the silence after which nothing more is accepted from the link.
const LONG: Duration = Duration::from_millis(2500);
/// How long it is slow.
const SLOW: Duration = Duration::from_secs(4);
/// The number of responses that show that a host continues while each takes 200 ms.
const FEW: u64 = 10;
/// How long the cable is cut.
const CUT: Duration = Duration::from_secs(5);

/// Runs the group `link`.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    in_networks(report, arguments, false, with_site)
}

/// Runs the group `addresses`.
pub fn run_addresses(report: &mut Report, arguments: &Arguments) -> Result<()> {
    in_networks(report, arguments, true, moving::run)
}

type OfSite = fn(&mut Report, &Arguments, &mut Site) -> Result<()>;

fn in_networks(
    report: &mut Report,
    arguments: &Arguments,
    moves: bool,
    with_site: OfSite,
) -> Result<()> {
    let nets = match Nets::new() {
        Ok(nets) => nets,
        Err(error) => {
            let why = format!("network namespaces or nft are not available: {error:#}");
            report.skip("two controllers with a link over the network", &why);
            return Ok(());
        }
    };
    let programs = crate::programs(arguments)?;
    // Programs started by this thread run where the hosts are.
    thread::scope(|scope| {
        let running = scope.spawn(|| {
            nets.enter("hosts")?;
            let mut site = Site::new(programs.holdfast, nets, moves)?;
            with_site(report, arguments, &mut site)
        });
        running.join().map_err(|_| anyhow!("the group panicked"))?
    })
}

fn with_site(report: &mut Report, arguments: &Arguments, site: &mut Site) -> Result<()> {
    let targets = [site.volume(1, 0)?, site.volume(2, 1)?];
    report.check("data written at one machine is read at the other", || across(&targets));
    report.check("states set by hosts survive a takeover by the other machine", || {
        registered(site, &targets)
    });
    report.check("a write delayed by a cut cable does not take effect later", || {
        late_write(site, &targets)
    });
    under_load(report, arguments, site, &targets)?;
    strangers::run(report, site, &targets)?;
    report.check("both shut down cleanly, and the pool is sound", || {
        site.both()?;
        site.stop(0)?;
        site.stop(1)?;
        site.inspect()?;
        Ok(String::new())
    });
    Ok(())
}

fn under_load(
    report: &mut Report,
    arguments: &Arguments,
    site: &Site,
    targets: &[Target],
) -> Result<()> {
    let hosts: Vec<Host> = targets.iter().map(|_| Host::default()).collect();
    let mut random = Random::new(arguments.seed);
    let name = |host| format!("the host at ct{host}: not refused, every byte right");
    beside_hosts(report, (&hosts, targets, arguments.seed), name, |report| {
        for round in 1..=arguments.kill_rounds {
            let after = Duration::from_millis(200 + random.below(500));
            report.check(&format!("kill -KILL of the owner, {round}"), || {
                thread::sleep(after);
                killed(site, &hosts, true)
            });
            report.check(&format!("kill -KILL of the other controller, {round}"), || {
                killed(site, &hosts, false)
            });
            report.check(&format!("a switch, {round}"), || switched(site, &hosts));
        }
        cuts(report, site, &hosts);
    });
    Ok(())
}

/// The cable is cut, loses packets, and is slow.
fn cuts(report: &mut Report, site: &Site, hosts: &[Host]) {
    for (what, at) in [("to ct0", &[0][..]), ("to ct1", &[1]), ("in both directions", &[0, 1])] {
        report.check(&format!("the cable cut {what}: the owner stays, hosts continue"), || {
            cut(site, hosts, at)
        });
    }
    report.check("10% packet loss in both directions is tolerated", || {
        let before = site.both()?;
        site.nets.lose(&[0, 1], 10)?;
        let gone_on = go_on(hosts, || Ok(()));
        let lost = site.nets.heal()?;
        let told = gone_on?;
        stays(site, &before)?;
        Ok(format!("{lost} lost, {told}"))
    });
    let slow = "a slow cable, 200 ms there and back, and 1% lost: nothing breaks";
    match command::exists("python3") && Path::new(nets::TAPS).exists() {
        true => report.check(slow, || slowed(site, hosts)),
        false => report.skip(slow, "python3 or /dev/net/tun is missing"),
    }
}

/// The cable is slow, for working hosts and for a killed controller.
fn slowed(site: &Site, hosts: &[Host]) -> Result<String> {
    let before = site.both()?;
    let cable = site.nets.slow_down(100, 10, 1)?;
    let worked = go_on_for(FEW, hosts, || {
        thread::sleep(SLOW);
        Ok(())
    });
    let stayed = stays(site, &before);
    let killed = go_on_for(FEW, hosts, || signal(before[1].pid, "KILL"));
    site.nets.hurry(cable)?;
    let told = worked.context("while the cable was slow")?;
    stayed?;
    killed.context("the other controller is killed while the cable is slow")?;
    go_on(hosts, || Ok(())).context("when the cable was fast again")?;
    Ok(told)
}

/// Checks that the same process still has the pool.
fn stays(site: &Site, before: &[crate::pair::Found; 2]) -> Result<()> {
    let after = site.both()?;
    let [before, after] = [before, &after].map(|both| (both[0].name.clone(), both[0].pid));
    ensure!(before == after, "{before:?} had the pool, now {after:?} has it");
    Ok(())
}

fn killed(site: &Site, hosts: &[Host], is_owner: bool) -> Result<String> {
    let [owner, other] = site.both()?;
    let one = if is_owner { &owner } else { &other };
    let told = go_on(hosts, || signal(one.pid, "KILL"))?;
    let [now, _] = site.both()?;
    ensure!(is_owner != (now.name == owner.name), "{} has the pool", now.name);
    Ok(told)
}

fn switched(site: &Site, hosts: &[Host]) -> Result<String> {
    let [before, _] = site.both()?;
    let mut asked = None;
    let told = go_on(hosts, || {
        asked = Some(site.switch(before.number())?);
        let begin = Instant::now();
        while site.listed()?.is_none_or(|(number, _)| number == before.number()) {
            ensure!(begin.elapsed() < READY, "{} still has the pool", before.name);
        }
        Ok(())
    });
    // It would wait for the new owner, which responds on the other machine.
    asked.into_iter().for_each(process::end);
    let told = told?;
    let [after, _] = site.both()?;
    ensure!(after.name != before.name, "{} has the pool again", before.name);
    Ok(told)
}

/// The cable is cut for long. The host at the owner continues meanwhile, the other one
/// afterwards.
fn cut(site: &Site, hosts: &[Host], at: &[usize]) -> Result<String> {
    let before = site.both()?;
    let number = before[0].number();
    let own = std::slice::from_ref(&hosts[number]);
    site.nets.lose(at, 100)?;
    let meanwhile = go_on(own, || {
        thread::sleep(CUT);
        Ok(())
    });
    let alone = site.listed();
    let lost = site.nets.heal()?;
    let meanwhile = meanwhile.context("the host at the owner")?;
    let (_, alone) = alone?.context("no controller has the pool")?;
    ensure!(
        alone.len() == 1,
        "the other controller is reported as present although the cable is cut"
    );
    let afterwards = go_on(hosts, || Ok(())).context("afterwards")?;
    stays(site, &before)?;
    Ok(format!("{lost} lost, at the owner {meanwhile}, then {afterwards}"))
}

/// Returns the same volume at the portal of another target.
fn at(target: &Target, portal: &Target) -> Target {
    Target { portal: portal.portal.clone(), ..target.clone() }
}

fn connect(target: &Target) -> Result<Session> {
    let mut session = Session::connect(&target.config())?;
    past_attentions(|| session.read(0, 1, BLOCK))?;
    Ok(session)
}

fn across(targets: &[Target]) -> Result<String> {
    let [here, there] = [&targets[0], &at(&targets[0], &targets[1])];
    let bytes = Random::new(7).bytes(4 << 20);
    let blocks = bytes.len() as u32 / BLOCK;
    for (from, to, lba) in [(here, there, 8), (there, here, 8 + u64::from(blocks))] {
        connect(from)?.write(lba, bytes.clone(), BLOCK)?;
        let found = connect(to)?.read(lba, blocks, BLOCK)?;
        ensure!(found == bytes, "other data than was written at {}", from.portal);
    }
    Ok(String::new())
}

/// Registers at both, lets one of them hold a reservation, and ends the owner, also while the cable
/// is cut. If both are gone it is a power on.
fn registered(site: &Site, targets: &[Target]) -> Result<String> {
    let here = targets[0].clone();
    let there = at(&here, &targets[1]);
    let there = there.as_initiator(&target::second(&there.initiator));
    let (mut holder, mut other) = (connect(&here)?, connect(&there)?);
    for (session, key) in [(&mut holder, HOLDER), (&mut other, 7)] {
        good(out(session, REGISTER_AND_IGNORE, 0, 0, key)?)?;
    }
    good(out(&mut holder, RESERVE, 0, HOLDER, 0)?)?;
    let before = [read(&mut other, 3)?, read(&mut other, 1)?];
    for is_cut in [false, true] {
        let [owner, other] = site.both()?;
        if is_cut {
            site.nets.lose(&[0, 1], 100)?;
            thread::sleep(LONG);
        }
        signal(owner.pid, "KILL")?;
        let begin = Instant::now();
        while site.listed()?.is_none_or(|(number, _)| number == owner.number()) {
            ensure!(begin.elapsed() < READY, "no controller took over from {}", owner.name);
        }
        if is_cut {
            site.nets.heal()?;
        }
        let taker = &targets[other.number()];
        let mut session =
            connect(&Target { initiator: there.initiator.clone(), ..at(&here, taker) })?;
        let after = [read(&mut session, 3)?, read(&mut session, 1)?];
        ensure!(before == after, "cut {is_cut}: {before:02x?}, then {after:02x?}");
        site.both()?;
    }
    let [owner, other] = site.both()?;
    let pids = [other.pid.to_string(), owner.pid.to_string()];
    crate::command::run(5, "kill", &["-KILL", &pids[0], &pids[1]])?.good()?;
    site.both()?;
    let after = read(&mut connect(&here)?, 3)?;
    ensure!(after == [0; 8], "still registered after a power on: {after:02x?}");
    Ok(String::new())
}

/// A write of a host at the other controller's portal is delayed by the cut cable, and the
/// host writes elsewhere: that write must persist.
fn late_write(site: &Site, targets: &[Target]) -> Result<String> {
    let [owner, other] = site.both()?;
    let [here, there] = [&owner, &other].map(|it| at(&targets[0], &targets[it.number()]));
    for to_owner in [false, true] {
        let mut late = connect(&there)?;
        let mut quick = connect(&here)?;
        let to = if to_owner { owner.number() } else { other.number() };
        site.nets.lose(&[to], 100)?;
        late.submit(Cdb::write_16(0, 1), Data::Out(vec![1; BLOCK as usize]), 1)?;
        late.flush();
        thread::sleep(LONG);
        let written = past_attentions(|| quick.write(0, vec![0xee; BLOCK as usize], BLOCK));
        site.nets.heal()?;
        written?;
        let status = end_of(&mut late)?;
        site.both()?;
        // Whether it was executed at once or never, it has not replaced the later write.
        let found = connect(&here)?.read(0, 1, BLOCK)?;
        ensure!(
            found == [0xee; BLOCK as usize],
            "to the owner {to_owner}: it ended with {status:?}"
        );
        ensure!(status.is_none(), "it got {status:?} over a cut cable");
    }
    Ok(String::new())
}

/// Returns the status of the command in progress; `None` if its connection is lost.
fn end_of(session: &mut Session) -> Result<Option<Status>> {
    let begin = Instant::now();
    while begin.elapsed() < READY {
        Poller::new().poll(&mut [session], 100);
        if let Some(done) = session.next_completion() {
            // libiscsi's status of commands whose connection is lost.
            return Ok(Some(done.status).filter(|status| *status != Status::Cancelled));
        }
        if session.is_lost() {
            return Ok(None);
        }
    }
    Err(anyhow!("it got no response, and its connection was not lost"))
}
