//! Judges whether what hosts saw is possible: by this project's checker, and by another program if
//! there is one.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use libiscsi::{Session, Status};
use tests_peer::linear::checker::{Verdict, check};
use tests_peer::linear::history::{Action, Value, alone};
use tests_peer::linear::lines;
use tests_peer::linear::seen::{Seen, read_end};
use tests_peer::linear::zone::{CELLS, VOLUMES, read};
use tests_peer::target::Target;

use super::hosts::{OPEN, Shared, Told};

/// The steps of the checker for each part of a history before it gives up.
const TURNS: usize = 400_000;
/// One history of this many may be too wide to search.
const UNDECIDED: u64 = 20;
/// The time limit for reading all cells, and the pause between two attempts.
const PATIENCE: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// The result of a round.
pub struct Judged {
    /// Whether it could be judged.
    pub is_decided: bool,
    /// Bytes read at its end.
    pub bytes: u64,
}

/// The judges.
pub struct Judges {
    /// The volumes and their locations.
    targets: [Target; VOLUMES],
    portals: Vec<String>,
    /// The content of the cells.
    state: Vec<Value>,
    other: Option<(Child, ChildStdin)>,
    histories: Option<File>,
}

impl Judges {
    /// Starts the other program, if there is one.
    pub fn new(
        targets: [Target; VOLUMES],
        portals: Vec<String>,
        program: Option<&Path>,
        histories: Option<&Path>,
    ) -> Result<Self> {
        let start = |program: &Path| {
            let mut child = Command::new(program)
                .stdin(Stdio::piped())
                .spawn()
                .with_context(|| format!("could not start {}", program.display()))?;
            let input = child.stdin.take().context("the other judge has no standard input")?;
            anyhow::Ok((child, input))
        };
        let other = program.map(start).transpose()?;
        let histories = histories.map(File::create).transpose()?;
        Ok(Self { targets, portals, state: Vec::new(), other, histories })
    }

    /// Reads the initial content.
    pub fn begin(&mut self, shared: &Shared) -> Result<()> {
        self.state = state_of(&look(shared, &self.targets, &self.portals)?);
        Ok(())
    }

    /// Judges a round, while nothing else happens.
    pub fn judge(&mut self, name: &str, shared: &Shared, all: Vec<Told>) -> Result<Judged> {
        let mut seen = Seen::default();
        all.into_iter().for_each(|told| seen.join(told.seen));
        let closed = shared.field.now();
        let open = seen.steps.iter_mut().filter(|step| step.end == OPEN);
        open.for_each(|step| step.end = closed);
        let last = look(shared, &self.targets, &self.portals)?;
        let after = state_of(&last);
        seen.join(last);
        let line = lines::line(name, &self.state, &seen.steps);
        if let Some(file) = &mut self.histories {
            writeln!(file, "{line}")?;
        }
        if let Some((_, input)) = &mut self.other {
            writeln!(input, "{line}").context("the other judge no longer reads its input")?;
        }
        let is_decided = match check(&self.state, &seen.steps, TURNS) {
            Verdict::Linearizable => true,
            Verdict::Undecided => false,
            Verdict::Wrong(why) => {
                let kept = std::env::temp_dir().join("holdfast-torture.history");
                std::fs::write(&kept, format!("{line}\n"))?;
                bail!("not linearizable; the history is in {}: {why}", kept.display());
            }
        };
        let bytes = (after.len() * tests_peer::linear::history::BLOCK) as u64;
        self.state = after;
        Ok(Judged { is_decided, bytes })
    }

    /// Returns the final verdict of all, for this many histories.
    pub fn end(&mut self, judged: u64, undecided: u64) -> Result<String> {
        let are_few = undecided * UNDECIDED <= judged + UNDECIDED;
        ensure!(are_few, "{undecided} of {judged} histories could not be judged");
        let Some((mut child, input)) = self.other.take() else {
            return Ok("no other judge was used".to_owned());
        };
        drop(input);
        let status = child.wait()?;
        ensure!(status.success(), "the other judge ended with {status}");
        Ok("the other judge agrees".to_owned())
    }
}

/// Reads all cells while there are no writes.
fn look(shared: &Shared, targets: &[Target; VOLUMES], portals: &[String]) -> Result<Seen> {
    let mut seen = Seen::default();
    let mut portals = portals.iter().cycle();
    for (volume, target) in targets.iter().enumerate() {
        let begin = Instant::now();
        let mut look = || {
            let portal = portals.next().context("the array has no portal")?.clone();
            look_at(shared, volume, &Target { portal, ..target.clone() }, &mut seen)
        };
        // The controller of one of the portals may have ended.
        while let Err(error) = look() {
            let has_failed = shared.has_failed.load(Ordering::Relaxed);
            if has_failed || begin.elapsed() > PATIENCE {
                return Err(error.context("reading all cells"));
            }
            thread::sleep(PAUSE);
        }
    }
    seen.steps = seen.steps.iter().flat_map(alone).collect();
    Ok(seen)
}

fn look_at(shared: &Shared, volume: usize, target: &Target, seen: &mut Seen) -> Result<()> {
    let mut session = Session::connect(&target.config())?;
    let planned = read(volume * CELLS, CELLS);
    loop {
        let start = shared.field.now();
        let ended = session.execute(planned.cdb, planned.data())?;
        match &ended.status {
            Status::CheckCondition(sense) if sense.key == 6 => continue,
            status => {
                let action = read_end(&planned, status, &ended.buffer)?;
                seen.add(action, (start, shared.field.now()), true);
                return Ok(());
            }
        }
    }
}

fn state_of(seen: &Seen) -> Vec<Value> {
    let values = seen.steps.iter().filter_map(|step| match &step.action {
        Action::Read { values, .. } => Some(values.as_slice()),
        _ => None,
    });
    values.flatten().copied().collect()
}
