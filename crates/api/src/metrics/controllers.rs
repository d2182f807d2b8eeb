//! Metrics of controllers.

use super::Exposition;
use crate::Interface;
use crate::controllers::Controller;

/// Adds the state of each controller, and which of them has the pool.
pub(super) fn controllers(interface: &Interface, page: &mut Exposition) {
    let all = Controller::all(interface);
    let mut ready = page.gauge("holdfast_controller_ready", "Whether the controller is ready.");
    for controller in &all {
        ready.count(&[("controller", &controller.name)], u64::from(controller.status == "ready"));
    }
    let help = "Whether the controller has the pool.";
    let mut primary = page.gauge("holdfast_controller_primary", help);
    for controller in &all {
        let is_primary = u64::from(controller.mode == "primary");
        primary.count(&[("controller", &controller.name)], is_primary);
    }
}
