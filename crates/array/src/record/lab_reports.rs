//! The records of the lab's reports: a record holds a whole report.

use serde::{Deserialize, Serialize};

use super::row::{VERSION, damaged, encode};
use crate::error::Error;
use crate::objects::lab_reports::{LabMeasured, LabReport};
use crate::values::name::LabReportName;

#[derive(Serialize, Deserialize)]
pub(super) struct LabReportRow<M> {
    v: u8,
    name: String,
    measured: M,
}

pub(crate) fn lab_report_key(name: &LabReportName) -> Vec<u8> {
    let mut key = vec![b'L'];
    key.extend_from_slice(name.key().as_bytes());
    key
}

pub(crate) fn lab_report(report: &LabReport) -> Result<Vec<u8>, Error> {
    let name = report.name.to_string();
    encode(&LabReportRow { v: VERSION, name, measured: &report.measured })
}

pub(super) fn decode_lab_report(
    key: &[u8],
    row: LabReportRow<LabMeasured>,
) -> Result<LabReport, Error> {
    let LabReportRow { name, measured, .. } = row;
    measured.check()?;
    let report = LabReport { name: LabReportName::new(&name)?, measured };
    match lab_report_key(&report.name) == key {
        true => Ok(report),
        false => Err(damaged(key, "it is the record of another report")),
    }
}
