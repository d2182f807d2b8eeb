//! What some order of the requests allows.
//!
//! - A read may return a value that a request wrote there and that no other request has certainly
//!   overwritten: one that started after the first was acknowledged, and was acknowledged before
//!   the read started.
//! - A copy writes what its source may have had while it was in flight.
//! - Of the requests that expect one value of a lock, at most one succeeds.
//! - A miscompare is wrong if the expected value was there all the time.
//!
//! A crash ends an *era*. What was not acknowledged then is present or not. What was acknowledged
//! but not durable is certain only in its own era.

use block::SectorRange;

use crate::content::Tag;

/// A value is followed through this many copies; beyond that it is believed.
const COPIES_FOLLOWED: u32 = 6;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Flush,
    Write(Vec<Tag>),
    Zero { unmap: bool },
    Copy { from: u64 },
    Take { expected: Tag, new: Tag },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    None,
    Done,
    Miscompare,
    Data(Vec<Tag>),
}

/// A request, and its result.
#[derive(Clone, Debug)]
pub(super) struct Event {
    pub(super) range: SectorRange,
    pub(super) kind: Kind,
    pub(super) start: u64,
    /// When it was acknowledged, or the power failed.
    pub(super) end: u64,
    pub(super) answer: Answer,
    /// How often the power had failed before it.
    pub(super) era: u64,
    /// Whether its response promises that it is durable, and everything acknowledged before it
    /// began.
    pub(super) flushes: bool,
    /// Whether no crash undoes it.
    pub(super) durable: bool,
}

impl Event {
    pub(super) fn new(range: SectorRange, kind: Kind, start: u64, era: u64) -> Self {
        let (end, answer) = (u64::MAX, Answer::None);
        Self { range, kind, start, end, answer, era, flushes: false, durable: false }
    }

    /// Returns whether it was certainly done, seen from an era.
    fn is_certain(&self, era: u64) -> bool {
        self.answer == Answer::Done && (self.durable || self.era == era)
    }
}

/// What was written to a sector.
#[derive(Clone, Copy)]
enum Value {
    Of(Tag),
    /// The content of this sector.
    From(u64),
}

struct Put<'a> {
    value: Value,
    event: Option<&'a Event>,
}

impl Put<'_> {
    fn start(&self) -> u64 {
        self.event.map_or(0, |event| event.start)
    }

    fn end(&self) -> u64 {
        self.event.map_or(0, |event| event.end)
    }

    fn is_certain(&self, era: u64) -> bool {
        self.event.is_none_or(|event| event.is_certain(era))
    }
}

/// The time of an observation.
#[derive(Clone, Copy)]
struct Look {
    start: u64,
    end: u64,
    era: u64,
}

/// What may have been written to each sector.
struct Registers<'a>(Vec<Vec<Put<'a>>>);

impl<'a> Registers<'a> {
    fn new(events: &'a [Event]) -> Self {
        let sectors = events.iter().map(|event| event.range.start.0 + event.range.count.0).max();
        Self((0..sectors.unwrap_or(0)).map(|sector| puts(events, sector)).collect())
    }

    /// Returns whether an observation of `value` is possible.
    fn may_see(&self, sector: u64, value: Tag, look: Look, followed: u32) -> bool {
        let puts = &self.0[sector as usize];
        puts.iter().any(|put| {
            let overwritten = |other: &Put<'_>| {
                put.end() < other.start() && other.end() < look.start && other.is_certain(look.era)
            };
            if put.start() >= look.end || puts.iter().any(overwritten) {
                return false;
            }
            match (put.value, put.event) {
                (Value::Of(tag), _) => tag == value,
                (Value::From(source), Some(copy)) => {
                    let look = Look { start: copy.start, end: copy.end, era: copy.era };
                    followed == 0 || self.may_see(source, value, look, followed - 1)
                }
                (Value::From(_), None) => false,
            }
        })
    }

    /// Returns whether nothing but `value` can have been there.
    fn was_throughout(&self, sector: u64, value: Tag, look: Look) -> bool {
        let puts = &self.0[sector as usize];
        let is_it = |put: &&Put<'_>| matches!(put.value, Value::Of(tag) if tag == value);
        let Some(put) = puts.iter().find(is_it) else { return false };
        let apart = |other: &Put<'_>| other.end() < put.start() || other.start() > look.end;
        put.end() < look.start
            && put.is_certain(look.era)
            && puts.iter().all(|other| is_it(&other) || apart(other))
    }
}

/// Returns all writes of a sector: certain ones, and those with an unknown result.
fn puts(events: &[Event], sector: u64) -> Vec<Put<'_>> {
    let mut found = vec![Put { value: Value::Of(0), event: None }];
    for event in events {
        let at = sector.wrapping_sub(event.range.start.0);
        if at >= event.range.count.0 || event.answer == Answer::Miscompare {
            continue;
        }
        let value = match &event.kind {
            Kind::Read | Kind::Flush => continue,
            Kind::Write(tags) => Value::Of(tags[at as usize]),
            Kind::Zero { .. } => Value::Of(0),
            Kind::Copy { from } => Value::From(from + at),
            Kind::Take { new, .. } => Value::Of(*new),
        };
        found.push(Put { value, event: Some(event) });
    }
    found
}

