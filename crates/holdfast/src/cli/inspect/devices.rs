//! The present devices of a pool on several, and which devices would suffice.

use std::fmt;

use format::label::MemberState;
use segments::{Survey, Surveyed};
use serde::Serialize;

/// The devices of a pool, by their labels.
#[derive(Serialize)]
pub struct Devices {
    /// The id of the pool: 32 hex digits.
    pool_id: String,
    /// The sequence number of the newest label.
    sequence: u64,
    members: Vec<Member>,
    /// The number of devices with current content that are required to read anything; null if
    /// unknown.
    needed: Option<usize>,
    /// The number of the pool's devices with current content.
    of: Option<usize>,
    /// The number of these that are present.
    there: usize,
    /// The number of these that are missing and required.
    lacking: Option<usize>,
    /// The given places that are not devices of this pool.
    strangers: Vec<String>,
    /// The given places that do not respond.
    silent: Vec<String>,
}

#[derive(Serialize)]
struct Member {
    number: u16,
    id: String,
    /// Its state in the newest label: `in`, `out`, `kept_out`.
    state: &'static str,
    /// Whether its content is current.
    counts: bool,
    /// Its place; null if it is missing.
    place: Option<String>,
    /// The sequence number of its own label.
    sequence: Option<u64>,
    /// The number of intact copies of its label, out of two.
    whole_labels: Option<usize>,
}

impl From<Survey> for Devices {
    fn from(survey: Survey) -> Self {
        Self {
            pool_id: survey.pool_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            sequence: survey.sequence,
            needed: survey.needed.map(|(needed, _)| needed),
            of: survey.needed.map(|(_, of)| of),
            there: survey.there(),
            lacking: survey.lacking(),
            members: survey.members.into_iter().map(Member::from).collect(),
            strangers: survey.strangers,
            silent: survey.silent,
        }
    }
}

impl From<Surveyed> for Member {
    fn from(device: Surveyed) -> Self {
        let counts = device.counts();
        let (place, sequence, whole_labels) = match device.found {
            Some(found) => (Some(found.name), Some(found.sequence), Some(found.whole_labels)),
            None => (None, None, None),
        };
        Self {
            number: device.number,
            id: device.id.to_string(),
            state: match device.state {
                MemberState::In => "in",
                MemberState::Out => "out",
                MemberState::Kept => "kept_out",
            },
            counts,
            place,
            sequence,
            whole_labels,
        }
    }
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.replace('_', " ");
        write!(f, "device      {}: ", self.number)?;
        match (&self.place, self.sequence, self.whole_labels) {
            (Some(place), Some(sequence), Some(whole)) => {
                write!(f, "{state}, {place}, label of sequence {sequence}")?;
                if whole < 2 {
                    write!(f, ", of which one copy is bad")?;
                }
            }
            _ => write!(f, "missing; it was {state}")?,
        }
        writeln!(f, ", id {}", self.id)
    }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pool        {}, labels of sequence {}", self.pool_id, self.sequence)?;
        self.members.iter().try_for_each(|member| write!(f, "{member}"))?;
        for stranger in &self.strangers {
            writeln!(f, "stranger    {stranger}: it has no label of this pool")?;
        }
        for silent in &self.silent {
            writeln!(f, "silent      {silent}: it does not answer")?;
        }
        writeln!(f, "enough      {}", self.enough())
    }
}

impl Devices {
    /// Returns which devices would suffice, and what can be read with those that are present.
    fn enough(&self) -> String {
        let (Some(needed), Some(of), Some(lacking)) = (self.needed, self.of, self.lacking) else {
            return format!(
                "the required number is unknown; {} current ones are present",
                self.there
            );
        };
        let any = match needed == of {
            true => format!("all {of} devices"),
            false => format!("any {needed} of {of} devices"),
        };
        let there = self.there;
        if lacking == 0 {
            let spare = match there - needed {
                0 => "all of them are required".to_owned(),
                spare => format!("even without {spare} of them"),
            };
            return format!(
                "{any}; {there} current ones are present: all data can be read, {spare}"
            );
        }
        let can_help = self.members.iter().filter(|it| it.counts && it.place.is_none());
        let missing: Vec<String> =
            can_help.map(|it| format!("{} ({})", it.number, it.id)).collect();
        let more = match missing.len() < lacking {
            true => format!("and only {} current ones are missing", missing.len()),
            false => format!("{lacking} more of these are required: {}", missing.join(", ")),
        };
        format!("{any}; {there} current ones are present: no data can be read, {more}")
    }
}
