//! The quantity that represents a measure: the seconds, or the value that the figure is about.

use super::tables;
use crate::figures::{self, Quantity};
use crate::number;
use crate::outcome::{Chart, LEAST_SECONDS, Measure, Series};

/// The quantity that is shown for a scenario if there is only one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shown {
    /// How long it took.
    Seconds,
    /// A value with this name and unit.
    Value(String, String),
}

impl Shown {
    /// Returns the quantity of a scenario with this id and these measures: the first value of them
    /// if the figure is about values, and there are any.
    pub fn of<'a>(id: &str, mut measures: impl Iterator<Item = &'a Measure>) -> Self {
        let quantity = figures::find(id).map_or(Quantity::Seconds, |figure| figure.quantity);
        if quantity == Quantity::Seconds {
            return Self::Seconds;
        }
        match measures.find_map(|measure| measure.values.first()) {
            Some(value) => Self::Value(value.name.clone(), value.unit.clone()),
            None => Self::Seconds,
        }
    }

    /// Returns the number; `None` if it was not measured.
    pub fn read(&self, measure: Option<&Measure>) -> Option<f64> {
        match self {
            Self::Seconds => measure.map(|measure| measure.seconds),
            Self::Value(name, unit) => tables::value(measure?, name, unit),
        }
    }

    /// Returns the smallest value that can be measured.
    pub fn least(&self) -> f64 {
        match self {
            Self::Seconds => LEAST_SECONDS,
            Self::Value(..) => 0.0,
        }
    }

    /// Formats the number.
    pub fn show(&self, value: Option<f64>) -> String {
        match (value, self) {
            (None, _) => number::NONE.to_owned(),
            (Some(value), Self::Seconds) => number::seconds(value),
            (Some(value), Self::Value(_, unit)) => number::quantity(value, unit),
        }
    }

    /// Returns a case, with its quantity.
    pub fn case(&self, case: &str) -> String {
        match self {
            Self::Seconds => case.to_owned(),
            Self::Value(name, _) => format!("{case}, {name}"),
        }
    }

    /// Returns bars of it. Each series has a measure for every label.
    pub fn bars(&self, labels: Vec<String>, series: &[(&str, Vec<Option<&Measure>>)]) -> Chart {
        let (title, unit) = match self {
            Self::Seconds => ("Seconds, less is better", "s"),
            Self::Value(name, unit) => (name.as_str(), unit.as_str()),
        };
        let series = series.iter().map(|(name, measures)| Series {
            name: (*name).to_owned(),
            values: measures.iter().map(|measure| self.read(*measure)).collect(),
        });
        Chart::Bars {
            title: title.to_owned(),
            unit: unit.to_owned(),
            labels,
            series: series.collect(),
        }
    }
}