fn name_of(kind: &Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Flush => "flush",
        Kind::Write(_) => "write",
        Kind::Zero { .. } => "zero",
        Kind::Copy { .. } => "copy",
        Kind::Take { .. } => "take",
    }
}

/// Returns what was done to a sector, and what made everything durable, a line each.
fn history(events: &[Event], sector: u64) -> String {
    let mut told = String::new();
    for event in events.iter().filter(|event| event.kind != Kind::Read) {
        let Event { range, start, end, era, durable, flushes, .. } = event;
        let at = sector.wrapping_sub(range.start.0);
        let what = match &event.kind {
            Kind::Flush => "flush".to_string(),
            other if at >= range.count.0 && event.flushes => {
                format!("elsewhere {}", name_of(other))
            }
            _ if at >= range.count.0 => continue,
            Kind::Write(tags) => format!("write {:#x}", tags[at as usize]),
            Kind::Take { expected, new } => format!("take {new:#x} for {expected:#x}"),
            other => format!("{other:?}"),
        };
        let answer = &event.answer;
        told +=
            &format!("\n{start}..{end} in {era}: {what}, {answer:?}, durable {durable}, {flushes}");
    }
    told
}

pub(super) fn judge(events: &[Event]) -> Result<(), String> {
    let registers = Registers::new(events);
    let mut winners: Vec<(u64, Tag, &Event)> = Vec::new();
    for event in events {
        let Event { range, kind, start, end, answer, era, .. } = event;
        let (sector, look) = (range.start.0, Look { start: *start, end: *end, era: *era });
        match (answer, kind) {
            (Answer::Data(tags), _) => {
                for (sector, tag) in (sector..).zip(tags) {
                    if !registers.may_see(sector, *tag, look, COPIES_FOLLOWED) {
                        let what = format!("sector {sector} from {start} to {end}, era {era}");
                        let told = history(events, sector);
                        return Err(format!("{what}: no order allows {tag:#x}:{told}"));
                    }
                }
            }
            (Answer::Done, Kind::Take { expected, .. }) => {
                if !registers.may_see(sector, *expected, look, COPIES_FOLLOWED) {
                    return Err(format!(
                        "it won although its compare data was not there: {event:?}"
                    ));
                }
                let same = |(of, value, before): &&(u64, Tag, &Event)| {
                    *of == sector && value == expected && before.is_certain(*era)
                };
                if let Some((.., before)) = winners.iter().find(same) {
                    return Err(format!("a second winner: {event:?} after {before:?}"));
                }
                winners.push((sector, *expected, event));
            }
            (Answer::Miscompare, Kind::Take { expected, .. })
                if registers.was_throughout(sector, *expected, look) =>
            {
                return Err(format!("it lost although its compare data matched: {event:?}"));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, start: u64, end: u64, answer: Answer) -> Event {
        Event { end, answer, ..Event::new(SectorRange::new(0, 1), kind, start, 0) }
    }

    fn take(expected: Tag, new: Tag, start: u64, end: u64, answer: Answer) -> Event {
        event(Kind::Take { expected, new }, start, end, answer)
    }

    #[test]
    fn two_winners_a_stale_read_and_a_wrong_miscompare_are_detected() {
        let first = take(0, 5, 1, 4, Answer::Done);
        assert!(judge(&[first.clone(), take(0, 6, 2, 3, Answer::Done)]).is_err());
        assert!(judge(&[first.clone(), take(0, 6, 2, 3, Answer::Miscompare)]).is_ok());
        assert!(judge(&[first.clone(), take(5, 6, 5, 6, Answer::Miscompare)]).is_err());
        let stale = event(Kind::Read, 5, 6, Answer::Data(vec![0]));
        assert!(judge(&[first, stale]).is_err());
    }

    #[test]
    fn a_crash_may_undo_only_writes_that_were_not_durable() {
        let mut first = take(0, 5, 1, 2, Answer::Done);
        let mut read = event(Kind::Read, 5, 6, Answer::Data(vec![0]));
        read.era = 1;
        let mut again = take(0, 6, 7, 8, Answer::Done);
        again.era = 1;
        assert!(judge(&[first.clone(), read.clone(), again.clone()]).is_ok());
        first.durable = true;
        assert!(judge(&[first.clone(), read]).is_err());
        assert!(judge(&[first, again]).is_err());
    }

    #[test]
    fn a_copy_writes_the_value_its_source_held() {
        let mut write = event(Kind::Write(vec![7]), 1, 2, Answer::Done);
        write.range = SectorRange::new(1, 1);
        let copy = event(Kind::Copy { from: 1 }, 3, 4, Answer::Done);
        let read = |tag| event(Kind::Read, 5, 6, Answer::Data(vec![tag]));
        assert!(judge(&[write.clone(), copy.clone(), read(7)]).is_ok());
        assert!(judge(&[write.clone(), copy.clone(), read(0)]).is_err());
        assert!(judge(&[write, copy, read(8)]).is_err());
    }
}
