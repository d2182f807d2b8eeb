//! Addresses that move between two machines: a host that knows only one of them continues at the
//! other machine when its own is gone, and comes back to it.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::nets::moving;
use super::site::Site;
use super::{at, connect, stays};
use crate::Arguments;
use crate::report::Report;
use crate::restarts::{Host, beside_hosts, go_on};
use crate::target::Target;

/// How long it may take until all addresses are where they belong: 9 s, plus a margin for a busy
/// machine.
const MOVED: Duration = Duration::from_secs(20);

pub fn run(report: &mut Report, arguments: &Arguments, site: &mut Site) -> Result<()> {
    report.check("each controller configures its addresses on its machine", || {
        wait(site, [0, 1]).map(|_| String::new())
    });
    let targets = [site.volume(1, 0)?, site.volume(2, 1)?];
    let hosts: Vec<Host> = targets.iter().map(|_| Host::impatient()).collect();
    let name = |host| format!("the host of ct{host}'s address: every byte right");
    beside_hosts(report, (&hosts, &targets, arguments.seed), name, |report| {
        report.check("a forwarding controller is cut off: the owner has its addresses", || {
            isolated(site, &hosts, &targets)
        });
        report.check("the owner's machine fails: the other has its addresses", || {
            died(site, &hosts, &targets)
        });
        report.check("both controllers keep their addresses through a switch and a kill", || {
            keep(site, &hosts)
        });
    });
    report.check("both shut down cleanly, and release their addresses", || {
        site.both()?;
        site.stop(0)?;
        site.stop(1)?;
        let begin = Instant::now();
        while (0..2).map(|number| holders(site, number)).any(|it| !it.is_ok_and(|it| it.is_empty()))
        {
            ensure!(begin.elapsed() < MOVED, "an address was not released");
            thread::sleep(Duration::from_millis(100));
        }
        site.inspect()?;
        Ok(String::new())
    });
    Ok(())
}

/// Returns the machines that have an address of a controller, of IPv4 and of IPv6: each is at one,
/// or both.
fn holders(site: &Site, of: usize) -> Result<Vec<usize>> {
    let [four, six] = moving(of);
    let mut all = Vec::new();
    for number in 0..2 {
        if site.nets.has(number, &four)? || site.nets.has(number, &six)? {
            all.push(number);
        }
    }
    Ok(all)
}

/// Waits until the addresses of each controller are at these machines. Returns how long that took.
/// An address must never be at both meanwhile.
fn wait(site: &Site, places: [usize; 2]) -> Result<Duration> {
    let begin = Instant::now();
    loop {
        let mut are_there = true;
        for (of, place) in places.into_iter().enumerate() {
            // The machines are queried one after the other: an address may have moved in between.
            let found = holders(site, of)?;
            let again = if found.len() > 1 { holders(site, of)? } else { found };
            ensure!(again.len() < 2, "the addresses of ct{of} are at both");
            let [four, six] = moving(of);
            are_there &=
                again == [place] && site.nets.has(place, &four)? && site.nets.has(place, &six)?;
        }
        if are_there {
            return Ok(begin.elapsed());
        }
        let logs = || [site.log(0), site.log(1)].join("\n--- ct1:\n");
        ensure!(begin.elapsed() < MOVED, "the addresses are not at {places:?}:\n{}", logs());
        thread::sleep(Duration::from_millis(50));
    }
}

/// Checks that a new session at the IPv6 address of a controller can read.
fn reads_at_6(targets: &[Target], of: usize) -> Result<()> {
    let [_, six] = moving(of);
    let there = Target { portal: format!("[{six}]:3260"), ..targets[0].clone() };
    let there = at(&there.as_initiator(&crate::target::second(&there.initiator)), &there);
    connect(&there).with_context(|| format!("at {}", there.portal)).map(drop)
}

fn isolated(site: &Site, hosts: &[Host], targets: &[Target]) -> Result<String> {
    let before = site.both()?;
    let [owner, other] = [before[0].number(), before[1].number()];
    let mut took = Duration::ZERO;
    let gone_on = go_on(hosts, || {
        site.nets.isolate(other)?;
        took = wait(site, [owner; 2])?;
        Ok(())
    });
    let read = reads_at_6(targets, other);
    site.nets.rejoin(other)?;
    let told = gone_on.context("while it was alone")?;
    read?;
    let mut back = Duration::ZERO;
    let gone_on = go_on(hosts, || {
        back = wait(site, [0, 1])?;
        Ok(())
    });
    gone_on.context("after it came back")?;
    stays(site, &before)?;
    Ok(format!("moved after {} ms, back after {} ms, {told}", took.as_millis(), back.as_millis()))
}

fn died(site: &mut Site, hosts: &[Host], targets: &[Target]) -> Result<String> {
    let [owner, other] = site.both()?;
    let (number, taker) = (owner.number(), other.number());
    let mut took = Duration::ZERO;
    let told = go_on(hosts, || {
        site.nets.isolate(number)?;
        site.kill(&owner)?;
        took = wait(site, [taker; 2])?;
        Ok(())
    })?;
    reads_at_6(targets, number)?;
    site.nets.rejoin(number)?;
    let gone_on = go_on(hosts, || {
        site.start(number, "secret")?;
        wait(site, [0, 1]).map(drop)
    });
    gone_on.context("after its machine came back")?;
    let [now, _] = site.both()?;
    ensure!(now.number() == taker, "{} has the pool", now.name);
    Ok(format!("moved after {} ms, {told}", took.as_millis()))
}

/// An outage shorter than the kernel's lifetime of an address moves none.
fn keep(site: &Site, hosts: &[Host]) -> Result<String> {
    let switched = super::switched(site, hosts).context("a switch")?;
    wait(site, [0, 1])?;
    for is_owner in [false, true] {
        super::killed(site, hosts, is_owner).context("a kill")?;
        wait(site, [0, 1])?;
    }
    let moved = (0..2)
        .map(|number| site.whole_log(number).matches("of the other controller is here").count());
    let moved: usize = moved.sum();
    // Two of each: of the machine that was alone, and of the one that died.
    ensure!(moved == 4, "addresses of the other controller were taken over {moved} times");
    site.both()?;
    Ok(switched)
}
