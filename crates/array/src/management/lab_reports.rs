//! Keeping reports of the lab.

use std::sync::Arc;

use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::objects::lab_reports::{LAB_REPORT_BYTES_MAX, LabReport, invalid};
use crate::record;
use crate::state::State;

impl Array {
    /// Keeps a report; it replaces one with the same name.
    ///
    /// # Errors
    /// `invalid_lab_report`, `limit_reached`, and those of the store.
    pub fn keep_lab_report(&self, report: LabReport) -> Result<Arc<LabReport>, Error> {
        report.measured.check()?;
        let record = record::lab_report(&report)?;
        if record.len() > LAB_REPORT_BYTES_MAX {
            let most = LAB_REPORT_BYTES_MAX;
            let text = format!(
                "A lab report takes up to {most} bytes; this one takes {}. Keep fewer scenarios.",
                record.len()
            );
            return invalid(text);
        }
        let plan = |state: &State| {
            state.lab_reports.check_room(&report)?;
            let config = vec![(record::lab_report_key(&report.name), Some(record))];
            Ok((Change { config, ..Change::default() }, Arc::new(report)))
        };
        self.change(plan, |state, report| {
            state.lab_reports.replace(report.clone());
            report
        })
    }

    /// All reports that are kept, in the order of their names.
    pub fn lab_reports(&self) -> Vec<Arc<LabReport>> {
        self.read().lab_reports.all().cloned().collect()
    }

    /// A report by its name, ignoring case.
    ///
    /// # Errors
    /// `no_such_lab_report`.
    pub fn lab_report(&self, name: &str) -> Result<Arc<LabReport>, Error> {
        self.read().lab_reports.find(name).cloned()
    }

    /// Removes a report.
    ///
    /// # Errors
    /// `no_such_lab_report`, and those of the store.
    pub fn delete_lab_report(&self, name: &str) -> Result<(), Error> {
        let plan = |state: &State| {
            let name = &state.lab_reports.find(name)?.name;
            let config = vec![(record::lab_report_key(name), None)];
            Ok((Change { config, ..Change::default() }, name.key()))
        };
        self.change(plan, |state, key| {
            state.lab_reports.remove(&key);
        })
    }
}
