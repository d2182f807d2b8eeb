//! The peers' tests: the real `holdfast`, as built for release, against independent initiators and
//! tools: libiscsi's conformance tests and tools, qemu's iscsi driver, sg3_utils.
//!
//! `./test` runs this; `cargo run -p tests-peer -- --list` lists the groups. With `--url` it runs
//! the groups that need no array of their own against any target, for comparison.

mod aborts;
mod access;
mod answers;
mod arguments;
mod bounded;
mod controllers;
mod crowds;
mod cu;
mod drops;
mod durability;
mod fuzz;
mod good;
mod hostile;
mod hosts;
mod initiator;
mod integrity;
mod kill;
mod link;
mod maintenance;
mod managed;
mod offload;
mod overwrites;
mod paths;
mod power;
mod qemu;
mod races;
mod reduction;
mod reservations;
mod restarts;
mod snapshots;
mod space;
mod switches;
mod syncs;
mod tokens;
mod tools;
mod transfers;
mod upgrades;
mod verbs;
mod widths;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use clap::Parser;
use tests_peer::{array, command, devices, linear, load, pair, process, random, report, target};

use arguments::Arguments;
use array::{Array, Programs, Shape};
use report::Report;
use target::{INITIATOR, Target};

/// A group of tests: its name, its description, and its function.
type Group = (&'static str, &'static str, fn(&mut Report, &Arguments) -> Result<()>);

const GROUPS: &[Group] = &[
    ("verbs", "the command line, and the effect of changes on hosts", run_verbs),
    ("tools", "libiscsi's tools and sg3_utils' decoders", run_tools),
    ("qemu", "qemu's iscsi driver, with and without digests", run_qemu),
    ("access", "access of initiators to volumes; CHAP", run_access),
    ("offload", "copies, fills, unmaps and compares against a model, with a restart", run_offload),
    ("reservations", "reservations and other host settings, through kill -9", run_reservations),
    ("answers", "COMPARE AND WRITE repeated after a lost response, through kill -9", run_answers),
    ("switches", "offloads switched off and on under load", run_switches),
    ("tokens", "ROD tokens: their data, cost and lifetime", run_tokens),
    ("paths", "two target port groups, and a host's use of them", run_paths),
    ("hosts", "the lab's hosts: counters as on the array; paths, refusals, top", hosts::run),
    ("linear", "races on a few blocks, checked for linearizability", run_linear),
    ("aborts", "aborted commands take effect before the response, or never", run_aborts),
    ("hostile", "initiators that exhaust resources, beside a good one", run_hostile),
    ("bounded", "each command at its maximum size, beside another host", run_bounded),
    ("managed", "each management request at its maximum size, beside a host", managed::run),
    ("fuzz", "random PDUs and commands of several hosts, beside a good one", run_fuzz),
    ("snapshots", "snapshots, groups, clones, and recovery of destroyed objects", run_snapshots),
    ("space", "use of space, one commit per offload, a full pool", run_space),
    ("overwrites", "a pool in ordinary use accepts overwrites, over restarts", overwrites::run),
    ("drops", "freeing of a sparsely written volume, beside a host that writes", drops::run),
    ("reduction", "a volume's switches, and the background pass", run_reduction),
    ("integrity", "corrupt bytes: found, located, refused, repaired", run_integrity),
    ("durability", "data after a kill; the duration of recovery", run_durability),
    ("syncs", "acknowledged data was synced before, by a trace of system calls", run_syncs),
    ("kill", "kill -9 under load; no acknowledged data is lost", kill::run),
    ("restarts", "killed and restarted by the supervisor; no host is refused", restarts::run),
    ("controllers", "two controllers, killed, stopped and switched under load", controllers::run),
    ("upgrades", "an upgrade of two controllers, and a rollback", upgrades::run),
    ("link", "two controllers on two machines, and the network between them", link::run),
    ("addresses", "addresses that move between two machines", link::run_addresses),
    ("devices", "kill -9 on six devices, of which two fail each time", kill::run_devices),
    ("widths", "a lost device is rebuilt on the others, and devices change", widths::run),
    ("conformance", "iscsi-test-cu, a row for each suite", run_conformance),
];

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if arguments.list {
        GROUPS.iter().for_each(|(name, what, _)| println!("{name:<12} {what}"));
        return ExitCode::SUCCESS;
    }
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("tests-peer: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let mut report = Report::default();
    for name in arguments.only.iter().chain(&arguments.except) {
        if !GROUPS.iter().any(|(group, ..)| group == name) {
            bail!("group `{name}` does not exist; --list shows all groups");
        }
    }
    if let Some(url) = &arguments.url {
        foreign(&mut report, &Target::from_url(url)?)?;
        return Ok(report.finish());
    }
    for (name, what, group) in GROUPS {
        if !arguments.wants(name) {
            continue;
        }
        println!("\n{name}: {what}");
        if let Err(error) = group(&mut report, arguments) {
            // A requirement of the group failed before its first row.
            report.check(&format!("{name}: set up"), || Err(error));
        }
    }
    Ok(report.finish())
}

