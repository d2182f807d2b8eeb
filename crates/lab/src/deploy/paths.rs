//! What happened to hosts while paths were lost.

use std::fmt;

use serde::Serialize;

use super::answers::Event;

/// What happened to paths, and how hosts reacted.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Paths {
    /// The events, and for how long hosts had no response then.
    pub events: Vec<Event>,
    /// Commands that hosts have sent, including repeated ones.
    pub commands: u64,
    /// Commands that were repeated: their connection was lost, or the array requested it.
    pub repeated: u64,
    /// Connections that were lost.
    pub losses: u64,
    /// How often the lock was taken by COMPARE AND WRITE.
    pub locks: u64,
    /// How often only reading it showed that, because the command was repeated over another port.
    pub locks_by_reading: u64,
    /// Commands that ended with an error: there must be none.
    pub errors: u64,
}

impl fmt::Display for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.events.iter().map(|event| event.what.len()).max().unwrap_or(0).max(5);
        writeln!(f, "| {:<width$} | after s | deploying, ms | locking, ms |", "event")?;
        writeln!(f, "|{}|--------:|--------------:|------------:|", "-".repeat(width + 2))?;
        for Event { what, at_ms, gap_ms, lock_gap_ms } in &self.events {
            let at_s = *at_ms as f64 / 1000.0;
            writeln!(f, "| {what:<width$} | {at_s:>7.1} | {gap_ms:>13} | {lock_gap_ms:>11} |")?;
        }
        writeln!(
            f,
            "{} commands, {} of them repeated; {} connections were lost; {} errors.",
            self.commands, self.repeated, self.losses, self.errors
        )?;
        writeln!(
            f,
            "The lock was taken {} times by COMPARE AND WRITE, and never lost; {} times only \
             reading it showed that.",
            self.locks, self.locks_by_reading
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_a_row() {
        let event = |what: &str, at_ms, gap_ms, lock_gap_ms| Event {
            what: what.into(),
            at_ms,
            gap_ms,
            lock_gap_ms,
        };
        let events =
            vec![event("kill -9 of ct0, the owner", 0, 150, 90), event("a switch", 2300, 7, 0)];
        let paths = Paths { events, commands: 1000, repeated: 40, losses: 6, ..Paths::default() };
        let text = paths.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].len(), lines[2].len());
        assert_eq!(
            lines[3],
            "| a switch                  |     2.3 |             7 |           0 |"
        );
        assert!(lines[4].starts_with("1000 commands, 40 of them repeated; 6 connections"));
    }
}
