//! The record of what was sent, and how it ended: lines of text, appended.
//!
//! ```text
//! span BYTES seed SEED
//! start ID ACTION        about to be sent
//! done ID                acknowledged, or found to have happened
//! not ID                 put off, or found not to have happened
//! part ID 0110…          a write of which these blocks were found written
//! ```

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;

use super::model::{Model, Outcome};
use super::operation::{Action, BLOCK_BYTES, Operation};

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    file: BufWriter<File>,
}

impl Journal {
    /// Begins a journal, or continues an existing one. Also returns the next free operation number.
    pub fn open(path: &Path, span_bytes: u64, seed: u64) -> Result<(Self, Model, u64), String> {
        let fail = |error: std::io::Error| format!("{}: {error}", path.display());
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(fail(error)),
        };
        // An incomplete last line was followed by nothing that was sent.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        let file = OpenOptions::new().create(true).append(true).open(path).map_err(fail)?;
        file.set_len(whole as u64).map_err(fail)?;
        let mut journal = Self { file: BufWriter::new(file) };
        if whole == 0 {
            let span_bytes = span_bytes / BLOCK_BYTES * BLOCK_BYTES;
            journal.line(format_args!("span {span_bytes} seed {seed}"))?;
            journal.flush()?;
            return Ok((journal, Model::new(seed, span_bytes), 1));
        }
        let (model, next) = replay(&text[..whole])?;
        Ok((journal, model, next))
    }

    /// Records an operation that is about to be sent.
    pub fn start(&mut self, operation: &Operation) -> Result<(), String> {
        self.line(format_args!("start {} {}", operation.id, operation.action))
    }

    /// Records the end of an operation.
    pub fn finish(&mut self, id: u64, outcome: &Outcome) -> Result<(), String> {
        match outcome {
            Outcome::Done => self.line(format_args!("done {id}")),
            Outcome::NotDone => self.line(format_args!("not {id}")),
            Outcome::Part(parts) => {
                let bits: String = parts.iter().map(|p| if *p { '1' } else { '0' }).collect();
                self.line(format_args!("part {id} {bits}"))
            }
        }
    }

    /// Passes all lines to the kernel: before anything they announce is sent.
    pub fn flush(&mut self) -> Result<(), String> {
        self.file.flush().map_err(|error| format!("the journal: {error}"))
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) -> Result<(), String> {
        writeln!(self.file, "{line}").map_err(|error| format!("the journal: {error}"))
    }
}

/// Returns the model that results from a journal, and the next free operation number.
pub fn replay(text: &str) -> Result<(Model, u64), String> {
    let mut lines = text.lines().enumerate();
    let wrong = |number: usize| format!("line {} of the journal is invalid", number + 1);
    let (span_bytes, seed) = lines
        .next()
        .and_then(|(_, line)| {
            let (span, seed) = line.strip_prefix("span ")?.split_once(" seed ")?;
            Some((span.parse().ok()?, seed.parse().ok()?))
        })
        .ok_or_else(|| wrong(0))?;
    let mut model = Model::new(seed, span_bytes);
    let mut next = 1;
    for (number, line) in lines {
        let (verb, rest) = line.split_once(' ').ok_or_else(|| wrong(number))?;
        let (id, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let id: u64 = id.parse().map_err(|_| wrong(number))?;
        let outcome = match verb {
            "start" => {
                let action = Action::parse(rest).ok_or_else(|| wrong(number))?;
                if !action.fits(model.block_count()) || id < next {
                    return Err(wrong(number));
                }
                next = id + 1;
                model.start(Operation { id, action });
                continue;
            }
            "done" => Outcome::Done,
            "not" => Outcome::NotDone,
            "part" => Outcome::Part(rest.chars().map(|bit| bit == '1').collect()),
            _ => return Err(wrong(number)),
        };
        model.finish(id, &outcome)?;
    }
    Ok((model, next))
}
