//! What goes in and comes out: [`Command`], [`Step`], [`Response`]; and what is left of a command
//! between two steps: [`Continue`].

pub use block::task::AnswerAfter;
use block::{DataIn, DataOut, VolumeAttributes, VolumeError, VolumeId, VolumeReply, VolumeRequest};
use target::{Access, Subject, Target};

use crate::cdb::Cdb;
use crate::nexus::Nexus;
use crate::sense::{Sense, SenseKey};

/// A command as the transport received it, with all of its data.
#[derive(Debug)]
pub struct Command {
    /// The logical unit number, as SAM-5 4.7 lays it out.
    pub lun: [u8; 8],
    /// The command descriptor block.
    pub cdb: Cdb,
    /// All data that the host sent, at the phase of [`crate::data_out_phase`].
    pub data_out: DataOut,
    /// How many bytes the host has room for.
    pub expected_in_bytes: u64,
}

/// Status codes (SAM-5, 5.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Status {
    /// It is done.
    Good = 0x00,
    /// The sense data says why not.
    CheckCondition = 0x02,
    /// PRE-FETCH: all of it would fit the cache.
    ConditionMet = 0x04,
    /// Try again later.
    Busy = 0x08,
    /// Another initiator holds a reservation.
    ReservationConflict = 0x18,
    /// Too many commands.
    TaskSetFull = 0x28,
    /// It was aborted by another initiator.
    TaskAborted = 0x40,
}

/// The end of a command.
#[derive(Debug)]
pub struct Response {
    /// How it ended.
    pub status: Status,
    /// Why, where the status is CHECK CONDITION.
    pub sense: Option<Sense>,
    /// Whether the sense data goes out in descriptor format (D_SENSE), else in the fixed one.
    pub descriptor_sense: bool,
    /// The data for the host; the transport cuts it to what the host has room for.
    pub data_in: DataIn,
    /// How many bytes of data-out the CDB calls for, where it calls for any: what residuals are
    /// counted from. `None` leaves it at what the host sent.
    pub transfer_bytes_wanted: Option<u64>,
    /// What has to end before it may be sent.
    pub after: AnswerAfter,
}

impl Response {
    /// GOOD without data.
    pub fn good() -> Self {
        Self::with_status(Status::Good)
    }

    /// A status without data.
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

    /// GOOD with data.
    pub fn data(data_in: DataIn) -> Self {
        Self { data_in, ..Self::good() }
    }

    /// GOOD with parameter data, cut to the allocation length of the CDB.
    pub(crate) fn parameters(bytes: &[u8], allocation_length: usize) -> Self {
        Self::data(DataIn::from_bytes(&bytes[..bytes.len().min(allocation_length)]))
    }

    /// CHECK CONDITION.
    pub fn check(sense: Sense) -> Self {
        Self { sense: Some(sense), ..Self::with_status(Status::CheckCondition) }
    }

    /// The same for a command that calls for so much data-out ([`Self::transfer_bytes_wanted`]).
    pub(crate) fn wanting(self, transfer_bytes: Option<u64>) -> Self {
        Self { transfer_bytes_wanted: transfer_bytes, ..self }
    }

    /// The sense data as it is sent; empty if there is none.
    pub fn sense_bytes(&self) -> Vec<u8> {
        match &self.sense {
            Some(sense) if self.descriptor_sense => sense.descriptor_bytes(),
            Some(sense) => sense.bytes().to_vec(),
            None => Vec::new(),
        }
    }
}

/// What to do next for a command.
#[derive(Debug)]
pub enum Step {
    /// It is over.
    Done(Response),
    /// Run the request, then give its result to [`crate::DeviceServer::resume`].
    Request {
        /// What the volume shall do.
        request: VolumeRequest,
        /// The rest of the command.
        pending: Pending,
    },
    /// Make durable what is kept of this ([`crate::DeviceServer::unsaved`],
    /// [`crate::DeviceServer::unsaved_tokens`]), then go on with
    /// [`crate::DeviceServer::resume_saved`].
    Persist {
        /// Of what.
        subject: Subject,
        /// The rest of the command.
        pending: Pending,
    },
}

impl Step {
    /// The same for a command that calls for so much data-out; what is not over says so later
    /// ([`Pending::wanted`]).
    pub(crate) fn wanting(self, transfer_bytes: Option<u64>) -> Self {
        match self {
            Self::Done(response) => Self::Done(response.wanting(transfer_bytes)),
            step => step,
        }
    }
}

/// What a command handler returns: a step, or the sense data of a CHECK CONDITION.
pub(crate) type Outcome = Result<Step, Sense>;

/// The rest of a command that waits for a volume.
#[derive(Debug)]
pub struct Pending {
    /// As [`Response::transfer_bytes_wanted`].
    pub(crate) wanted: Option<u64>,
    /// The unit that the command was sent to, for the LBAs in sense data.
    pub(crate) volume: VolumeId,
    /// Sectors in a logical block of it.
    pub(crate) block_sectors: u64,
    /// What is left to do.
    pub(crate) rest: Box<dyn Continue>,
}

