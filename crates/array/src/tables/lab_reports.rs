//! All reports of the lab in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::Error;
use crate::objects::lab_reports::{LAB_REPORTS_MAX, LabReport};
use crate::values::text::shown;

/// All reports, by their names in lower case.
#[derive(Debug, Default)]
pub(crate) struct LabReports {
    by_name: BTreeMap<String, Arc<LabReport>>,
}

impl LabReports {
    /// Adds a report, or replaces the one with its name.
    pub(crate) fn replace(&mut self, report: Arc<LabReport>) {
        self.by_name.insert(report.name.key(), report);
    }

    /// Removes the report with this name in lower case.
    pub(crate) fn remove(&mut self, key: &str) {
        self.by_name.remove(key);
    }

    /// Checks that there is room for a report with this name.
    pub(crate) fn check_room(&self, report: &LabReport) -> Result<(), Error> {
        if self.by_name.len() < LAB_REPORTS_MAX || self.by_name.contains_key(&report.name.key()) {
            return Ok(());
        }
        Err(Error::Limit { what: "lab reports", limit: LAB_REPORTS_MAX })
    }

    /// A report by its name, ignoring case.
    pub(crate) fn find(&self, name: &str) -> Result<&Arc<LabReport>, Error> {
        let found = self.by_name.get(&name.to_ascii_lowercase());
        found.ok_or_else(|| Error::NoSuchLabReport(shown(name)))
    }

    /// All of them, in the order of their names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<LabReport>> {
        self.by_name.values()
    }
}
