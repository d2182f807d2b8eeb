//! The order of tasks of one logical unit on a connection (SAM-5, 8.7): one with the ORDERED
//! attribute is delivered when all that came before it have ended, and until it has ended none that
//! came after it is. SIMPLE tasks have no order, and HEAD OF QUEUE goes at once.
//!
//! A command that has to wait stays here, with all of its data, as one that waits for data does: it
//! has not begun, and is gone at once when it is aborted. While no task is ORDERED this costs one
//! comparison.

use super::Connection;
use crate::event::TaskAttribute;
use crate::task::{Task, TaskState};

/// What the tasks of a connection wait for.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Unfinished tasks with the ORDERED attribute.
    ordered: usize,
    /// The tags of those that have all their data and wait for their turn.
    waiting: Vec<u32>,
}

/// One form of a logical unit number that can be addressed by two methods (SAM-5, 4.7.7).
fn unit(mut lun: [u8; 8]) -> [u8; 8] {
    if lun[0] == 0x40 {
        lun[0] = 0; // flat space addressing of a number below 256
    }
    lun
}

impl Connection {
    /// A task has come.
    pub(super) fn order_came(&mut self, task: &Task) {
        self.order.ordered += usize::from(task.attribute == TaskAttribute::Ordered);
    }

    /// A task has gone.
    pub(super) fn order_went(&mut self, task: &Task) {
        self.order.ordered -= usize::from(task.attribute == TaskAttribute::Ordered);
    }

    /// Whether a task that has all its data may be delivered; else it waits until it may.
    pub(super) fn may_deliver(&mut self, tag: u32) -> bool {
        if self.order.ordered == 0 || self.is_next(tag) {
            return true;
        }
        if !self.order.waiting.contains(&tag) {
            self.order.waiting.push(tag);
        }
        false
    }

    /// Whether nothing that came before stands in the way of a task.
    fn is_next(&self, tag: u32) -> bool {
        let Some(task) = self.tasks.get(&tag) else { return true };
        let is_ordered = task.attribute == TaskAttribute::Ordered;
        if task.attribute == TaskAttribute::HeadOfQueue {
            return true;
        }
        let bars = |other: &Task| {
            // Serial numbers wrap around, and a window is far shorter than half of them.
            let is_older = (task.serial.wrapping_sub(other.serial) as i32) > 0;
            let is_ordered = is_ordered || other.attribute == TaskAttribute::Ordered;
            is_older && is_ordered && unit(other.lun) == unit(task.lun)
        };
        !self.tasks.values().any(bars)
    }

    /// Tasks have gone: delivers those that waited for them, in the order in which they came.
    pub(super) fn deliver_waiting(&mut self) {
        if self.order.waiting.is_empty() {
            return;
        }
        let mut waiting = std::mem::take(&mut self.order.waiting);
        // What was aborted meanwhile is gone.
        waiting.retain(|tag| {
            self.tasks.get(tag).is_some_and(|task| task.state == TaskState::Collecting)
        });
        waiting.sort_by_key(|tag| self.tasks[tag].serial);
        for tag in waiting {
            self.proceed(tag);
        }
    }
}