/// Creates an array with one host, which has both initiators.
fn array(arguments: &Arguments, shape: Shape) -> Result<Array> {
    let shape = Shape { devices: shape.devices.max(arguments.devices), ..shape };
    let array = Array::new(&programs(arguments)?, shape)?;
    array.host("peer", &[INITIATOR, &target::second(INITIATOR)])?;
    Ok(array)
}

/// Returns the programs: as given, or where cargo puts a release build.
fn programs(arguments: &Arguments) -> Result<Programs> {
    let directory = match &arguments.programs {
        Some(directory) => directory.clone(),
        None => {
            // This program is in target/PROFILE.
            let own = std::env::current_exe()?;
            let target = own.ancestors().nth(2).context("no target directory")?;
            target.join("release")
        }
    };
    let programs =
        Programs { holdfast: directory.join("holdfast"), lab: directory.join("holdfast-lab") };
    for program in [&programs.holdfast, &programs.lab] {
        if !program.is_file() {
            bail!("no {}: cargo build --release -p holdfast -p lab", program.display());
        }
    }
    Ok(programs)
}

fn run_verbs(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let mut array = array(arguments, Shape::default())?;
    let target = array.volume("verbs", "2G", "peer", 1)?;
    verbs::verbs(report, &mut array, &target);
    Ok(())
}

fn run_tools(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let array = array(arguments, Shape::default())?;
    let target = array.volume("tools", "3G", "peer", 1)?;
    tools::tools(report, &target, 3 << 30);
    tools::pages(report, &target);
    Ok(())
}

fn run_qemu(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let array = array(arguments, Shape::default())?;
    let mut target = array.volume("disk", "1G", "peer", 1)?;
    qemu::qemu(report, "plain", &target, array.scratch());
    target.digest = true;
    qemu::qemu(report, "with header digests", &target, array.scratch());
    Ok(())
}

fn run_access(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let array = array(arguments, Shape::default())?;
    let own = array.volume("own", "1G", "peer", 1)?;
    access::access(report, &array, &own);
    Ok(())
}

fn run_offload(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let mut array = array(arguments, Shape::default())?;
    let one = array.volume("one", "1G", "peer", 1)?;
    let two = array.volume("two", "64T", "peer", 2)?;
    let third = array.volume("three", "1G", "peer", 3)?;
    transfers::transfers(report, &third);
    report.check("GET LBA STATUS reports the right states", || offload::lba_status(&one));
    report.check("random CDBs get a response and do no harm", || offload::nonsense(&one));
    let mut kept = None;
    report.check("1500 random operations give the expected data", || {
        let mut world = offload::World::new([&one, &two], arguments.seed)?;
        world.run(1500)?;
        world.verify()?;
        kept = Some(world);
        Ok(format!("seed {}", arguments.seed))
    });
    let Some(mut world) = kept else { return Ok(()) };
    report.check("after a clean shutdown inspect finds nothing", || {
        array.stop()?;
        array.inspect()?;
        Ok(String::new())
    });
    report.check("a restart keeps all data and names", || {
        let took = array.start()?;
        world.reconnect([&one, &two])?;
        world.verify()?;
        Ok(format!("ready in {} ms", took.as_millis()))
    });
    Ok(())
}

