//! What a front end asks of a command set: what a command is, what it asks of volumes, and how it
//! is answered. SCSI is one ([`scsi`]); the NVM command set of NVMe is another.
//!
//! A command is a machine of [`Step`]s: it asks the store for one thing after the other, goes on
//! with each answer, and ends with a [`Response`]. It neither waits nor does I/O. What it is
//! between two steps ([`CommandSet::Pending`]) is kept by the front end with its task.
//!
//! A front end is built for one command set, [`Commands`]; one that serves two is built for the
//! sum of both, without a jump through a table at each step.

use std::sync::Arc;

pub use block::task::AnswerAfter;
use block::{DataIn, DataOut, LunMap, VolumeError, VolumeId, VolumeReply, VolumeRequest};
use target::{Subject, Untold};

use crate::counters::Class;
use crate::transport::{CommandBytes, Handed, NexusInfo};

pub mod scsi;

/// The command set of this array's front ends.
pub type Commands = ::scsi::DeviceServer;

/// A host and a port, with what the command set keeps of them.
pub type Nexus = <Commands as CommandSet>::Nexus;

/// A command between two steps.
pub type Pending = <Commands as CommandSet>::Pending;

/// A command as its host has sent it.
#[derive(Debug)]
pub struct Asked {
    /// The logical unit, as it stood in the PDU (SAM-5, 4.6).
    pub lun: [u8; 8],
    /// What is to be done: a CDB.
    pub bytes: CommandBytes,
    /// The data that came with it.
    pub data_out: DataOut,
    /// How many bytes the host announced to send.
    pub expected_out_bytes: u32,
    /// How many bytes the host expects.
    pub expected_in_bytes: u32,
}

/// What is to be known of a command before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// What it is counted as.
    pub class: Class,
    /// Whether it locks the whole volume for its host (RESERVE of SPC-2).
    pub locks_volume: bool,
    /// Whether it may come with a ROD token, which ends with the volume that it was made of.
    pub may_have_token: bool,
    /// The bytes that it reads without sending them; `None` if it does not read so.
    pub verified_bytes: Option<u64>,
    /// How many bytes of data it takes from its host.
    pub data_out_bytes: u64,
}

/// What to do next for a command.
#[derive(Debug)]
pub enum Step<P = Pending> {
    /// It is over.
    Done(Response),
    /// Run the request, then go on by [`CommandSet::resume`].
    Request {
        /// What the volume shall do.
        request: VolumeRequest,
        /// The rest of the command.
        pending: P,
    },
    /// Make durable what is kept of this, then go on by [`CommandSet::resume_saved`].
    Persist {
        /// Of what.
        subject: Subject,
        /// The rest of the command.
        pending: P,
    },
}

/// The end of a command.
#[derive(Debug)]
pub struct Response {
    /// The status, in the words of the command set.
    pub status: u8,
    /// Whether that means that all was done.
    pub is_ok: bool,
    /// Whether it was aborted: then nobody is answered.
    pub is_aborted: bool,
    /// What is said besides (sense data); empty if nothing.
    pub sense: Vec<u8>,
    /// The data for the host; the transport cuts it to what the host has room for.
    pub data_in: DataIn,
    /// How many bytes of data-out the command calls for, if for any: what residuals are counted
    /// from.
    pub transfer_bytes_wanted: Option<u64>,
    /// What has to end before it may be sent.
    pub after: AnswerAfter,
}

/// Why a command is not begun, or not gone on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It is to be sent again.
    Busy,
    /// It was aborted.
    Aborted,
    /// There is no memory for its data.
    NoMemory,
    /// A reservation bars it.
    Barred,
    /// Its task attribute (ACA) is not supported.
    Unsupported,
}

/// A command set.
pub trait CommandSet: Send + Sync {
    /// A host and a port, with what is kept of them.
    type Nexus: Send + Sync;
    /// A command between two steps.
    type Pending;

    /// The nexus of a session that just began, and that sees these units.
    fn enter(&self, info: &NexusInfo, luns: &Arc<LunMap>) -> Arc<Self::Nexus>;

    /// The session of this connection goes on here, and is about to begin. False if what its host
    /// is to be told makes no sense.
    #[must_use]
    fn expect(&self, handed: &Handed, untold: &Untold) -> bool;

    /// What a command is, sent to a unit among those that its host sees.
    fn traits_of(luns: &LunMap, lun: [u8; 8], bytes: &CommandBytes) -> Traits;

    /// Starts a command.
    fn start(&self, nexus: &Self::Nexus, luns: &Arc<LunMap>, asked: Asked) -> Step<Self::Pending>;

    /// Goes on after a request.
    fn resume(
        &self,
        nexus: &Self::Nexus,
        pending: Self::Pending,
        result: Result<VolumeReply, VolumeError>,
    ) -> Step<Self::Pending>;

    /// Goes on after [`Step::Persist`].
    fn resume_saved(&self, pending: Self::Pending) -> Step<Self::Pending>;

    /// Ends a command whose rest nobody wants.
    fn end_early(&self, nexus: &Self::Nexus, pending: Self::Pending) -> Step<Self::Pending>;

    /// Whether nobody wants the rest of a command.
    fn is_called_off(nexus: &Self::Nexus, pending: &Self::Pending) -> bool;

    /// Whether its answer is gathered from several requests.
    fn gathers(pending: &Self::Pending) -> bool;

    /// Whether reservations bar the first request of a command that has waited since it was
    /// started.
    fn is_barred_now(&self, nexus: &Self::Nexus, pending: &Self::Pending) -> bool;

    /// The answer to a command that is refused.
    fn refuse(why: Refusal) -> Response;

    /// The session of a nexus has ended. Returns the volumes of which there is something to save.
    #[must_use]
    fn leave(&self, nexus: &Self::Nexus) -> Vec<VolumeId>;

    /// A logical unit is reset, after its commands were aborted. Returns the same.
    #[must_use]
    fn reset_unit(&self, luns: &Arc<LunMap>, lun: [u8; 8]) -> Vec<VolumeId>;

    /// All units that a host sees are reset. Returns the same.
    #[must_use]
    fn reset_all(&self, luns: &Arc<LunMap>) -> Vec<VolumeId>;
}
