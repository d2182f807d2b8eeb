//! RESERVE and RELEASE (SPC-2, 7.21 to 7.24, 7.17), for hosts that use them, with the exceptions
//! that apply with a persistent reservation (SPC-4, 5.13.3; CRH is 1).

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
        // The command was admitted before, and REGISTER may have come in between.
        if !kept.registrants.is_empty() {
            return Err(Refusal::Conflict);
        }
        kept.exclusive = Some(nexus.clone());
    }
    Ok(Effect::default())
}

/// RELEASE: does nothing if another nexus, or none, holds it.
pub(crate) fn give_back(kept: &mut Kept, nexus: &NexusId) -> Effect {
    if kept.exclusive.as_ref() == Some(nexus) {
        kept.exclusive = None;
    }
    Effect::default()
}
