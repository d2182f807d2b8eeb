//! Commands that wait until their changes are durable ([`target::saving`]).
//!
//! Such a command becomes a [`crate::Step::Persist`], and the transport
//!
//! 1. takes the state to be written from [`crate::DeviceServer::unsaved`], as of *that time*,
//! 2. makes it durable,
//! 3. reports this with [`crate::DeviceServer::saved`],
//! 4. continues the commands that waited: [`crate::DeviceServer::resume_saved`].

use block::VolumeId;
use target::{Change, SaveError, Subject, Target};

use crate::sense::{Sense, SenseKey};
use crate::step::{AnswerAfter, Continue, Pending, Response, Step};

/// INSUFFICIENT REGISTRATION RESOURCES.
pub(crate) const NO_ROOM: Sense = Sense::new(SenseKey::IllegalRequest, 0x55, 0x04);
/// INSUFFICIENT RESOURCES.
const NO_RESOURCES: Sense = Sense::new(SenseKey::IllegalRequest, 0x55, 0x03);

/// A command that waits until a change of its volume's state is durable.
#[derive(Debug)]
struct Saving {
    volume: VolumeId,
    change: u64,
    after: AnswerAfter,
    /// Whether it changes registrations.
    registers: bool,
}

/// Responds to a command when its changes are durable. `registers`: it changes registrations.
pub(crate) fn answer(
    volume: VolumeId,
    change: Change,
    response: Response,
    registers: bool,
) -> Step {
    let Change::Unsaved(change) = change else { return Step::Done(response) };
    let (wanted, after) = (response.transfer_bytes_wanted, response.after);
    let rest = Box::new(Saving { volume, change, after, registers });
    let pending = Pending { wanted, volume, block_sectors: 1, rest };
    Step::Persist { subject: Subject::Volume(volume), pending }
}

impl Continue for Saving {
    fn saved(self: Box<Self>, target: &Target) -> Response {
        match target.outcome(self.volume, self.change) {
            Ok(()) => Response { after: self.after, ..Response::good() },
            Err(SaveError::NoRoom) if self.registers => Response::check(NO_ROOM),
            Err(SaveError::NoRoom) => Response::check(NO_RESOURCES),
            Err(SaveError::Failed) => Response::check(Sense::INTERNAL_FAILURE),
        }
    }
}
