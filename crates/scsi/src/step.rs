//! Input and output: [`Command`], [`Step`], [`Response`]; and the state of a command between two
//! steps: [`Continue`].

pub use block::task::AnswerAfter;
use block::{DataIn, DataOut, VolumeAttributes, VolumeError, VolumeId, VolumeReply, VolumeRequest};
use target::{Access, Subject, Target};

use crate::cdb::Cdb;
use crate::nexus::Nexus;
use crate::sense::{Sense, SenseKey};

/// A command as received by the transport, with all of its data.
#[derive(Debug)]
pub struct Command {
    /// The logical unit number, encoded as in SAM-5, 4.7.
    pub lun: [u8; 8],
    /// The command descriptor block.
    pub cdb: Cdb,
    /// All data that the host sent, at the phase given by [`crate::data_out_phase`].
    pub data_out: DataOut,
    /// The number of bytes that the host expects.
    pub expected_in_bytes: u64,
}

/// Status codes (SAM-5, 5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// Success.
    Good = 0x00,
    /// An error; the sense data describes it.
    CheckCondition = 0x02,
    /// PRE-FETCH: all of it fits into the cache.
    ConditionMet = 0x04,
    /// Retry later.
    Busy = 0x08,
    /// A reservation of another initiator conflicts.
    ReservationConflict = 0x18,
    /// Too many commands.
    TaskSetFull = 0x28,
    /// Aborted by another initiator.
    TaskAborted = 0x40,
}

/// The result of a command.
#[derive(Debug)]
pub struct Response {
    /// The status.
    pub status: Status,
    /// The sense data of CHECK CONDITION.
    pub sense: Option<Sense>,
    /// Whether the sense data is sent in descriptor format (D_SENSE), otherwise in fixed format.
    pub descriptor_sense: bool,
    /// The data for the host; the transport truncates it to the expected length.
    pub data_in: DataIn,
    /// The number of bytes of data-out that the CDB requires, if any, from which residuals are
    /// computed. `None` means the number that the host sent.
    pub transfer_bytes_wanted: Option<u64>,
    /// What must end before the response may be sent.
    pub after: AnswerAfter,
}

impl Response {
    /// Returns GOOD without data.
    pub fn good() -> Self {
        Self::with_status(Status::Good)
    }

    /// Returns a status without data.
    pub fn with_status(status: Status) -> Self {
        Self {
            status,
            sense: None,
            descriptor_sense: false,
            data_in: DataIn::empty(),
            transfer_bytes_wanted: None,
            after: AnswerAfter::Nothing,
        }
    }

    /// Returns GOOD with data.
    pub fn data(data_in: DataIn) -> Self {
        Self { data_in, ..Self::good() }
    }

    /// Returns GOOD with parameter data, truncated to the allocation length of the CDB.
    pub(crate) fn parameters(bytes: &[u8], allocation_length: usize) -> Self {
        Self::data(DataIn::from_bytes(&bytes[..bytes.len().min(allocation_length)]))
    }

    /// Returns CHECK CONDITION.
    pub fn check(sense: Sense) -> Self {
        Self { sense: Some(sense), ..Self::with_status(Status::CheckCondition) }
    }

    /// Sets how much data-out the command requires ([`Self::transfer_bytes_wanted`]).
    pub(crate) fn wanting(self, transfer_bytes: Option<u64>) -> Self {
        Self { transfer_bytes_wanted: transfer_bytes, ..self }
    }

    /// Returns the sense data as sent; empty if there is none.
    pub fn sense_bytes(&self) -> Vec<u8> {
        match &self.sense {
            Some(sense) if self.descriptor_sense => sense.descriptor_bytes(),
            Some(sense) => sense.bytes().to_vec(),
            None => Vec::new(),
        }
    }
}

