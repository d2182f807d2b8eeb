//! The thread that makes durable what hosts have set: see [`front::Shared::save_next`].

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use front::ReservationRecords;

use super::background::LOOK_INTERVAL;
use super::shared::Shared;

/// The thread. Ends when it is dropped, with nothing left to save.
pub(super) struct Saver {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Saver {
    pub(super) fn start(
        shared: &Arc<Shared>,
        records: Arc<dyn ReservationRecords>,
    ) -> io::Result<Self> {
        let its = shared.clone();
        let save_all = move || while its.front.save_next(&*records) {};
        let bell = shared.saver_bell.clone();
        let thread = thread::Builder::new().name("reservations".into()).spawn(move || {
            while bell.wait(LOOK_INTERVAL) {
                save_all();
            }
            save_all();
        })?;
        Ok(Self { shared: shared.clone(), thread: Some(thread) })
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        self.shared.saver_bell.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was printed when it happened.
            let _ = thread.join();
        }
    }
}