fn run_reservations(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let mut array = array(arguments, Shape::default())?;
    let kept = array.volume("kept", "1G", "peer", 1)?;
    let lost = array.volume("lost", "1G", "peer", 2)?;
    reservations::reservations(report, &mut array, &kept, &lost);
    power::power(report, &mut array, &kept, &lost);
    Ok(())
}

fn run_answers(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let mut array = array(arguments, Shape::default())?;
    let one = array.volume("one", "1G", "peer", 1)?;
    let other = array.volume("other", "1G", "peer", 2)?;
    answers::answers(report, &mut array, &one, &other);
    Ok(())
}

fn run_switches(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let array = array(arguments, Shape::default())?;
    let target = array.volume("switched", "1G", "peer", 1)?;
    switches::switches(report, &array, &target, "switched");
    Ok(())
}

fn run_snapshots(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let mut array = array(arguments, Shape::default())?;
    let alpha = array.volume("alpha", "1G", "peer", 1)?;
    let beta = array.volume("beta", "1G", "peer", 2)?;
    snapshots::snapshots(report, &mut array, [&alpha, &beta]);
    Ok(())
}

fn run_tokens(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let mut array = array(arguments, Shape::default())?;
    let one = array.volume("one", "1G", "peer", 1)?;
    let two = array.volume("two", "1G", "peer", 2)?;
    tokens::tokens(report, &mut array, &one, &two);
    Ok(())
}

fn run_paths(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let array = array(arguments, Shape { grouped: true, ..Shape::default() })?;
    let target = array.volume("paths", "1G", "peer", 1)?;
    paths::paths(report, &array, &target)
}

fn run_linear(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let array = array(arguments, Shape { portals: 4, ..Shape::default() })?;
    let one = array.volume("one", "1G", "peer", 1)?;
    let two = array.volume("two", "1G", "peer", 2)?;
    races::linear(report, &array, [&one, &two], arguments);
    Ok(())
}

fn run_aborts(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let array = array(arguments, Shape::default())?;
    let target = array.volume("aborted", "1G", "peer", 1)?;
    aborts::reinstated(report, &target, arguments.abort_rounds * 5);
    aborts::aborts(report, &target, arguments.abort_rounds, arguments.seed);
    Ok(())
}

fn run_hostile(report: &mut Report, arguments: &Arguments) -> Result<()> {
    // The log then reports each session.
    let settings = "log_level = \"debug\"\n";
    let mut array = array(arguments, Shape { settings, ..Shape::default() })?;
    let target = array.volume("besieged", "1G", "peer", 1)?;
    hostile::hostile(report, &mut array, &target);
    Ok(())
}

fn run_bounded(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let shape = Shape { capacity: "6G", settings: bounded::SETTINGS, ..Shape::default() };
    let mut array = array(arguments, shape)?;
    let watched = array.volume("watched", "1G", "peer", 1)?;
    let units = bounded::units(&array, &watched)?;
    bounded::bounded(report, &mut array, &watched, &units, &arguments.rows);
    Ok(())
}

fn run_fuzz(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let shape = Shape { capacity: "6G", settings: fuzz::SETTINGS, ..Shape::default() };
    let mut array = array(arguments, shape)?;
    let watched = array.volume("watched", "1G", "peer", 1)?;
    let seconds = arguments.seconds.map(std::time::Duration::from_secs);
    fuzz::fuzz(report, &mut array, &watched, arguments.seed, seconds);
    Ok(())
}

