//! The thread that makes durable what hosts have set: see [`front::Shared::save_next`].

use std::io;
use std::sync::Arc;

use front::TargetRecords;
use sys::attendant::{Attendant, LOOK_INTERVAL};

use super::shared::Shared;

/// Starts it. It has normal priority, because hosts wait for it, and ends when nothing is left to
/// save.
pub(super) fn start(
    shared: &Arc<Shared>,
    records: Arc<dyn TargetRecords>,
) -> io::Result<Attendant> {
    let front = shared.front.clone();
    Attendant::spawn("reservations", shared.saver_bell.clone(), move |bell| {
        let save_all = || while front.save_next(&*records) {};
        while bell.wait(LOOK_INTERVAL) {
            save_all();
        }
        save_all();
    })
}
