//! Metrics of alerts.

use array::Severity;

use super::Exposition;
use crate::Interface;

/// Adds the alerts that are not closed, by severity.
pub(super) fn alerts(interface: &Interface, page: &mut Exposition) {
    let mut open = page.gauge("holdfast_alerts_open", "Alerts that are not closed.");
    for (severity, count) in Severity::ALL.into_iter().zip(interface.array.open_alerts()) {
        open.count(&[("severity", severity.name())], count as u64);
    }
}