impl Pending {
    /// Whether this is a long read, whose pieces are all kept until the last was read: up to
    /// [`block::request::limits::COMMAND_BYTES_MAX`]. A transport that bounds its memory runs only
    /// a few of them at once.
    pub fn gathers(&self) -> bool {
        self.rest.gathers()
    }

    /// Whether this is a copy the rest of which nobody wants any more: where it takes several
    /// steps, the next one is not begun ([`crate::DeviceServer::end_early`]). `nexus` is its own.
    pub fn is_called_off(&self, nexus: &Nexus) -> bool {
        self.rest.is_called_off(nexus)
    }
}

/// What is left of a command when the volume has answered, or when what it has changed is durable.
/// Each command that takes more than one step has its own, beside the code that begins it.
pub(crate) trait Continue: std::fmt::Debug + Send {
    /// Goes on when the volume has answered.
    fn resume(self: Box<Self>, at: &Resumed<'_>, result: Result<VolumeReply, Sense>) -> Outcome {
        let _ = (at, result);
        Err(Sense::INTERNAL_FAILURE) // it asks no volume
    }

    /// Goes on after [`Step::Persist`].
    fn saved(self: Box<Self>, target: &Target) -> Response {
        let _ = target;
        Response::check(Sense::INTERNAL_FAILURE) // it waits for a volume
    }

    /// Ends it between two steps, as nobody wants the rest.
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

    /// What reservations mind of its first request, if that has waited.
    fn access(&self) -> Access {
        Access::Read
    }
}

/// Where a command goes on.
pub(crate) struct Resumed<'a> {
    pub target: &'a Target,
    pub nexus: &'a Nexus,
    /// The unit that the command was sent to.
    pub volume: VolumeId,
    wanted: Option<u64>,
    block_sectors: u64,
}

impl<'a> Resumed<'a> {
    /// A command that is taken up again, and what is left of it.
    pub(crate) fn new(
        target: &'a Target,
        nexus: &'a Nexus,
        pending: Pending,
    ) -> (Self, Box<dyn Continue>) {
        let Pending { wanted, volume, block_sectors, rest } = pending;
        (Self { target, nexus, volume, wanted, block_sectors }, rest)
    }

    /// A command that needs no volume to get so far.
    pub(crate) fn at_once(
        target: &'a Target,
        nexus: &'a Nexus,
        volume: &VolumeAttributes,
        wanted: Option<u64>,
    ) -> Self {
        let block_sectors = volume.logical_block.sectors();
        Self { target, nexus, volume: volume.id, wanted, block_sectors }
    }

    /// What a volume's error is in SCSI.
    pub(crate) fn sense(&self, error: &VolumeError) -> Sense {
        error_sense(error, self.block_sectors)
    }

    fn pending(&self, rest: Box<dyn Continue>) -> Pending {
        let Self { wanted, volume, block_sectors, .. } = *self;
        Pending { wanted, volume, block_sectors, rest }
    }

    /// Goes on with a request.
    pub(crate) fn request(&self, rest: Box<dyn Continue>, request: VolumeRequest) -> Step {
        Step::Request { request, pending: self.pending(rest) }
    }

    /// Goes on with the next request if there is one, and else answers GOOD.
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

    /// Goes on when something is durable.
    pub(crate) fn persist(&self, rest: Box<dyn Continue>, subject: Subject) -> Step {
        Step::Persist { subject, pending: self.pending(rest) }
    }
}

/// Answer GOOD, with the data if there is some.
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

/// Keeps a step readable where a command becomes one request.
pub(crate) fn request(
    volume: &VolumeAttributes,
    wanted: Option<u64>,
    rest: impl Continue + 'static,
    request: VolumeRequest,
) -> Step {
    let (block_sectors, rest) = (volume.logical_block.sectors(), Box::new(rest));
    Step::Request { request, pending: Pending { wanted, volume: volume.id, block_sectors, rest } }
}

/// What a volume's error is in SCSI.
fn error_sense(error: &VolumeError, block_sectors: u64) -> Sense {
    match error {
        VolumeError::NoSuchVolume(_) => Sense::NO_SUCH_UNIT,
        VolumeError::OutOfRange => Sense::OUT_OF_RANGE,
        VolumeError::Miscompare { offset_bytes } => {
            Sense::new(SenseKey::Miscompare, 0x1d, 0).with_information(*offset_bytes as u64)
        }
        // SPACE ALLOCATION FAILED WRITE PROTECT: hosts stop the VM, and go on when there is room.
        VolumeError::NoSpace => Sense::new(SenseKey::DataProtect, 0x27, 0x07),
        VolumeError::Medium { sector } => Sense::new(SenseKey::MediumError, 0x11, 0)
            .with_information(sector.0 / block_sectors.max(1)),
        VolumeError::WriteFailed => Sense::new(SenseKey::MediumError, 0x0c, 0),
        // WRITE PROTECTED. No host ever sees a snapshot: this is what the store would say.
        VolumeError::Snapshot(_) => Sense::new(SenseKey::DataProtect, 0x27, 0),
        VolumeError::TooLong => Sense::new(SenseKey::IllegalRequest, 0x24, 0),
    }
}
