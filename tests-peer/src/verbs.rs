//! The command line: exit codes, one-line errors, and what hosts see of a change.

use anyhow::{Context, Result, ensure};
use libiscsi::{Session, Status};
use serde_json::Value;

use crate::array::Array;
use crate::report::Report;
use crate::target::Target;

/// Verbs that must be refused: the arguments and the exit code.
const REFUSED: &[(&[&str], i32)] = &[
    (&["volume", "show", "no-such-volume"], 1),
    (&["volume", "destroy", "no-such-volume"], 1),
    (&["volume", "create", "verbs", "--size", "1G"], 1),
    (&["volume", "create", "too-big", "--size", "65T"], 1),
    (&["volume", "create", "odd", "--size", "1000"], 1),
    (&["volume", "create", "a/b", "--size", "1G"], 1),
    (&["volume", "create", "unsized"], 2),
    (&["volume", "create", "wrong", "--size", "ten"], 2),
    (&["volume", "resize", "verbs", "--size", "1M"], 1),
    (&["volume", "rename", "no-such-volume", "other"], 1),
    (&["host", "create", "peer", "--iqn", "iqn.2026-01.com.example:x"], 1),
    (&["host", "create", "second", "--iqn", "not-an-iscsi-name"], 1),
    (&["host", "create", "taken", "--iqn", "iqn.2026-01.com.example:peer-1"], 1),
    (&["host", "show", "no-such-host"], 1),
    (&["host", "delete", "no-such-host"], 1),
    (&["connect", "verbs", "no-such-host"], 1),
    (&["connect", "no-such-volume", "peer"], 1),
    (&["connect", "verbs", "peer", "--lun", "16384"], 1),
    (&["disconnect", "no-such-volume", "peer"], 1),
    (&["no-such-verb"], 2),
];

/// Everything that an administrator types. `target` is the volume `verbs` of 2 GiB, host `peer`.
pub fn verbs(report: &mut Report, array: &mut Array, target: &Target) {
    report.check("invalid arguments are refused in one line", || {
        for (arguments, code) in REFUSED {
            let finished = array.try_verb(arguments)?;
            let line = &finished.line;
            ensure!(
                finished.code == *code,
                "{line} ended with {}, not {code}: {}",
                finished.code,
                finished.text
            );
            // The parser of the command line has its own, longer messages.
            let lines = finished.text.trim().lines().count();
            ensure!(lines == 1 || *code == 2, "{line} printed {lines} lines: {}", finished.text);
        }
        Ok(format!("{} of them", REFUSED.len()))
    });
    report.check("lists and shows contain the created objects", || {
        for (arguments, name) in [
            (&["volume", "list"][..], "verbs"),
            (&["volume", "show", "verbs"], "verbs"),
            (&["host", "list"], "peer"),
            (&["host", "show", "peer"], "peer"),
            (&["status"], "target_name"),
        ] {
            let value = array.verb(arguments)?;
            ensure!(value.to_string().contains(name), "{arguments:?} does not name {name}");
        }
        Ok(String::new())
    });
    report.check("a resize and a rename keep the data, and are reported to hosts", || {
        let mut session = Session::connect(&target.config())?;
        session.write(0, vec![7; 4096], 512)?;
        array.verb(&["volume", "resize", "verbs", "--size", "3G"])?;
        // The host is notified once: CAPACITY DATA HAS CHANGED (06/2A/09, SBC-3, 4.7).
        let told = (0..4).any(|_| {
            matches!(session.test_unit_ready(), Ok(Status::CheckCondition(sense))
                if sense.key == 6 && sense.asc_ascq == 0x2A09)
        });
        ensure!(told, "no unit attention 06/2A/09 after the resize");
        ensure!(session.capacity()?.bytes() == 3 << 30, "READ CAPACITY shows the old size");
        let name = session.naa()?;
        array.verb(&["volume", "rename", "verbs", "renamed"])?;
        let mut session = Session::connect(&target.config())?;
        ensure!(session.naa()? == name, "its NAA name changed");
        ensure!(session.read(0, 8, 512)? == [7; 4096], "its data changed");
        Ok(String::new())
    });
    report.check("a destroyed volume's name and identity do not come back", || {
        let naa = |value: &Value| value["naa"].as_str().map(str::to_owned);
        array.verb(&["volume", "create", "brief", "--size", "1G"])?;
        let first = naa(&array.verb(&["volume", "show", "brief"])?).context("no naa")?;
        array.verb(&["volume", "destroy", "brief", "--eradicate"])?;
        array.verb(&["volume", "create", "brief", "--size", "1G"])?;
        let second = naa(&array.verb(&["volume", "show", "brief"])?).context("no naa")?;
        ensure!(first != second, "{first} was assigned twice");
        Ok(second)
    });
    report.check("a second array on the same pool is refused", || {
        let pool = array.pool().display().to_string();
        let arguments =
            ["serve", "--pool", &pool, "--iscsi", "127.0.0.1:1", "--api", "127.0.0.1:2"];
        let finished = array.run(&arguments)?;
        ensure!(finished.code != 0 && finished.code != 124, "it ended with {}", finished.code);
        let inspected = array.run(&["inspect", &pool])?;
        ensure!(inspected.code != 0, "inspect read a pool that is being written");
        Ok(finished.text.trim().to_owned())
    });
    report.check("everything is present after a restart", || restart(array));
}

fn restart(array: &mut Array) -> Result<String> {
    let before = kept(array)?;
    array.kill()?;
    let none = array.try_verb(&["status"])?;
    ensure!(none.code == 3, "without an array, status ended with {}", none.code);
    array.start()?;
    let after = kept(array)?;
    ensure!(before == after, "{before:?} became {after:?}");
    Ok(String::new())
}

/// Returns what a restart must preserve of volumes and hosts, except how their space is shared,
/// which is counted again in the background.
fn kept(array: &Array) -> Result<[Value; 2]> {
    let mut volumes = array.verb(&["volume", "list"])?;
    for volume in volumes.as_array_mut().context("volumes is not a list")? {
        volume.as_object_mut().context("a volume is not an object")?.remove("space");
    }
    Ok([volumes, array.verb(&["host", "list"])?])
}
