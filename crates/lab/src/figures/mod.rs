//! What the papers publish about their arrays: one entry for every figure that the lab reproduces.
//!
//! Facts with their source, in our own words. "Off" means that the host does the work itself, "on"
//! the array. If a paper has a chart without numbers in its text, the entry says what the text says
//! about it, and no number is read off a picture.
//!
//! Sources: 000 is Pure Storage, "VMware Storage APIs for Array Integration with the Pure Storage
//! FlashArray" (August 2015); 001 and 003 are posts of its author about it; 002 is EMC, "Using
//! VMware vSphere Storage APIs for Array Integration with EMC VMAX"; 004 is IBM, "Using IBM
//! FlashSystem V840 with the VMware vStorage APIs for Array Integration".

mod ibm;
mod pure;
mod vmax;

/// One figure of a paper, or one statement, that a scenario reproduces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The id of the scenario: "P-13".
    pub id: &'static str,
    /// The paper and the location in it: "000 Pure, fig. 13".
    pub paper: &'static str,
    /// What is done.
    pub title: &'static str,
    /// What was measured there, the most significant first.
    pub published: &'static [Published],
    /// What the paper draws.
    pub chart: ChartKind,
    /// What the paper compares, and so what the summary shows.
    pub quantity: Quantity,
}

/// A paper's statement; fields are `None` if it makes none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Published {
    /// What was measured.
    pub what: &'static str,
    /// Without offload.
    pub off: Option<&'static str>,
    /// With it.
    pub on: Option<&'static str>,
    /// The improvement, in the paper's measure.
    pub gain: Option<&'static str>,
}

/// What a paper draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChartKind {
    /// Bars, one group a case.
    Bars,
    /// Bars, one group per case.
    Lines,
}

/// What a paper compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// How long something takes.
    Seconds,
    /// Something else, the first of [`crate::outcome::Measure::values`].
    Value,
}

/// All of them, in the order of the papers.
pub const ALL: &[Figure] = &[
    pure::P_9,
    pure::P_13,
    pure::B_SCALE,
    pure::P_14,
    pure::P_15,
    pure::P_16,
    pure::P_17,
    pure::P_18,
    pure::P_6,
    pure::P_19,
    vmax::V_25,
    vmax::V_30,
    vmax::V_31,
    vmax::V_34,
    vmax::V_35,
    vmax::V_36,
    vmax::V_37,
    vmax::V_38,
    vmax::V_48,
    vmax::V_51,
    vmax::V_52,
    vmax::V_53,
    vmax::V_55,
    ibm::I_ZERO,
    ibm::I_COPY,
    ibm::I_LOCK,
];

/// Returns the figure with this id.
pub fn find(id: &str) -> Option<&'static Figure> {
    ALL.iter().find(|figure| figure.id == id)
}

/// Returns its index among all figures; after them if it is not one of them.
pub fn position(id: &str) -> usize {
    ALL.iter().position(|figure| figure.id == id).unwrap_or(ALL.len())
}

impl Published {
    /// Creates a statement about `what`, still without a number.
    const fn of(what: &'static str) -> Self {
        Self { what, off: None, on: None, gain: None }
    }

    const fn off(self, off: &'static str) -> Self {
        Self { off: Some(off), ..self }
    }

    const fn on(self, on: &'static str) -> Self {
        Self { on: Some(on), ..self }
    }

    const fn gain(self, gain: &'static str) -> Self {
        Self { gain: Some(gain), ..self }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ALL, find, position};

    const IDS: [&str; 26] = [
        "P-9", "P-13", "B-scale", "P-14", "P-15", "P-16", "P-17", "P-18", "P-6", "P-19", "V-25",
        "V-30", "V-31", "V-34", "V-35", "V-36", "V-37", "V-38", "V-48", "V-51", "V-52", "V-53",
        "V-55", "I-zero", "I-copy", "I-lock",
    ];

    #[test]
    fn every_figure_is_listed_once_and_in_order() {
        let ids: Vec<&str> = ALL.iter().map(|figure| figure.id).collect();
        assert_eq!(ids, IDS);
        let unique: BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(unique.len(), ids.len());
    }

    #[test]
    fn every_figure_has_content() {
        for figure in ALL {
            assert!(!figure.published.is_empty(), "{}", figure.id);
            for published in figure.published {
                let states = [published.off, published.on, published.gain];
                assert!(states.iter().any(Option::is_some), "{}: {}", figure.id, published.what);
            }
        }
    }

    #[test]
    fn unknown_scenarios_come_last() {
        assert_eq!(find("P-13").map(|figure| figure.paper), Some("000 Pure, fig. 13"));
        assert_eq!(find("X-1"), None);
        assert_eq!((position("P-9"), position("X-1")), (0, ALL.len()));
    }
}
