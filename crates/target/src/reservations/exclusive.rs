//! RESERVE and RELEASE (SPC-2, 7.21 to 7.24, 7.17), for hosts that lock so, with the exceptions
//! that a persistent reservation makes (SPC-4, 5.13.3; CRH is 1).

use super::{Effect, Refusal};
use crate::kept::Kept;
use crate::nexus::NexusId;

/// RESERVE.
pub(crate) fn take(kept: &mut Kept, nexus: &NexusId) -> Result<Effect, Refusal> {
    if kept.exclusive.as_ref().is_some_and(|holder| holder != nexus) {
        return Err(Refusal::Conflict);
    }
    // A nexus that a persistent reservation admits gets GOOD, and nothing is established.
    if !kept.admits(nexus) {
        // The command was let in before, and REGISTER may have come between.
        if !kept.registrants.is_empty() {
            return Err(Refusal::Conflict);
        }
        kept.exclusive = Some(nexus.clone());
    }
    Ok(Effect::default())
}

/// RELEASE: it does nothing if another nexus holds it, or none.
pub(crate) fn give_back(kept: &mut Kept, nexus: &NexusId) -> Effect {
    if kept.exclusive.as_ref() == Some(nexus) {
        kept.exclusive = None;
    }
    Effect::default()
}
