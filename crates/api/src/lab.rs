//! `/v1/lab`: measurements that the lab made on this array, with published figures beside them.

mod report;

use std::sync::Arc;

use array::LabReportName;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use report::{
    LabAim, LabCase, LabMachine, LabMeasured, LabPublished, LabRatio, LabScenario, LabSettings,
    LabState,
};

use crate::{ApiError, Refusal, Shared, blocking};

/// A report of the lab.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LabReport {
    /// What it is called here.
    pub name: String,
    /// What was measured.
    pub measured: LabMeasured,
}

impl From<Arc<array::LabReport>> for LabReport {
    fn from(report: Arc<array::LabReport>) -> Self {
        let array::LabReport { name, measured } = Arc::unwrap_or_clone(report);
        Self { name: name.to_string(), measured: measured.into() }
    }
}

/// A report without its scenarios.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LabReportLine {
    /// What it is called here.
    pub name: String,
    /// When the run began, in milliseconds since 1970.
    pub measured_ms: u64,
    /// The version of the lab.
    pub lab_version: String,
    /// Vendor, product and revision of the array, from INQUIRY.
    pub array: String,
    /// The name of the array in the report.
    pub array_name: String,
    /// What survives a loss of power after a write was acknowledged, in words.
    pub durability: String,
    /// How it was measured.
    pub settings: LabSettings,
    /// How many scenarios it has.
    pub scenarios: usize,
    /// How many of them failed.
    pub failed: usize,
    /// How many of them were skipped.
    pub skipped: usize,
    /// How many aims there were.
    pub aims: usize,
    /// How many of them were reached.
    pub aims_met: usize,
}

impl From<&array::LabReport> for LabReportLine {
    fn from(report: &array::LabReport) -> Self {
        let array::LabReport { name, measured } = report;
        let scenarios = &measured.scenarios;
        let ended = |state| scenarios.iter().filter(|scenario| scenario.state == state).count();
        let aims = || scenarios.iter().flat_map(|scenario| &scenario.aims);
        Self {
            name: name.to_string(),
            measured_ms: measured.measured_ms,
            lab_version: measured.lab_version.clone(),
            array: measured.array.clone(),
            array_name: measured.array_name.clone(),
            durability: measured.durability.clone(),
            settings: measured.settings.clone().into(),
            scenarios: scenarios.len(),
            failed: ended(array::lab_reports::LabState::Failed),
            skipped: ended(array::lab_reports::LabState::Skipped),
            aims: aims().count(),
            aims_met: aims().filter(|aim| aim.met).count(),
        }
    }
}

/// All reports, in the order of their names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LabReports {
    /// The reports: 32 at most.
    #[schema(max_items = 32)]
    pub reports: Vec<LabReportLine>,
}

/// Lists all reports of the lab, without their scenarios.
#[utoipa::path(get, path = "/v1/lab/reports", responses(
    (status = 200, body = LabReports),
    (status = 401, body = Refusal),
))]
pub(crate) async fn list(State(interface): Shared) -> Result<Json<LabReports>, ApiError> {
    blocking(interface, |interface| {
        let kept = interface.array.lab_reports();
        let reports = kept.iter().map(|report| LabReportLine::from(report.as_ref())).collect();
        Ok(Json(LabReports { reports }))
    })
    .await
}

/// Shows a report of the lab.
#[utoipa::path(get, path = "/v1/lab/reports/{name}", params(("name" = String, Path)), responses(
    (status = 200, body = LabReport),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn show(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<LabReport>, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| Ok(Json(interface.array.lab_report(&name)?.into()))).await
}

/// Keeps a report of the lab: at most 32, each up to 60 KiB when stored. It replaces a report with
/// the same name.
#[utoipa::path(
    put,
    path = "/v1/lab/reports/{name}",
    params(("name" = String, Path, description = "1 to 63 of A-Z a-z 0-9 - _.")),
    request_body = LabMeasured,
    responses(
        (status = 200, body = LabReportLine),
        (status = 400, body = Refusal),
        (status = 401, body = Refusal),
        (status = 403, body = Refusal),
        (status = 507, body = Refusal),
    )
)]
pub(crate) async fn keep(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
    body: Result<Json<LabMeasured>, JsonRejection>,
) -> Result<Json<LabReportLine>, ApiError> {
    let (Path(name), Json(measured)) = (name?, body?);
    blocking(interface, move |interface| {
        let name = LabReportName::new(&name)?;
        let report = array::LabReport { name, measured: measured.into() };
        let kept = interface.array.keep_lab_report(report)?;
        Ok(Json(LabReportLine::from(kept.as_ref())))
    })
    .await
}

/// Removes a report of the lab.
#[utoipa::path(delete, path = "/v1/lab/reports/{name}", params(("name" = String, Path)),
    responses(
    (status = 204, description = "It is gone."),
    (status = 401, body = Refusal),
    (status = 403, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn delete(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| {
        interface.array.delete_lab_report(&name).map(|()| StatusCode::NO_CONTENT)
    })
    .await
}
