//! What goes in and comes out: [`Command`], [`Step`], [`Response`].

pub use block::task::AnswerAfter;
use block::{DataIn, DataOut, VolumeAttributes, VolumeId, VolumeRequest};

use target::Subject;

use crate::cdb::Cdb;
use crate::copy::{CopyRest, UnsavedToken};
use crate::long::{LongRead, LongWrite};
use crate::nexus::Nexus;
use crate::or_write::OrWrite;
use crate::provisioning::LbaStatus;
use crate::sense::Sense;
use crate::verify::{Verification, WriteVerify};

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
    pub(crate) rest: Rest,
}

impl Pending {
    /// Whether this is a long read, whose pieces are all kept until the last was read: up to
    /// [`block::request::limits::COMMAND_BYTES_MAX`]. A transport that bounds its memory runs only
    /// a few of them at once.
    pub fn gathers(&self) -> bool {
        matches!(self.rest, Rest::Read(_))
    }

    /// Whether this is a copy the rest of which nobody wants any more: where it takes several
    /// steps, the next one is not begun ([`crate::DeviceServer::end_early`]). `nexus` is its own.
    pub fn is_called_off(&self, nexus: &Nexus) -> bool {
        matches!(&self.rest, Rest::Copy(rest) if rest.is_called_off(nexus))
    }
}

/// What is left to do when the volume has answered.
#[derive(Debug)]
pub(crate) enum Rest {
    /// Answer GOOD, with the data if there is some.
    Answer,
    /// Keep what was read, and read on.
    Read(Box<LongRead>),
    /// Write on.
    Write(Box<LongWrite>),
    /// Read back what was written, and write on.
    WriteVerify(Box<WriteVerify>),
    /// Compare what was read, and read on.
    Verify(Box<Verification>),
    /// Write what was read with more bits set, and go on.
    OrWrite(Box<OrWrite>),
    /// Answer GOOD, and end the tokens of the volume: what it held is gone for good.
    Sanitize,
    /// Make GET LBA STATUS data of what was found, and look on.
    LbaStatus(Box<LbaStatus>),
    /// Make the logical block provisioning log page.
    SpaceLog { allocation_length: usize },
    /// Keep the result of a copy.
    Copy(Box<CopyRest>),
    /// Answer PERSISTENT RESERVE OUT when the change with this number is durable.
    Save { change: u64, after: AnswerAfter, registers: bool },
    /// Answer POPULATE TOKEN when its token is durable, or WRITE USING TOKEN when its end is.
    SaveToken(Box<UnsavedToken>),
    /// Answer SANITIZE when the end of the volume's tokens is durable.
    SaveRevoked { change: u64 },
}

/// Keeps a step readable where a command becomes one request.
pub(crate) fn request(
    volume: &VolumeAttributes,
    wanted: Option<u64>,
    rest: Rest,
    request: VolumeRequest,
) -> Step {
    let pending =
        Pending { wanted, volume: volume.id, block_sectors: volume.logical_block.sectors(), rest };
    Step::Request { request, pending }
}
