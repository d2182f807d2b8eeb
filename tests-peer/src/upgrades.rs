//! Two controllers are upgraded to a new version of the program, one after the other, and rolled
//! back, while hosts write. No host is refused, every byte is right, and the pool keeps its format
//! version until it is upgraded.
//!
//! `--older PROGRAM` is the version to begin with; the default is a copy of the same program.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::Arguments;
use crate::array::{Array, Controllers, Programs, Shape};
use crate::controllers::at_each;
use crate::pair::{both, other, owner};
use crate::report::Report;
use crate::restarts::{Host, beside_hosts, go_on};
use crate::target::INITIATOR;

/// The group `upgrades`.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let programs = crate::programs(arguments)?;
    let newer = programs.holdfast.clone();
    let older = arguments.older.clone().unwrap_or_else(|| newer.clone());
    let directory = tempfile::Builder::new().prefix("holdfast-upgrade-").tempdir()?;
    let installed = directory.path().join("holdfast");
    install(&older, &installed)?;
    let programs = Programs { holdfast: installed.clone(), ..programs };
    let shape = Shape { controllers: Controllers::Two, ..Shape::default() };
    let mut array = Array::new(&programs, shape)?;
    array.host("peer", &[INITIATOR])?;
    let targets = at_each(&array)?;
    let hosts: Vec<Host> = targets.iter().map(|_| Host::default()).collect();
    let format = format_of(&array)?;
    let name = |host| format!("the host at ct{host}: not refused, every byte right");
    beside_hosts(report, (&hosts, &targets, arguments.seed), name, |report| {
        for (way, program) in [("forth", &newer), ("back", &older), ("forth again", &newer)] {
            replace(report, &array, &hosts, way, (program, &installed));
            report.check(&format!("{way}: the pool's format is unchanged"), || {
                let found = format_of(&array)?;
                ensure!(found == format, "{found}, not {format}");
                Ok(String::new())
            });
        }
        report.check("upgraded while hosts use it, the pool has the latest format", || {
            let told = go_on(&hosts, || array.verb(&["pool", "upgrade"]).map(drop))?;
            let pool = array.verb(&["api", "GET", "/v1/pool"])?;
            ensure!(pool["format_is_latest"] == true, "{pool}");
            Ok(told)
        });
        report.check("then another controller takes over", || {
            go_on(&hosts, || array.verb(&["controller", "switch"]).map(drop))
        });
    });
    report.check("after a shutdown the pool is sound", || {
        array.stop()?;
        array.inspect().map(|_| String::new())
    });
    Ok(())
}

/// Like a package: the name is replaced atomically by a new file.
fn install(program: &Path, at: &PathBuf) -> Result<()> {
    let beside = at.with_extension("new");
    std::fs::copy(program, &beside).with_context(|| format!("{}", program.display()))?;
    Ok(std::fs::rename(&beside, at)?)
}

/// As documented in `docs/upgrading.md`: the program is installed, and each controller is restarted
/// with it.
fn replace(
    report: &mut Report,
    array: &Array,
    hosts: &[Host],
    way: &str,
    (program, installed): (&Path, &PathBuf),
) {
    report.check(&format!("{way}: a replaced program continues"), || {
        let told = go_on(hosts, || install(program, installed))?;
        let running = both(array)?.map(|it| it.pid);
        ensure!(running.iter().all(|pid| is_replaced(*pid)), "one already runs the new program");
        Ok(told)
    });
    report.check(
        &format!("{way}: after a switch, the previous owner is started with the other program"),
        || {
            let before = owner(array)?.name;
            let told = go_on(hosts, || array.verb(&["controller", "switch"]).map(drop))?;
            let (now, other) = (owner(array)?, other(array)?);
            ensure!(now.name != before && is_replaced(now.pid), "{} has the pool", now.name);
            ensure!(!is_replaced(other.pid), "{before} still runs the previous program");
            Ok(told)
        },
    );
    report.check(&format!("{way}: after another switch, both run the other program"), || {
        let before = owner(array)?.name;
        let told = go_on(hosts, || array.verb(&["controller", "switch"]).map(drop))?;
        let found = both(array)?;
        ensure!(found.iter().all(|it| !is_replaced(it.pid)), "one still runs the previous program");
        ensure!(found.iter().any(|it| it.is_owner && it.name != before), "{before} is the owner");
        Ok(told)
    });
}

/// Returns whether a process runs a program file that has been deleted or replaced.
fn is_replaced(pid: u64) -> bool {
    let program = std::fs::read_link(format!("/proc/{pid}/exe"));
    program.is_ok_and(|program| program.to_string_lossy().ends_with(" (deleted)"))
}

fn format_of(array: &Array) -> Result<Value> {
    let pool = array.verb(&["api", "GET", "/v1/pool"])?;
    let format = [pool["format_version"].clone(), pool["format_is_latest"].clone()];
    ensure!(format.iter().all(|field| !field.is_null()), "{pool}");
    Ok(Value::from(format.to_vec()))
}
