//! Making reservations durable (APTPL): one thread for all, as a commit of the array waits.
//!
//! A command that waits is named by its front-end thread and task. The saver takes the state of the
//! volume as it is when its turn comes, so several commands may be served by one commit, and as it
//! is alone, what is written later is newer.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use array::{Array, Kind, Registration, Reservations};
use block::VolumeId;
use parking_lot::{Condvar, Mutex};
use scsi::{
    DeviceServer, InitiatorPort, SaveError, SavedRegistration, SavedReservation, SavedReservations,
};

use super::ServeError;
use super::mailbox::Message;
use super::shared::Shared;

/// Where reservations are kept through a restart.
pub trait ReservationRecords: Send + Sync {
    /// All that is kept.
    fn load(&self) -> Vec<(VolumeId, SavedReservations)>;

    /// Keeps these of a volume, or none; durable when it returns. Waits.
    ///
    /// # Errors
    /// Where nothing was changed.
    fn save(&self, volume: VolumeId, kept: Option<SavedReservations>) -> Result<(), SaveError>;
}

impl ReservationRecords for Array {
    fn load(&self) -> Vec<(VolumeId, SavedReservations)> {
        self.reservations().into_iter().map(|(volume, kept)| (volume, of_array(kept))).collect()
    }

    fn save(&self, volume: VolumeId, kept: Option<SavedReservations>) -> Result<(), SaveError> {
        self.keep_reservations(volume, kept.map(of_scsi)).map_err(|error| {
            tracing::error!("the reservations of volume {volume} can't be kept: {error}");
            if error.kind() == Kind::Full { SaveError::NoRoom } else { SaveError::Failed }
        })
    }
}

fn of_array(kept: Reservations) -> SavedReservations {
    let registration = |who: Registration| SavedRegistration {
        initiator: InitiatorPort { name: who.initiator, isid: who.isid },
        target_port: who.target_port,
        key: who.key,
    };
    let holder = kept.holder;
    SavedReservations {
        reservation: kept.type_code.map(|type_code| SavedReservation { type_code, holder }),
        registrations: kept.registrations.into_iter().map(registration).collect(),
    }
}

fn of_scsi(kept: SavedReservations) -> Reservations {
    let registration = |who: SavedRegistration| Registration {
        initiator: who.initiator.name,
        isid: who.initiator.isid,
        target_port: who.target_port,
        key: who.key,
    };
    Reservations {
        type_code: kept.reservation.map(|held| held.type_code),
        holder: kept.reservation.and_then(|held| held.holder),
        registrations: kept.registrations.into_iter().map(registration).collect(),
    }
}

/// Puts in force what was kept, before any session.
pub(super) fn restore(
    scsi: &DeviceServer,
    records: &dyn ReservationRecords,
) -> Result<(), ServeError> {
    for (volume, kept) in records.load() {
        if !scsi.restore_reservations(volume, kept) {
            return Err(ServeError::Reservations(volume));
        }
    }
    Ok(())
}

/// A command that waits: its front-end thread, and the name of its task.
struct Waiting {
    thread: usize,
    task: u64,
}

/// What is to be saved.
#[derive(Default)]
pub(super) struct SaverQueue {
    state: Mutex<QueueState>,
    filled: Condvar,
}

#[derive(Default)]
struct QueueState {
    /// As many as commands wait, and so bounded by their number.
    volumes: BTreeMap<VolumeId, Vec<Waiting>>,
    stop: bool,
}

impl SaverQueue {
    /// Has the reservations of a volume saved; then the thread is told to go on with the task.
    pub(super) fn save(&self, volume: VolumeId, thread: usize, task: u64) {
        self.state.lock().volumes.entry(volume).or_default().push(Waiting { thread, task });
        self.filled.notify_one();
    }

    /// Waits for a volume; `None` at the end, when all is saved.
    fn next(&self) -> Option<(VolumeId, Vec<Waiting>)> {
        let mut state = self.state.lock();
        loop {
            if let Some(next) = state.volumes.pop_first() {
                return Some(next);
            }
            if state.stop {
                return None;
            }
            self.filled.wait(&mut state);
        }
    }
}

/// The thread. Ends when it is dropped.
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
        let thread = thread::Builder::new().name("reservations".into()).spawn(move || {
            while let Some((volume, waiting)) = its.saver.next() {
                save(&its.scsi, &*records, volume);
                for Waiting { thread, task } in waiting {
                    its.mailboxes[thread].post(Message::Saved(task));
                }
            }
        })?;
        Ok(Self { shared: shared.clone(), thread: Some(thread) })
    }
}

fn save(scsi: &DeviceServer, records: &dyn ReservationRecords, volume: VolumeId) {
    // Nothing is left to do where an earlier turn has taken these changes along, or back.
    if let Some(unsaved) = scsi.unsaved_reservations(volume) {
        let result = records.save(volume, unsaved.record());
        scsi.reservations_saved(unsaved, result);
    }
}

impl Drop for Saver {
    fn drop(&mut self) {
        self.shared.saver.state.lock().stop = true;
        self.shared.saver.filled.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was printed when it happened.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_on_the_way_to_the_array_and_back() {
        let registration = |number: u8| SavedRegistration {
            initiator: InitiatorPort { name: format!("iqn.{number}"), isid: [number; 6] },
            target_port: number.into(),
            key: u64::from(number) << 60,
        };
        let registrations = vec![registration(1), registration(15)];
        let held = |type_code, holder| Some(SavedReservation { type_code, holder });
        for reservation in [None, held(5, Some(1)), held(8, None)] {
            let kept = SavedReservations { registrations: registrations.clone(), reservation };
            assert_eq!(of_array(of_scsi(kept.clone())), kept);
        }
    }

    #[test]
    fn one_turn_serves_all_that_wait_for_a_volume() {
        let queue = SaverQueue::default();
        for (volume, thread, task) in [(7, 0, 1), (3, 1, 2), (7, 2, 3)] {
            queue.save(VolumeId(volume), thread, task);
        }
        queue.state.lock().stop = true;
        let mut turns = Vec::new();
        while let Some((volume, waiting)) = queue.next() {
            let names: Vec<_> = waiting.iter().map(|w| (w.thread, w.task)).collect();
            turns.push((volume.0, names));
        }
        assert_eq!(turns, [(3, vec![(1, 2)]), (7, vec![(0, 1), (2, 3)])], "all, though it stops");
    }

    #[test]
    fn a_record_that_makes_no_sense_keeps_the_array_from_starting() {
        struct Bad;
        impl ReservationRecords for Bad {
            fn load(&self) -> Vec<(VolumeId, SavedReservations)> {
                let reservation = Some(SavedReservation { type_code: 2, holder: Some(0) });
                vec![(VolumeId(9), SavedReservations { registrations: Vec::new(), reservation })]
            }

            fn save(&self, _: VolumeId, _: Option<SavedReservations>) -> Result<(), SaveError> {
                Err(SaveError::Failed)
            }
        }
        let identity = block::ArrayIdentity {
            vendor: String::new(),
            product: String::new(),
            revision: String::new(),
            target_name: String::new(),
        };
        let size = block::SectorCount(0);
        let rods = scsi::RodVolume { id: VolumeId(99), size, key: [0; 32] };
        let counters = super::super::Counters::new(1, vec![1]);
        let scsi = DeviceServer::new(identity, Vec::new(), rods, Arc::new(counters));
        assert!(matches!(restore(&scsi, &Bad), Err(ServeError::Reservations(VolumeId(9)))));
    }
}
