//! What can be seen of a front end that serves: who is logged in, and what goes wrong beside the
//! commands. For who looks: nothing here holds a command up.

use std::collections::BTreeMap;
use std::sync::Arc;

use front::sessions::{Refused, SessionSnapshot};
use parking_lot::Mutex;

use super::controllers::Other;
use super::shared::Shared;

/// What fails in the background now, by what it is, and why.
#[derive(Default)]
pub(super) struct Troubles(Mutex<BTreeMap<&'static str, String>>);

impl Troubles {
    /// Work that has failed, or not. Whether that was not so before.
    pub(super) fn set(&self, what: &'static str, why: Option<String>) -> bool {
        let mut all = self.0.lock();
        match why {
            Some(why) => all.insert(what, why).is_none(),
            None => all.remove(what).is_some(),
        }
    }
}

/// What can be seen of a front end that serves. Cheap to clone.
#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
}

impl Observer {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// All sessions that carry commands, in the order of initiators and portals.
    pub fn sessions(&self) -> Vec<SessionSnapshot> {
        self.shared.front.sessions()
    }

    /// The last sessions that have ended of each initiator and portal, and when, in milliseconds
    /// since 1970.
    pub fn ended_sessions(&self) -> Vec<(u64, SessionSnapshot)> {
        self.shared.front.ended_sessions()
    }

    /// Who was refused at login, since the start.
    pub fn refused(&self) -> BTreeMap<String, Refused> {
        self.shared.front.refusals.all()
    }

    /// What fails in the background now, and why.
    pub fn troubles(&self) -> BTreeMap<&'static str, String> {
        self.shared.troubles.0.lock().clone()
    }

    /// From now on connections go on at the other controller when this one ends, if that takes
    /// them.
    pub fn hand_over(&self) {
        if self.shared.link.as_ref().is_some_and(|link| link.has_successor()) {
            self.shared.front.hand_over_at_the_end();
        }
    }

    /// Connections that came in at the other controller, and were handed over, go on no longer.
    pub fn end_guests(&self) {
        if let Some(link) = &self.shared.link {
            link.end_guests();
        }
    }

    /// What is known of the other controller of the pool, if there is one and it is there.
    pub fn other_controller(&self) -> Option<Other> {
        self.shared.link.as_ref()?.other()
    }

    /// The name of the other controller, if there is one and it is not there.
    pub fn missing_controller(&self) -> Option<&'static str> {
        let link = self.shared.link.as_ref()?;
        link.other().is_none().then(|| link.other_name())
    }

    /// Whether the store takes no more writes.
    pub fn has_failed(&self) -> bool {
        self.shared.front.store.has_failed()
    }
}
