//! The state that the connections of a session share: the command window (RFC 7143, 4.2.2.1), and
//! the tags of tasks, which are unique in a session (RFC 7143, 11.2.1.8).

use std::cell::RefCell;
use std::rc::Rc;

use crate::pdu::NO_TAG;

/// Returns whether `a` precedes `b` in serial number arithmetic (RFC 1982).
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// The counters of a session.
#[derive(Clone, Debug)]
pub(crate) struct Window(Rc<RefCell<Counters>>);

#[derive(Debug)]
struct Counters {
    /// The CmdSN of the next request.
    next: u32,
    max: u32,
    /// The Initiator Task Tag of the next request.
    next_itt: u32,
}

impl Window {
    /// Creates a closed window: only immediate requests may be sent yet.
    pub(crate) fn new(first_cmd_sn: u32) -> Self {
        let max = first_cmd_sn.wrapping_sub(1);
        Self(Rc::new(RefCell::new(Counters { next: first_cmd_sn, max, next_itt: 1 })))
    }

    pub(crate) fn next(&self) -> u32 {
        self.0.borrow().next
    }

    /// Returns how many more requests the target accepts.
    pub(crate) fn room(&self) -> u32 {
        let counters = self.0.borrow();
        match before(counters.max, counters.next) {
            true => 0,
            false => counters.max.wrapping_sub(counters.next).wrapping_add(1),
        }
    }

    /// Takes the next CmdSN.
    pub(crate) fn take(&self) -> u32 {
        let mut counters = self.0.borrow_mut();
        let cmd_sn = counters.next;
        counters.next = cmd_sn.wrapping_add(1);
        cmd_sn
    }

    /// Returns the next tag.
    pub(crate) fn next_itt(&self) -> u32 {
        self.0.borrow().next_itt
    }

    /// Takes the next tag.
    pub(crate) fn take_itt(&self) -> u32 {
        let mut counters = self.0.borrow_mut();
        let tag = counters.next_itt;
        assert!(tag < NO_TAG, "a session has at most 2^32 - 1 tags");
        counters.next_itt += 1;
        tag
    }

    /// Notes MaxCmdSN as received on one of the connections; the greatest counts.
    pub(crate) fn note_max(&self, max: u32) {
        let mut counters = self.0.borrow_mut();
        if before(counters.max, max) {
            counters.max = max;
        }
    }
}
