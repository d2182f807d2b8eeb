//! The command set interface of a front end: how it interprets commands, which requests to volumes
//! they make, and how their responses are built. SCSI is one ([`scsi`]); the NVM command set of
//! NVMe is another.
//!
//! A command is a state machine of [`Step`]s: it makes one request to the store after the other,
//! continues with each reply, and ends with a [`Response`]. It neither blocks nor does I/O. Between
//! two steps the front end keeps its state ([`CommandSet::Pending`]) with its task.
//!
//! A front end is compiled for one command set, [`Commands`]. One that serves two is compiled for
//! an enum of both, without dynamic dispatch at each step.

use std::sync::Arc;

pub use block::task::AnswerAfter;
use block::{DataIn, DataOut, LunMap, VolumeError, VolumeId, VolumeReply, VolumeRequest};
use target::{Subject, Untold};

use crate::counters::Class;
use crate::transport::{CommandBytes, Handed, NexusInfo};

pub mod scsi;

/// The command set of this array's front ends.
pub type Commands = ::scsi::DeviceServer;

/// The command set's state of an I_T nexus.
pub type Nexus = <Commands as CommandSet>::Nexus;

/// The state of a command between two steps.
pub type Pending = <Commands as CommandSet>::Pending;

/// A command as received from its host.
#[derive(Debug)]
pub struct Asked {
    /// The logical unit, as encoded in the PDU (SAM-5, 4.6).
    pub lun: [u8; 8],
    /// The CDB.
    pub bytes: CommandBytes,
    /// Its data.
    pub data_out: DataOut,
    /// The number of bytes that the host announced to send.
    pub expected_out_bytes: u32,
    /// The number of bytes that the host expects.
    pub expected_in_bytes: u32,
}

/// What the front end needs to know about a command before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The class under which it is counted.
    pub class: Class,
    /// Whether it reserves the whole volume for its host (RESERVE of SPC-2).
    pub locks_volume: bool,
    /// Whether it may contain a ROD token, which ends together with the volume it was created from.
    pub may_have_token: bool,
    /// The number of bytes that it reads without sending them; `None` if it is not such a command.
    pub verified_bytes: Option<u64>,
    /// The number of bytes of data-out that it takes.
    pub data_out_bytes: u64,
}

/// The next step of a command.
#[derive(Debug)]
pub enum Step<P = Pending> {
    /// The command has ended.
    Done(Response),
    /// Execute the request, then call [`CommandSet::resume`].
    Request {
        /// The request.
        request: VolumeRequest,
        /// The rest of the command.
        pending: P,
    },
    /// Make the state of this subject durable, then call [`CommandSet::resume_saved`].
    Persist {
        /// The subject.
        subject: Subject,
        /// The rest of the command.
        pending: P,
    },
}

/// The result of a command.
#[derive(Debug)]
pub struct Response {
    /// The status as defined by the command set.
    pub status: u8,
    /// Whether the status means complete success.
    pub is_ok: bool,
    /// Whether the command was aborted; then no response is sent.
    pub is_aborted: bool,
    /// Sense data; empty if there is none.
    pub sense: Vec<u8>,
    /// The data for the host; the transport truncates it to the expected length.
    pub data_in: DataIn,
    /// The number of bytes of data-out that the command requires, if any, from which residuals are
    /// computed.
    pub transfer_bytes_wanted: Option<u64>,
    /// What must end before the response may be sent.
    pub after: AnswerAfter,
}

/// The reason why a command is not started or not continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The host must retry it.
    Busy,
    /// It was aborted.
    Aborted,
    /// There is no memory for its data.
    NoMemory,
    /// A reservation conflict.
    Barred,
    /// Its task attribute (ACA) is not supported.
    Unsupported,
}

/// A command set.
pub trait CommandSet: Send + Sync {
    /// The state of an I_T nexus.
    type Nexus: Send + Sync;
    /// The state of a command between two steps.
    type Pending;

    /// Returns the nexus of a session that has just begun and that sees these units.
    fn enter(&self, info: &NexusInfo, luns: &Arc<LunMap>) -> Arc<Self::Nexus>;

    /// Prepares for the session of this connection, which was handed over from another process and
    /// is about to begin here. Returns false if the pending notifications of its host are invalid.
    #[must_use]
    fn expect(&self, handed: &Handed, untold: &Untold) -> bool;

    /// Returns the traits of a command to a unit in the LUN map of its host.
    fn traits_of(luns: &LunMap, lun: [u8; 8], bytes: &CommandBytes) -> Traits;

    /// Starts a command.
    fn start(&self, nexus: &Self::Nexus, luns: &Arc<LunMap>, asked: Asked) -> Step<Self::Pending>;

    /// Continues a command with the reply to its request.
    fn resume(
        &self,
        nexus: &Self::Nexus,
        pending: Self::Pending,
        result: Result<VolumeReply, VolumeError>,
    ) -> Step<Self::Pending>;

    /// Continues a command after [`Step::Persist`].
    fn resume_saved(&self, pending: Self::Pending) -> Step<Self::Pending>;

    /// Ends a cancelled command.
    fn end_early(&self, nexus: &Self::Nexus, pending: Self::Pending) -> Step<Self::Pending>;

    /// Returns whether the rest of a command was cancelled.
    fn is_called_off(nexus: &Self::Nexus, pending: &Self::Pending) -> bool;

    /// Returns whether its response is gathered from several requests.
    fn gathers(pending: &Self::Pending) -> bool;

    /// Returns whether reservations conflict with the first request of a command that has waited
    /// since it was started.
    fn is_barred_now(&self, nexus: &Self::Nexus, pending: &Self::Pending) -> bool;

    /// Returns the response to a refused command.
    fn refuse(why: Refusal) -> Response;

    /// Ends the session of a nexus. Returns the volumes whose state must be saved.
    #[must_use]
    fn leave(&self, nexus: &Self::Nexus) -> Vec<VolumeId>;

    /// Resets a logical unit after its commands were aborted. Returns the volumes whose state must
    /// be saved.
    #[must_use]
    fn reset_unit(&self, luns: &Arc<LunMap>, lun: [u8; 8]) -> Vec<VolumeId>;

    /// Resets all units that a host sees. Returns the volumes whose state must be saved.
    #[must_use]
    fn reset_all(&self, luns: &Arc<LunMap>) -> Vec<VolumeId>;
}
