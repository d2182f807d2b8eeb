//! Makes the target's state of hosts durable, by a blocking commit of the array for one volume
//! after the other, and for ROD tokens. The caller of [`SaverQueue::save_next`] does the work.
//!
//! A waiting command is identified by its front-end thread and task. A volume's state is saved as
//! of the time of its turn, so one commit may serve several commands. Because only one call saves
//! at a time, later commits contain newer state.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::VolumeId;
use parking_lot::Mutex;
use scsi::DeviceServer;
use target::Subject;

use super::kept::TargetRecords;
use super::mailbox::{Mailbox, Message};
use super::wires::Wake;

/// A waiting command: its front-end thread, and the name of its task.
struct Waiting {
    thread: usize,
    task: u64,
}

/// The state to be saved.
pub(super) struct SaverQueue {
    /// The subjects that commands wait for, and those that a lost session or a reset has changed.
    /// Each is in the map once, so its size is bounded by the number of volumes.
    subjects: Mutex<BTreeMap<Subject, Vec<Waiting>>>,
    /// Requests a call of [`SaverQueue::save_next`].
    filled: Box<dyn Wake>,
    /// Held while one subject is saved.
    saving: Mutex<()>,
}

impl SaverQueue {
    pub(super) fn new(filled: Box<dyn Wake>) -> Self {
        Self { subjects: Mutex::default(), filled, saving: Mutex::default() }
    }

    /// Queues the state of these volumes, without a waiting command.
    pub(super) fn save_all(&self, volumes: Vec<VolumeId>) {
        if volumes.is_empty() {
            return;
        }
        let mut all = self.subjects.lock();
        for volume in volumes {
            all.entry(Subject::Volume(volume)).or_default();
        }
        drop(all);
        self.filled.wake();
    }

    /// Queues the ends of ROD tokens, without a waiting command.
    pub(super) fn save_tokens(&self) {
        self.subjects.lock().entry(Subject::Tokens).or_default();
        self.filled.wake();
    }

    /// Queues a subject; once it is saved, the thread continues with the task.
    pub(super) fn save(&self, subject: Subject, thread: usize, task: u64) {
        self.subjects.lock().entry(subject).or_default().push(Waiting { thread, task });
        self.filled.wake();
    }

    fn next(&self) -> Option<(Subject, Vec<Waiting>)> {
        self.subjects.lock().pop_first()
    }

    /// Makes durable what hosts have changed on the next volume, or of ROD tokens, and lets the
    /// commands that waited for that continue. Blocks on commits. Returns false if there was
    /// nothing to save.
    pub(super) fn save_next(
        &self,
        scsi: &DeviceServer,
        mailboxes: &[Arc<Mailbox>],
        records: &dyn TargetRecords,
    ) -> bool {
        let _saving = self.saving.lock();
        let Some((subject, waiting)) = self.next() else { return false };
        match subject {
            Subject::Volume(volume) => save_volume(scsi, volume, records),
            Subject::Tokens => save_tokens(scsi, records),
        }
        for Waiting { thread, task } in waiting {
            mailboxes[thread].post(Message::Saved(task));
        }
        true
    }
}

fn save_volume(scsi: &DeviceServer, volume: VolumeId, records: &dyn TargetRecords) {
    // Nothing is left to do if an earlier turn has saved these changes or rolled them back.
    if let Some(unsaved) = scsi.unsaved(volume) {
        let result = records.save(volume, unsaved.record());
        scsi.saved(unsaved, result);
    }
}

/// Saves all changes made before this call, or until a turn fails; several turns for many changes.
fn save_tokens(scsi: &DeviceServer, records: &dyn TargetRecords) {
    while let Some(unsaved) = scsi.unsaved_tokens() {
        let result = records.save_tokens(&unsaved);
        scsi.saved_tokens(unsaved, result);
        if result.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    struct Rings(Arc<AtomicU32>);

    impl Wake for Rings {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn one_save_serves_all_commands_that_wait_for_a_volume() {
        let rung = Arc::new(AtomicU32::new(0));
        let queue = SaverQueue::new(Box::new(Rings(rung.clone())));
        for (volume, thread, task) in [(7, 0, 1), (3, 1, 2), (7, 2, 3)] {
            queue.save(Subject::Volume(VolumeId(volume)), thread, task);
        }
        queue.save_all(vec![VolumeId(3), VolumeId(9)]);
        queue.save_all(Vec::new());
        queue.save_tokens();
        assert_eq!(rung.load(Ordering::Relaxed), 5, "not without need");
        let mut turns = Vec::new();
        while let Some((subject, waiting)) = queue.next() {
            let names: Vec<_> = waiting.iter().map(|w| (w.thread, w.task)).collect();
            turns.push((subject, names));
        }
        let of = |volume| Subject::Volume(VolumeId(volume));
        let volumes = [(of(3), vec![(1, 2)]), (of(7), vec![(0, 1), (2, 3)]), (of(9), vec![])];
        let all: Vec<_> = volumes.into_iter().chain([(Subject::Tokens, vec![])]).collect();
        assert_eq!(turns, all);
    }
}
