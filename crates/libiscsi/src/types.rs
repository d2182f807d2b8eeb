//! What goes into a session, and what comes out.

/// What may go wrong with a session. A SCSI status that is not GOOD is no error here: it comes in
/// the [`Completion`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name holds a NUL byte, or a length is out of range.
    #[error("{0}")]
    Argument(&'static str),
    /// libiscsi said so.
    #[error("{action}: {message}")]
    Library {
        /// What was being done.
        action: &'static str,
        /// libiscsi's own words.
        message: String,
    },
    /// The connection is gone; commands in flight were cancelled. Connect anew.
    #[error("the connection to the target is lost")]
    Lost,
    /// A command that must succeed did not.
    #[error("{command} ended with {status}")]
    Command {
        /// Which command.
        command: &'static str,
        /// How it ended.
        status: Status,
    },
    /// The target's answer is too short or makes no sense.
    #[error("the answer to {0} makes no sense")]
    Answer(&'static str),
}

/// Whether the initiator asks for a header digest (RFC 7143, 13.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Digest {
    /// None.
    #[default]
    None,
    /// CRC32C.
    Crc32c,
}

/// Where to connect, and as whom.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `address:port`.
    pub portal: String,
    /// The target's name.
    pub target: String,
    /// The logical unit's number, 0 to 16383.
    pub lun: u16,
    /// The initiator's name.
    pub initiator: String,
    /// CHAP: user and secret.
    pub chap: Option<(String, String)>,
    /// The header digest.
    pub digest: Digest,
    /// How long a command may take before it is given up, in seconds; 0 for ever.
    pub timeout_s: u32,
}

/// Sense data of a CHECK CONDITION (SPC-4, 4.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sense {
    /// The sense key.
    pub key: u8,
    /// ASC in the high byte, ASCQ in the low.
    pub asc_ascq: u16,
    /// The data segment as it came: two bytes of length, then the sense data (RFC 7143, 11.4.7).
    pub raw: Vec<u8>,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// GOOD.
    Good,
    /// CHECK CONDITION, with its sense.
    CheckCondition(Sense),
    /// Another SCSI status (SAM-5, 5.3.1).
    Other(u8),
    /// Not answered: the connection was lost, or the session dropped. It may have been done.
    Cancelled,
    /// Not answered in time. It may have been done, or be done yet.
    Timeout,
}

/// A command's data: the buffer belongs to the command while it is in flight.
#[derive(Debug)]
pub enum Data {
    /// None.
    None,
    /// A buffer to fill with Data-In: all of its length is asked for.
    In(Vec<u8>),
    /// Bytes to send.
    Out(Vec<u8>),
}

/// The end of a command.
#[derive(Debug)]
pub struct Completion {
    /// What [`Session::submit`] was given.
    pub token: u64,
    /// How it ended.
    pub status: Status,
    /// The buffer, given back.
    pub buffer: Vec<u8>,
    /// Bytes of Data-In or Data-Out that the target did not move (the underflow residual).
    pub residual: usize,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Status::Good => f.write_str("GOOD"),
            Status::CheckCondition(sense) => write!(
                f,
                "CHECK CONDITION, sense {:02X}h/{:02X}h/{:02X}h",
                sense.key,
                sense.asc_ascq >> 8,
                sense.asc_ascq & 0xFF
            ),
            Status::Other(status) => write!(f, "status {status:02X}h"),
            Status::Cancelled => f.write_str("no answer: the connection was lost"),
            Status::Timeout => f.write_str("no answer in time"),
        }
    }
}
