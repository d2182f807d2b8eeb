//! `holdfast-lab top` together with a lab.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use lab::engine::Engine;
use lab::host::{Class, Device};
use lab::top::Publisher;

use super::{LOOK, claim, connect, good_ones, wait};
use crate::array::{Array, Programs};
use crate::target::Target;

/// `holdfast-lab top` together with a lab whose hosts have known activity.
pub fn top(array: &Array, target: &Target, programs: &Programs) -> Result<String> {
    let file = array.scratch().join("counters.json");
    let mut engine = Engine::new();
    let host = connect(&engine, array, target)?;
    let devices = claim(&mut engine, &host)?;
    let [one, two] = devices.clone();
    wait(&mut engine, async move { good_ones(&one, &two).await })?;
    let hosts = vec![host.clone()];
    let publisher = Publisher::start(&engine.reactor(), move || hosts.clone(), &file)
        .map_err(anyhow::Error::msg)?;

    let mut child = start_top(programs, &file, &["-d", "1", "-n", "1"])?;
    let reactor = engine.reactor();
    let mut child = wait(&mut engine, async move {
        // The lab keeps running meanwhile, and so keeps publishing.
        while child.try_wait()?.is_none() {
            reactor.sleep(LOOK).await;
        }
        Ok(child)
    })?;
    let text = finished(&mut child, 0)?.0;
    for device in &devices {
        shows(&text, device)?;
    }

    let mut follower = start_top(programs, &file, &["-d", "3600"])?;
    let mut header = String::new();
    // It is connected to the lab by then.
    let mut out = BufReader::new(follower.stdout.take().context("no standard output")?);
    out.read_line(&mut header)?;
    drop((publisher, engine));
    let mut rest = String::new();
    out.read_to_string(&mut rest)?;
    let (_, said) = finished(&mut follower, 0)?;
    ensure!(said.contains("the lab has ended"), "the output is: {said}");
    shows(&(header + &rest), &devices[0])?;
    let (_, said) = finished(&mut start_top(programs, &file, &[])?, 1)?;
    ensure!(
        said.contains("has ended") && said.trim().lines().count() == 1,
        "the output is: {said}"
    );
    Ok(String::new())
}

fn start_top(programs: &Programs, file: &Path, arguments: &[&str]) -> Result<Child> {
    Command::new(&programs.lab)
        .args(["top", "-b", "--counters"])
        .arg(file)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("could not start {}", programs.lab.display()))
}

/// Returns a program's output and errors, once it has ended as expected.
fn finished(child: &mut Child, code: i32) -> Result<(String, String)> {
    let (mut printed, mut said) = (String::new(), String::new());
    if let Some(mut out) = child.stdout.take() {
        out.read_to_string(&mut printed)?;
    }
    if let Some(mut out) = child.stderr.take() {
        out.read_to_string(&mut said)?;
    }
    let status = child.wait()?;
    ensure!(status.code() == Some(code), "top ended with {status}: {said}");
    Ok((printed, said))
}

/// Returns an error unless the last line of a device shows the host's counters.
fn shows(text: &str, device: &Device) -> Result<()> {
    let (names, lines) = text.split_once('\n').context("no header")?;
    let line = lines.lines().rfind(|line| line.contains(&device.name())).context("no line")?;
    let totals = device.totals();
    let ats = totals.of(Class::Ats);
    let expected = [
        ("HOST", device.host().name().to_owned()),
        ("CLONE_RD", totals.clone_read.count.to_string()),
        ("CLONE_WR", totals.clone_written.count.to_string()),
        ("CLONE_F", totals.of(Class::Clone).failed.count.to_string()),
        ("ATS", ats.good.count.to_string()),
        ("ATSF", ats.failed.count.to_string()),
        ("ZERO", totals.of(Class::Zero).good.count.to_string()),
        ("DELETE", totals.of(Class::Delete).good.count.to_string()),
        // There was no activity while it ran.
        ("READS/s", "0.00".into()),
        ("MBC_WR/s", "0.00".into()),
    ];
    for (name, value) in expected {
        let at = names.split(',').position(|known| known == name);
        let shown = at.and_then(|at| line.split(',').nth(at));
        ensure!(shown == Some(value.as_str()), "{name} is {shown:?}, not {value}: {line}");
    }
    Ok(())
}