fn run_space(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let big = array(arguments, Shape::default())?;
    let target = big.volume("thin", "64T", "peer", 1)?;
    space::accounting(report, &big, &target, "thin");
    drop(big);
    let mut small = array(arguments, Shape { capacity: "1G", ..Shape::default() })?;
    let target = small.volume("fat", "4G", "peer", 1)?;
    space::full(report, &mut small, &target);
    drop(small);
    let array = array(arguments, Shape { capacity: "1G", ..Shape::default() })?;
    array.verb(&["array", "set", "--space-thresholds", "30"])?;
    let target = array.volume("thin", "4G", "peer", 1)?;
    space::thresholds(report, &target);
    Ok(())
}

fn run_reduction(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let settings = reduction::NEVER_SETTINGS;
    let mut switched = array(arguments, Shape { capacity: "1G", settings, ..Shape::default() })?;
    reduction::switches(report, &mut switched);
    drop(switched);
    let mut own = array(arguments, Shape { capacity: "1G", settings, ..Shape::default() })?;
    let target = own.volume("missed", "1G", "peer", 1)?;
    reduction::pass(report, &mut own, &target);
    drop(own);
    let settings = reduction::OFTEN_SETTINGS;
    let often = array(arguments, Shape { capacity: "1G", settings, ..Shape::default() })?;
    let target = often.volume("often", "1G", "peer", 1)?;
    reduction::schedule(report, &often, &target);
    Ok(())
}

fn run_integrity(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let mut array = array(arguments, Shape { capacity: "1G", ..Shape::default() })?;
    let target = array.volume("rotten", "1G", "peer", 1)?;
    integrity::integrity(report, &mut array, &target, "rotten");
    Ok(())
}

fn run_durability(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let shape = Shape { settings: durability::FLUSH_SETTINGS, ..Shape::default() };
    let mut volatile = array(arguments, shape)?;
    let target = volatile.volume("cached", "1G", "peer", 1)?;
    durability::flush(report, &mut volatile, &target);
    drop(volatile);
    let shape = Shape { settings: durability::LONG_LOG_SETTINGS, ..Shape::default() };
    let mut long = array(arguments, shape)?;
    let target = long.volume("log", "4G", "peer", 1)?;
    durability::recovery(report, &mut long, &target);
    Ok(())
}

fn run_syncs(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let interposer = syncs::build(scratch.path())?;
    for settings in ["", durability::FLUSH_SETTINGS] {
        for refuse_uring in [false, true] {
            let interposer = Some(interposer.clone());
            let shape =
                Shape { capacity: "1G", settings, interposer, refuse_uring, ..Shape::default() };
            let mut array = array(arguments, shape)?;
            let target = array.volume("synced", "1G", "peer", 1)?;
            syncs::run(report, &mut array, &target, settings.is_empty(), refuse_uring);
        }
    }
    Ok(())
}

fn run_conformance(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let (known, array) = (known_skips()?, array(arguments, Shape::default())?);
    let plain = array.volume("disk", "1G", "peer", 1)?;
    let mut guarded = access::guarded(&array, 1)?;
    guarded.digest = true;
    for (title, target) in [("plain:", plain), ("CHAP, digests:", guarded)] {
        let portal = array.portals.get(1).context("the array has no second portal")?.clone();
        let second = Target { portal, ..target.clone() };
        cu::conformance(report, title, &target, Some(&second), &known)?;
    }
    Ok(())
}

/// Runs the tests that need only a logical unit, against an external one.
fn foreign(report: &mut Report, target: &Target) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    tools::pages(report, target);
    qemu::qemu(report, "plain", target, scratch.path());
    cu::conformance(report, "foreign:", target, None, &known_skips()?)
}

/// Returns the skips that the conformance document accounts for.
fn known_skips() -> Result<cu::Known> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    let path = root.join("docs/conformance.md");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    Ok(cu::Known::read(&text))
}