/// The next step of a command.
#[derive(Debug)]
pub enum Step {
    /// The command has ended.
    Done(Response),
    /// Execute the request, then pass its result to [`crate::DeviceServer::resume`].
    Request {
        /// The request.
        request: VolumeRequest,
        /// The rest of the command.
        pending: Pending,
    },
    /// Make the state of this subject durable ([`crate::DeviceServer::unsaved`],
    /// [`crate::DeviceServer::unsaved_tokens`]), then call [`crate::DeviceServer::resume_saved`].
    Persist {
        /// The subject.
        subject: Subject,
        /// The rest of the command.
        pending: Pending,
    },
}

impl Step {
    /// Sets how much data-out the command requires; a command that continues keeps it in
    /// [`Pending::wanted`].
    pub(crate) fn wanting(self, transfer_bytes: Option<u64>) -> Self {
        match self {
            Self::Done(response) => Self::Done(response.wanting(transfer_bytes)),
            step => step,
        }
    }
}

/// The result of a command handler: a step, or the sense data of a CHECK CONDITION.
pub(crate) type Outcome = Result<Step, Sense>;

/// The rest of a command that waits for a volume.
#[derive(Debug)]
pub struct Pending {
    /// See [`Response::transfer_bytes_wanted`].
    pub(crate) wanted: Option<u64>,
    /// The unit that received the command, for the LBAs in sense data.
    pub(crate) volume: VolumeId,
    /// Sectors per logical block of that unit.
    pub(crate) block_sectors: u64,
    /// The state of the command.
    pub(crate) rest: Box<dyn Continue>,
}

impl Pending {
    /// Returns whether this is a long read, whose pieces are all kept until the last was read: up
    /// to [`block::request::limits::COMMAND_BYTES_MAX`]. A transport that bounds its memory runs
    /// only a few of them at once.
    pub fn gathers(&self) -> bool {
        self.rest.gathers()
    }

    /// Returns whether this is a cancelled copy: if it takes several steps, the next one must not
    /// begin ([`crate::DeviceServer::end_early`]). `nexus` is its own.
    pub fn is_called_off(&self, nexus: &Nexus) -> bool {
        self.rest.is_called_off(nexus)
    }
}

/// The state of a command that waits for a reply of the volume, or for its changes to become
/// durable. Each command that takes several steps has its own implementation, next to the code that
/// starts it.
pub(crate) trait Continue: std::fmt::Debug + Send {
    /// Continues with the volume's reply.
    fn resume(self: Box<Self>, at: &Resumed<'_>, result: Result<VolumeReply, Sense>) -> Outcome {
        let _ = (at, result);
        Err(Sense::INTERNAL_FAILURE) // it makes no requests
    }

    /// Continues after [`Step::Persist`].
    fn saved(self: Box<Self>, target: &Target) -> Response {
        let _ = target;
        Response::check(Sense::INTERNAL_FAILURE) // it waits for a volume
    }

    /// Ends the cancelled command between two steps.
    fn end_early(self: Box<Self>, nexus: &Nexus) -> Response {
        let _ = nexus;
        Response::with_status(Status::TaskAborted)
    }

    /// See [`Pending::gathers`].
    fn gathers(&self) -> bool {
        false
    }

    /// See [`Pending::is_called_off`].
    fn is_called_off(&self, nexus: &Nexus) -> bool {
        let _ = nexus;
        false
    }

    /// Returns how reservations restrict its first request, if that has waited.
    fn access(&self) -> Access {
        Access::Read
    }
}

/// The context in which a command continues.
pub(crate) struct Resumed<'a> {
    pub target: &'a Target,
    pub nexus: &'a Nexus,
    /// The unit that received the command.
    pub volume: VolumeId,
    wanted: Option<u64>,
    block_sectors: u64,
}

impl<'a> Resumed<'a> {
    /// Creates the context for a command that continues, and the state of that command.
    pub(crate) fn new(
        target: &'a Target,
        nexus: &'a Nexus,
        pending: Pending,
    ) -> (Self, Box<dyn Continue>) {
        let Pending { wanted, volume, block_sectors, rest } = pending;
        (Self { target, nexus, volume, wanted, block_sectors }, rest)
    }

