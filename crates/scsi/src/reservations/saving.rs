//! Commands that wait until what they have changed is durable ([`target::saving`]).
//!
//! Such a command becomes a [`crate::Step::Persist`], and the transport
//!
//! 1. takes what is to be written from [`DeviceServer::unsaved`], as it is *then*,
//! 2. makes it durable,
//! 3. says so with [`DeviceServer::saved`],
//! 4. goes on with the commands that waited: [`DeviceServer::resume_saved`].

use block::VolumeId;
use target::{Change, KeptState, Nonsense, SaveError, Start, Subject, Unsaved, UnsavedRods};

use crate::response::{Pending, Response, Rest, Step};
use crate::sense::{Sense, SenseKey};
use crate::server::DeviceServer;

/// INSUFFICIENT REGISTRATION RESOURCES.
pub(crate) const NO_ROOM: Sense = Sense::new(SenseKey::IllegalRequest, 0x55, 0x04);
/// INSUFFICIENT RESOURCES.
const NO_RESOURCES: Sense = Sense::new(SenseKey::IllegalRequest, 0x55, 0x03);

/// Answers a command when what it has changed is durable. `registers`: it is about registrations.
pub(crate) fn answer(
    volume: VolumeId,
    change: Change,
    response: Response,
    registers: bool,
) -> Step {
    let Change::Unsaved(change) = change else { return Step::Done(response) };
    let (wanted, after) = (response.transfer_bytes_wanted, response.after);
    let rest = Rest::Save { change, after, registers };
    let pending = Pending { wanted, volume, block_sectors: 1, rest };
    Step::Persist { subject: Subject::Volume(volume), pending }
}

impl DeviceServer {
    /// Puts in force what was kept, before any session.
    ///
    /// # Errors
    /// What makes no sense.
    pub fn restore(&self, start: Start, all: KeptState) -> Result<(), Nonsense> {
        self.target.restore(start, all)
    }

    /// What has to be made durable of a volume now; `None` if everything is.
    pub fn unsaved(&self, volume: VolumeId) -> Option<Unsaved> {
        self.target.unsaved(volume)
    }

    /// What [`DeviceServer::unsaved`] gave is durable, or could not be made so.
    pub fn saved(&self, what: Unsaved, result: Result<(), SaveError>) {
        self.target.saved(what, result);
    }

    /// Whether anything has to be made durable of ROD tokens.
    pub fn has_unsaved_tokens(&self) -> bool {
        self.target.rods().has_unsaved()
    }

    /// What has to be made durable of ROD tokens now; `None` if everything is.
    pub fn unsaved_tokens(&self) -> Option<UnsavedRods> {
        self.target.rods().unsaved()
    }

    /// What [`DeviceServer::unsaved_tokens`] gave is durable, or could not be made so.
    pub fn saved_tokens(&self, what: UnsavedRods, result: Result<(), SaveError>) {
        self.target.rods().saved(what, result);
    }

    /// Goes on with a command that waited for [`crate::Step::Persist`].
    pub fn resume_saved(&self, pending: Pending) -> Step {
        let Pending { wanted, volume, rest, .. } = pending;
        let (change, after, registers) = match rest {
            Rest::Save { change, after, registers } => (change, after, registers),
            Rest::SaveToken(copy) => {
                let response = copy.saved(self.target.rods()).wanting(wanted);
                return self.with_format(volume, Step::Done(response));
            }
            Rest::SaveRevoked { change } => {
                let response = match self.target.rods().outcome(change, None) {
                    Ok(()) => Response::good(),
                    Err(_) => Response::check(Sense::INTERNAL_FAILURE),
                };
                return self.with_format(volume, Step::Done(response.wanting(wanted)));
            }
            _ => return Step::Done(Response::check(Sense::INTERNAL_FAILURE)),
        };
        let response = match self.target.outcome(volume, change) {
            Ok(()) => Response { after, ..Response::good() },
            Err(SaveError::NoRoom) if registers => Response::check(NO_ROOM),
            Err(SaveError::NoRoom) => Response::check(NO_RESOURCES),
            Err(SaveError::Failed) => Response::check(Sense::INTERNAL_FAILURE),
        };
        self.with_format(volume, Step::Done(response.wanting(wanted)))
    }
}
