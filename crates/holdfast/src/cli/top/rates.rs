//! The activity between two samples.

use std::collections::BTreeMap;

use api::Copied;

use super::sample::{Kind, Sample, Totals};

/// The bytes of esxtop's MB.
const MB: f64 = 1_048_576.0;

/// The counters of one object: since the start, and in the last interval.
#[derive(Clone, Debug)]
pub struct Line {
    /// The kind of the object.
    pub kind: Kind,
    /// The name of the object.
    pub name: String,
    /// The interval, in seconds.
    pub seconds: f64,
    /// The counts since the start.
    pub all: Totals,
    /// The counts of the interval.
    pub recent: Totals,
}

impl Line {
    /// Returns a count of the interval as a rate per second.
    pub fn per_second(&self, count: u64) -> f64 {
        if self.seconds > 0.0 { count as f64 / self.seconds } else { 0.0 }
    }

    /// Returns bytes of the interval, in MB per second.
    pub fn mb_per_second(&self, bytes: u64) -> f64 {
        self.per_second(bytes) / MB
    }
}

/// Returns the activity between two samples, a line for each object of the later one.
pub fn rates(before: &Sample, after: &Sample) -> Vec<Line> {
    let each = after.totals.iter().map(|((kind, name), totals)| {
        let known = before.totals.get(&(*kind, name.clone()));
        line(before, after, (*kind, name), known, totals)
    });
    each.collect()
}

/// Returns the same for the whole array.
pub fn array_rates(before: &Sample, after: &Sample) -> Line {
    line(before, after, (Kind::Volume, &after.array), Some(&before.all), &after.all)
}

/// Returns a line of an object that is gone: no activity, and no counts.
pub fn gone(kind: Kind, name: &str) -> Line {
    let nothing = Totals::default();
    Line { kind, name: name.to_owned(), seconds: 0.0, all: nothing.clone(), recent: nothing }
}

fn line(
    before: &Sample,
    after: &Sample,
    (kind, name): (Kind, &str),
    known: Option<&Totals>,
    totals: &Totals,
) -> Line {
    let seconds = after.at.saturating_duration_since(before.at).as_secs_f64();
    // A restarted array has counted from zero.
    let known = known.filter(|_| before.started_ms == after.started_ms);
    let recent = known.and_then(|known| added(known, totals)).unwrap_or_else(|| totals.clone());
    Line { kind, name: name.to_owned(), seconds, all: totals.clone(), recent }
}

/// Returns the increase; `None` if a counter has decreased, for example because another object got
/// the name.
fn added(before: &Totals, after: &Totals) -> Option<Totals> {
    if before.commands.keys().any(|class| !after.commands.contains_key(class)) {
        return None;
    }
    let each = after
        .commands
        .iter()
        .map(|(class, after)| Some((class.clone(), after.since(&before.of(class))?)));
    Some(Totals {
        commands: each.collect::<Option<BTreeMap<_, _>>>()?,
        copied_from: copies_added(before.copied_from, after.copied_from)?,
        copied_to: copies_added(before.copied_to, after.copied_to)?,
    })
}

fn copies_added(before: Copied, after: Copied) -> Option<Copied> {
    Some(Copied {
        commands: after.commands.checked_sub(before.commands)?,
        bytes: after.bytes.checked_sub(before.bytes)?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::{path, sample};
    use super::*;

    fn of(lines: &[Line], kind: Kind, name: &str) -> Line {
        lines.iter().find(|line| (line.kind, line.name.as_str()) == (kind, name)).unwrap().clone()
    }

    #[test]
    fn counts_are_totals_and_rates_are_of_the_interval() {
        let before = sample(1, 10, vec![path("iqn.a", "v", 100)]);
        let after = sample(1, 12, vec![path("iqn.a", "v", 120), path("iqn.b", "v", 10)]);
        let lines = rates(&before, &after);
        let volume = of(&lines, Kind::Volume, "v");
        assert_eq!((volume.all.of("write").ok, volume.recent.of("write").ok), (130, 30));
        assert_eq!(volume.per_second(volume.recent.of("write").ok), 15.0);
        assert_eq!(volume.mb_per_second(volume.recent.of("write").bytes), 15.0);
        assert_eq!(volume.recent.copied_to.commands, 30);
        // A host by its name, an initiator without a host by its own.
        assert_eq!(of(&lines, Kind::Host, "esx").recent.of("write").ok, 20);
        assert_eq!(of(&lines, Kind::Host, "iqn.b").recent.of("write").ok, 10);
        assert_eq!(array_rates(&before, &after).recent.of("write").ok, 30);
    }

    #[test]
    fn nothing_is_negative_after_a_restart() {
        let before = sample(1, 10, vec![path("iqn.a", "v", 100)]);
        for count in [7, 300] {
            let after = sample(2, 12, vec![path("iqn.a", "v", count)]);
            let line = of(&rates(&before, &after), Kind::Volume, "v");
            assert_eq!(line.recent.of("write").ok, count);
        }
        // The same run, but another volume has the name now.
        let after = sample(1, 12, vec![path("iqn.a", "v", 7)]);
        assert_eq!(of(&rates(&before, &after), Kind::Volume, "v").recent.of("write").ok, 7);
        let idle = sample(1, 12, Vec::new());
        assert!(rates(&before, &idle).iter().all(|line| line.kind == Kind::Port));
    }

    #[test]
    fn an_interval_of_zero_has_no_rate() {
        let one = sample(1, 10, vec![path("iqn.a", "v", 100)]);
        let two = sample(1, 10, vec![path("iqn.a", "v", 200)]);
        assert_eq!(rates(&one, &two)[0].per_second(100), 0.0);
    }
}