    /// Creates the context for a command that has needed no volume so far.
    pub(crate) fn at_once(
        target: &'a Target,
        nexus: &'a Nexus,
        volume: &VolumeAttributes,
        wanted: Option<u64>,
    ) -> Self {
        let block_sectors = volume.logical_block.sectors();
        Self { target, nexus, volume: volume.id, wanted, block_sectors }
    }

    /// Translates a volume's error to sense data.
    pub(crate) fn sense(&self, error: &VolumeError) -> Sense {
        error_sense(error, self.block_sectors)
    }

    fn pending(&self, rest: Box<dyn Continue>) -> Pending {
        let Self { wanted, volume, block_sectors, .. } = *self;
        Pending { wanted, volume, block_sectors, rest }
    }

    /// Continues with a request.
    pub(crate) fn request(&self, rest: Box<dyn Continue>, request: VolumeRequest) -> Step {
        Step::Request { request, pending: self.pending(rest) }
    }

    /// Continues with the next request if there is one, otherwise returns GOOD.
    pub(crate) fn next_or_good(
        &self,
        rest: Box<dyn Continue>,
        next: Option<VolumeRequest>,
    ) -> Step {
        match next {
            Some(request) => self.request(rest, request),
            None => Step::Done(Response::good()),
        }
    }

    /// Continues when a subject is durable.
    pub(crate) fn persist(&self, rest: Box<dyn Continue>, subject: Subject) -> Step {
        Step::Persist { subject, pending: self.pending(rest) }
    }
}

/// Completes with GOOD, and the data if there is any.
#[derive(Debug)]
pub(crate) struct Answer;

impl Continue for Answer {
    fn resume(self: Box<Self>, _: &Resumed<'_>, result: Result<VolumeReply, Sense>) -> Outcome {
        match result? {
            VolumeReply::Done => Ok(Step::Done(Response::good())),
            VolumeReply::Data(data) => Ok(Step::Done(Response::data(data))),
            _ => Err(Sense::INTERNAL_FAILURE),
        }
    }
}

/// Shorthand for a command that becomes one request.
pub(crate) fn request(
    volume: &VolumeAttributes,
    wanted: Option<u64>,
    rest: impl Continue + 'static,
    request: VolumeRequest,
) -> Step {
    let (block_sectors, rest) = (volume.logical_block.sectors(), Box::new(rest));
    Step::Request { request, pending: Pending { wanted, volume: volume.id, block_sectors, rest } }
}

/// Translates a volume's error to sense data.
fn error_sense(error: &VolumeError, block_sectors: u64) -> Sense {
    match error {
        VolumeError::NoSuchVolume(_) => Sense::NO_SUCH_UNIT,
        VolumeError::OutOfRange => Sense::OUT_OF_RANGE,
        VolumeError::Miscompare { offset_bytes } => {
            Sense::new(SenseKey::Miscompare, 0x1d, 0).with_information(*offset_bytes as u64)
        }
        // SPACE ALLOCATION FAILED WRITE PROTECT: hosts stop the VM, and resume it when there is
        // space.
        VolumeError::NoSpace => Sense::new(SenseKey::DataProtect, 0x27, 0x07),
        VolumeError::Medium { sector } => Sense::new(SenseKey::MediumError, 0x11, 0)
            .with_information(sector.0 / block_sectors.max(1)),
        VolumeError::WriteFailed => Sense::new(SenseKey::MediumError, 0x0c, 0),
        // WRITE PROTECTED. No host ever sees a snapshot; this would be the store's error.
        VolumeError::Snapshot(_) => Sense::new(SenseKey::DataProtect, 0x27, 0),
        VolumeError::TooLong => Sense::new(SenseKey::IllegalRequest, 0x24, 0),
    }
}
