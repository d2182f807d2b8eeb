//! The order of requests: their place in the session, and tasks that wait for their turn
//! ([`crate::task_set`]).
//!
//! A command that must wait is kept here with all of its data, like one that waits for data: it has
//! not begun, and is gone at once when it is aborted.

use super::Connection;
use crate::pdu::Bhs;
use crate::receive::Body;
use crate::session::{Admission, Place, before};
use crate::task::TaskState;
use crate::task_set::Queued;

/// A request that waits for earlier ones.
pub(super) enum Held {
    /// The task with this tag and serial number.
    Command(u32, u32),
    /// Any other request.
    Other(Bhs, Body, Place),
    /// A request that was aborted before it arrived. Its place is kept until its number's turn.
    Nothing(#[allow(dead_code)] Place),
}

impl Connection {
    /// Continues requests whose predecessors have arrived.
    pub(super) fn release_held(&mut self) {
        while !self.closed && self.leaving.is_none() && !self.held.is_empty() {
            let Some(expected) = self.session.as_ref().map(|session| session.expected()) else {
                break;
            };
            let next = (0..self.held.len())
                .filter(|at| before(self.held[*at].0, expected))
                .max_by_key(|at| expected.wrapping_sub(self.held[*at].0));
            let Some(next) = next else { break };
            match self.held.swap_remove(next).1 {
                Held::Command(tag, serial) => self.activate(tag, serial),
                Held::Other(bhs, body, place) => {
                    self.held_bytes -= body.bytes.len();
                    self.execute(&bhs, body, place);
                }
                Held::Nothing(_) => {}
            }
        }
        self.manage_waiting();
    }

    /// Enters a request into the session's order.
    pub(super) fn admit(&mut self, bhs: &Bhs, task: Option<Queued>) -> (Admission, Place) {
        let Some(session) = &self.session else { return (Admission::Dropped, Place::default()) };
        if bhs.immediate() {
            return (Admission::Now, Place::default());
        }
        let admitted = session.admit(bhs.cmd_sn(), task, self.id, &mut self.wake);
        self.tell_wakes();
        admitted
    }

    /// Returns the place of a request if it is immediate; `None` if there are too many.
    pub(super) fn immediate_place(&self, bhs: &Bhs, task: Option<Queued>) -> Option<Place> {
        let most = self.target.config().limits.immediate_commands_per_connection;
        match &self.session {
            Some(session) if bhs.immediate() => {
                Place::immediate(session, task, &self.immediate, most)
            }
            _ => Some(Place::default()),
        }
    }

    /// Returns whether a task that has all its data may be delivered; otherwise it waits until it
    /// may.
    pub(super) fn may_deliver(&mut self, tag: u32) -> bool {
        let turn = self.tasks.get(&tag).and_then(|task| task.place.turn());
        let (Some(turn), Some(session)) = (turn, &self.session) else { return true };
        let may_go = session.may_go(turn, self.id);
        if !may_go && !self.in_order.contains(&tag) {
            self.in_order.push(tag);
        }
        may_go
    }

    /// Tasks have ended, here or on another connection: delivers those that waited for them, in
    /// order.
    pub(super) fn deliver_waiting(&mut self) {
        if self.in_order.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.in_order);
        // Tasks that were aborted meanwhile are gone.
        waiting.retain(|tag| {
            self.tasks.get(tag).is_some_and(|task| task.state == TaskState::Collecting)
        });
        waiting.sort_by_key(|tag| self.tasks[tag].place.turn());
        for tag in waiting {
            self.proceed(tag);
        }
    }
}
