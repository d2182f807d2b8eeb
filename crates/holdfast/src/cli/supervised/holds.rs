//! Which of two controllers is kept stopped, because an administrator has requested that from the
//! other one. It stays stopped as long as the supervisor runs, whichever controller ends meanwhile.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::serve::controllers::Controller;

/// The stopped controller, shared by the supervisors of both.
#[derive(Clone, Debug, Default)]
pub(super) struct Holds(Arc<Mutex<Option<Controller>>>);

impl Holds {
    /// Returns the controller that is kept stopped.
    pub(super) fn held(&self) -> Option<Controller> {
        *self.0.lock()
    }

    /// Returns whether this controller is kept stopped.
    pub(super) fn is_held(&self, own: Option<Controller>) -> bool {
        own.is_some() && self.held() == own
    }

    /// Handles a request of a controller to keep the other one stopped, or to start it. No
    /// controller can stop itself: one of the two always runs.
    pub(super) fn ask(&self, by: Option<Controller>, name: &str, down: bool) {
        let other = by.map(Controller::other);
        if other.is_none() || Controller::from_name(name) != other {
            return;
        }
        let mut held = self.0.lock();
        match down {
            // Requests of a controller that is itself kept stopped are ignored.
            true if *held != by => *held = other,
            false if *held == other => *held = None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_two_controllers_is_never_kept_down() {
        let holds = Holds::default();
        let (ct0, ct1) = (Some(Controller::Ct0), Some(Controller::Ct1));
        holds.ask(None, "ct1", true);
        holds.ask(ct0, "ct0", true);
        holds.ask(ct0, "ct7", true);
        assert_eq!(holds.held(), None);
        assert!(!holds.is_held(None));
        holds.ask(ct0, "ct1", true);
        assert!(holds.is_held(ct1) && !holds.is_held(ct0));
        holds.ask(ct1, "ct0", true);
        holds.ask(ct1, "ct0", false);
        assert_eq!(holds.held(), ct1);
        holds.ask(ct0, "ct1", false);
        assert_eq!(holds.held(), None);
    }
}
