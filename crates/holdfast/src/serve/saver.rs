//! The thread that makes durable what hosts have set: see [`front::Shared::save_next`].

use std::io;
use std::sync::Arc;

use front::TargetRecords;
use sys::attendant::{Attendant, LOOK_INTERVAL};

use super::shared::Shared;

/// Starts it. Hosts wait for it, so that it does not step back; it ends with nothing left to save.
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
