//! Work that a host did itself although it was to be offloaded, so that it is not credited to the
//! array.

use super::document::{Block, Cell, Column, Table, Tone};
use super::tables::{Pair, Sides};
use crate::number;
use crate::outcome::{InSoftware, Measure};

/// Returns the mark of one side of a case, if not all of that was offloaded: "on in software:
/// EXTENDED COPY".
pub fn mark(side: &str, measure: &Measure) -> Option<String> {
    let of = |of: &InSoftware| match of.share() {
        1.0.. => of.offload.clone(),
        share => format!("{} of {}", percent(share), of.offload),
    };
    let all: Vec<String> = measure.in_software.iter().map(of).collect();
    (!all.is_empty()).then(|| format!("{side} in software: {}", all.join(", ")))
}

/// Never 0% or 100% for other fractions.
fn percent(share: f64) -> String {
    match share * 100.0 {
        ..1.0 => String::from("under 1%"),
        percent => format!("{:.0}%", percent.min(99.0)),
    }
}

/// Returns both sides of all cases; `None` if everything was offloaded as intended.
pub fn table(sides: Sides, pairs: &[Pair<'_>]) -> Option<Block> {
    let mut rows = Vec::new();
    for pair in pairs {
        for (name, side) in [(sides.left, pair.left), (sides.right, pair.right)] {
            for of in side.into_iter().flat_map(|side| &side.in_software) {
                rows.push(row(&format!("{}, {name}", pair.case), of));
            }
        }
    }
    let caption = "Not offloaded: work that the host did itself although the array was to do it";
    made(caption, rows)
}

/// Returns the table for a whole scenario, including what was not measured.
pub fn table_of_all(in_software: &[InSoftware]) -> Option<Block> {
    let rows = in_software.iter().map(|of| row("whole scenario", of)).collect();
    made("Not offloaded, in the whole scenario including its preparation", rows)
}

fn made(caption: &str, rows: Vec<Vec<Cell>>) -> Option<Block> {
    let columns = vec![
        Column::words("Of"),
        Column::words("Offload"),
        Column::numbers("refused or failed"),
        Column::numbers("times by the host"),
        Column::numbers("by the host"),
        Column::numbers("by the array"),
    ];
    let caption = caption.to_owned();
    (!rows.is_empty()).then_some(Block::Table(Table { caption, columns, rows }))
}

fn row(case: &str, of: &InSoftware) -> Vec<Cell> {
    let texts = [
        case.to_owned(),
        of.offload.clone(),
        number::count(of.refused),
        number::count(of.by_host),
        number::bytes(of.by_host_bytes as f64),
        number::bytes(of.by_array_bytes as f64),
    ];
    texts.map(|text| Cell::new(text).toned(Tone::Bad)).into()
}

#[cfg(test)]
mod tests {
    use super::{mark, percent};
    use crate::outcome::{InSoftware, Measure};

    fn measure(by_host_bytes: u64, by_array_bytes: u64) -> Measure {
        let of = InSoftware {
            offload: String::from("WRITE SAME"),
            refused: 2,
            by_host: 3,
            by_host_bytes,
            by_array: 4,
            by_array_bytes,
        };
        Measure { in_software: vec![of], ..Measure::default() }
    }

    #[test]
    fn a_side_shows_how_much_was_done_in_software() {
        let mark = |measure: Measure| mark("on", &measure);
        assert_eq!(mark(Measure::default()), None);
        assert_eq!(mark(measure(5, 0)).as_deref(), Some("on in software: WRITE SAME"));
        assert_eq!(mark(measure(25, 75)).as_deref(), Some("on in software: 25% of WRITE SAME"));
        let both = Measure {
            in_software: [measure(5, 0), measure(0, 75)].map(|it| it.in_software).concat(),
            ..Measure::default()
        };
        let text = "on in software: WRITE SAME, under 1% of WRITE SAME";
        assert_eq!(mark(both).as_deref(), Some(text));
    }

    #[test]
    fn a_fraction_is_never_shown_as_0_or_100_percent() {
        assert_eq!(percent(0.001), "under 1%");
        assert_eq!(percent(0.9999), "99%");
    }
}
