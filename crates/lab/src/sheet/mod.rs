//! Presentations of results: a page, a table, and two of them side by side.
//!
//! Everything goes through a [`document::Document`], which has the content; [`html()`] and
//! [`markdown()`] present it.

mod chart;
mod compare;
mod document;
mod html;
mod in_software;
mod json;
mod markdown;
mod quantity;
mod ratio;
mod report;
mod summary;
mod tables;
mod verb;

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::outcome::Report;

pub use ratio::Ratio;
pub use verb::{CompareArgs, ReportArgs, compare, report};

/// Returns a report as one self-contained HTML page: no script, and nothing is fetched.
pub fn html(report: &Report) -> String {
    html::page(&report::document(report))
}

/// Returns a report as Markdown tables. It has no charts.
pub fn markdown(report: &Report) -> String {
    markdown::text(&report::document(report))
}

/// Returns the JSON form of a report; [`Report`] reads it again.
pub fn json(report: &Report) -> impl Serialize + '_ {
    json::written(report)
}

/// Returns two reports side by side, as [`html()`].
pub fn compare_html(a: &Report, b: &Report) -> String {
    html::page(&compare::document(a, b))
}

/// Returns two reports side by side, as [`markdown()`].
pub fn compare_markdown(a: &Report, b: &Report) -> String {
    markdown::text(&compare::document(a, b))
}
