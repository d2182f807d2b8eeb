//! Observes a front end that serves: its sessions, and problems besides commands. For display:
//! nothing here delays a command.

use std::collections::BTreeMap;
use std::sync::Arc;

use front::sessions::{Refused, SessionSnapshot};
use parking_lot::Mutex;

use super::controllers::Other;
use super::shared::Shared;

/// Current failures in the background: what fails, and why.
#[derive(Default)]
pub(super) struct Troubles(Mutex<BTreeMap<&'static str, String>>);

impl Troubles {
    /// Sets or clears a failure. Returns whether that is a change.
    pub(super) fn set(&self, what: &'static str, why: Option<String>) -> bool {
        let mut all = self.0.lock();
        match why {
            Some(why) => all.insert(what, why).is_none(),
            None => all.remove(what).is_some(),
        }
    }
}

/// Observes a front end that serves. Cheap to clone.
#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
}

impl Observer {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Returns all sessions that carry commands, sorted by initiator and portal.
    pub fn sessions(&self) -> Vec<SessionSnapshot> {
        self.shared.front.sessions()
    }

    /// Returns the last ended session of each initiator and portal, with its end in milliseconds
    /// since 1970.
    pub fn ended_sessions(&self) -> Vec<(u64, SessionSnapshot)> {
        self.shared.front.ended_sessions()
    }

    /// Returns the refused logins since the start.
    pub fn refused(&self) -> BTreeMap<String, Refused> {
        self.shared.front.refusals.all()
    }

    /// Returns current failures in the background, and why.
    pub fn troubles(&self) -> BTreeMap<&'static str, String> {
        self.shared.troubles.0.lock().clone()
    }

    /// Hands connections over to the other controller when this one ends, if that one takes them.
    pub fn hand_over(&self) {
        if self.shared.link.as_ref().is_some_and(|link| link.has_successor()) {
            self.shared.front.hand_over_at_the_end();
        }
    }

    /// Ends connections that arrived at the other controller and were handed over.
    pub fn end_guests(&self) {
        if let Some(link) = &self.shared.link {
            link.end_guests();
        }
    }

    /// Returns what is known of the other controller of the pool, if there is one and it is
    /// present.
    pub fn other_controller(&self) -> Option<Other> {
        self.shared.link.as_ref()?.other()
    }

    /// Returns the name of the other controller, if there is one and it is not present.
    pub fn missing_controller(&self) -> Option<&'static str> {
        let link = self.shared.link.as_ref()?;
        link.other().is_none().then(|| link.other_name())
    }

    /// Returns whether the store accepts no more writes.
    pub fn has_failed(&self) -> bool {
        self.shared.front.store.has_failed()
    }
}
