//! Commands that wait for the limits of their volumes and volume groups ([`crate::throttle`]), and
//! watching these limits for all threads.

use std::sync::Arc;
use std::time::Duration;

use block::VolumeLimits;

use super::FrontEnd;
use crate::command_set::{Asked, CommandSet, Commands, Refusal};
use crate::mailbox::Message;
use crate::throttle::{Bucket, Entered, Gates, Held, Ticket, charged_bytes};

/// A bucket that this thread watches, and when to check it next.
pub(super) struct Tended {
    bucket: Arc<Bucket>,
    at: Duration,
}

impl FrontEnd {
    /// Returns a command if it may begin now; otherwise keeps it with its task. `moved`: the bytes
    /// that it transfers or reads; `verifies`: it sends none of them.
    pub(super) fn throttle(
        &mut self,
        index: usize,
        gates: Gates,
        verifies: bool,
        moved: u64,
        asked: Asked,
    ) -> Option<Asked> {
        let class = self.tasks.get_mut(index)?.class;
        let Some(bytes) = charged_bytes(class, verifies, moved) else { return Some(asked) };
        self.pass(index, gates, bytes, asked)
    }

    /// The same, with the bytes that count for the command.
    fn pass(&mut self, index: usize, mut gates: Gates, bytes: u64, asked: Asked) -> Option<Asked> {
        let now = self.shared.clock.now();
        let ticket = Ticket { thread: self.index, task: self.tasks.name(index), bytes };
        while let Some(bucket) = gates.next() {
            match bucket.enter(ticket, now) {
                Entered::Goes => continue,
                Entered::WaitsFirst => self.tend(bucket.clone(), now),
                Entered::Waits => {}
            }
            if let Some(task) = self.tasks.get_mut(index) {
                task.held = Some(Box::new(Held { asked, bucket, gates, bytes }));
            }
            return None;
        }
        Some(asked)
    }

    fn tend(&mut self, bucket: Arc<Bucket>, at: Duration) {
        if !self.tended.iter().any(|tended| Arc::ptr_eq(&tended.bucket, &bucket)) {
            self.tended.push(Tended { bucket, at });
        }
    }

    /// Returns when a bucket must be checked, if this thread has any.
    pub(super) fn tend_at(&self) -> Option<Duration> {
        self.tended.iter().map(|tended| tended.at).min()
    }

    /// Lets commands of all threads begin that have waited long enough.
    pub(super) fn tend_buckets(&mut self, now: Duration) {
        if self.tended.is_empty() {
            return;
        }
        let generation = self.shared.luns.generation();
        let is_new = std::mem::replace(&mut self.tended_generation, generation) != generation;
        let mut released = Vec::new();
        for Tended { bucket, at } in std::mem::take(&mut self.tended) {
            if at > now && !is_new && !self.is_stopping() {
                self.tended.push(Tended { bucket, at });
                continue;
            }
            // No message reports that limits were removed.
            if self.is_stopping() {
                bucket.set(VolumeLimits::NONE);
            } else if is_new {
                bucket.set(self.shared.luns.limits(bucket.of));
            }
            if let Some(at) = bucket.release(now, &mut released) {
                self.tended.push(Tended { bucket, at });
            }
        }
        for ticket in released {
            match ticket.thread == self.index {
                true => self.begin_held(ticket.task),
                false => {
                    let mailbox = &self.shared.mailboxes[ticket.thread];
                    mailbox.post(Message::Admitted(ticket.task));
                }
            }
        }
    }

    /// Begins a command that waited, with its host's current LUN map and reservations.
    pub(super) fn begin_held(&mut self, name: u64) {
        let Some(index) = self.tasks.find(name) else { return };
        let Some(task) = self.tasks.get_mut(index) else { return };
        let Some(held) = task.held.take() else { return };
        let (slot, connection, nexus) = (task.connection, task.handle.connection, &task.nexus);
        let (nexus, aborted) = (nexus.clone(), task.aborted);
        let shared = self.shared.clone();
        let peer = self.peers[slot].as_mut().filter(|peer| peer.id == connection && !aborted);
        let Some(peer) = peer else {
            return self.finish(index, Commands::refuse(Refusal::Aborted));
        };
        let luns = peer.refresh_luns(&*shared.luns, nexus.initiator().name.as_str()).clone();
        let traits = Commands::traits_of(&luns, held.asked.lun, &held.asked.bytes);
        let Held { asked, gates, bytes, .. } = *held;
        let Some(asked) = self.pass(index, gates, bytes, asked) else { return };
        let step = shared.begin(&nexus, &luns, traits, asked);
        self.advance(index, step);
        self.touch(slot);
    }

    /// Ends commands that were aborted while they waited. Returns whether there were any.
    pub(super) fn end_held(&mut self) -> bool {
        let names = self.tasks.take_aborted_held();
        for name in &names {
            let Some(index) = self.tasks.find(*name) else { continue };
            let Some(held) = self.tasks.get_mut(index).and_then(|task| task.held.take()) else {
                continue;
            };
            held.bucket.leave(self.index, *name);
            self.finish(index, Commands::refuse(Refusal::Aborted));
        }
        !names.is_empty()
    }

    /// Removes limits at the end, so that waiting commands of all threads finish.
    pub(super) fn lift_limits(&mut self) {
        let now = self.shared.clock.now();
        for bucket in self.tasks.held_buckets() {
            self.tend(bucket, now);
        }
    }
}
