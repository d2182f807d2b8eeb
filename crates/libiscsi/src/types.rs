//! The types that sessions take and return.

/// Errors of a session. A SCSI status other than GOOD is not an error here: it is in the
/// [`Completion`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name contains a NUL byte, or a length is out of range.
    #[error("{0}")]
    Argument(&'static str),
    /// An error that libiscsi reported.
    #[error("{action}: {message}")]
    Library {
        /// The action that failed.
        action: &'static str,
        /// libiscsi's own message.
        message: String,
    },
    /// The connection is lost; commands in flight were cancelled. Connect again.
    #[error("the connection to the target is lost")]
    Lost,
    /// A command that must succeed failed.
    #[error("{command} ended with {status}")]
    Command {
        /// Which command.
        command: &'static str,
        /// Its status.
        status: Status,
    },
    /// The target's response is too short or invalid.
    #[error("the answer to {0} makes no sense")]
    Answer(&'static str),
}

/// Whether the initiator negotiates a header digest (RFC 7143, 13.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Digest {
    /// None.
    #[default]
    None,
    /// CRC32C.
    Crc32c,
}

/// The address of the portal, and the names to use.
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
    /// The timeout of commands in seconds; 0 for none.
    pub timeout_s: u32,
    /// The initiator's part of the session id (ISID, RFC 7143, 11.12.5): its 24 random bits. A host
    /// that logs in again with the same name is the same I_T nexus. `None`: other bits each time.
    pub isid: Option<u32>,
}

/// The state of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// Connecting, logging in, or waiting until the unit is ready.
    Pending,
    /// Commands can be sent.
    Done,
    /// The login failed.
    Failed,
}

/// Sense data of a CHECK CONDITION (SPC-4, 4.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sense {
    /// The sense key.
    pub key: u8,
    /// ASC in the high byte, ASCQ in the low.
    pub asc_ascq: u16,
    /// The data segment as received: two bytes of length, then the sense data (RFC 7143, 11.4.7).
    pub raw: Vec<u8>,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    /// GOOD.
    Good,
    /// CHECK CONDITION, with its sense.
    CheckCondition(Sense),
    /// Another SCSI status (SAM-5, 5.3.1).
    Other(u8),
    /// No response: the connection was lost, or the session dropped. The command may have been
    /// executed.
    Cancelled,
    /// No response in time. The command may have been executed, or may still be.
    Timeout,
}

/// A command's data: the command owns the buffer while it is in flight.
#[derive(Debug)]
pub enum Data {
    /// None.
    None,
    /// A buffer to fill with Data-In: its whole length is requested.
    In(Vec<u8>),
    /// Bytes to send.
    Out(Vec<u8>),
}

/// The completion of a command.
#[derive(Debug)]
pub struct Completion {
    /// The token given to [`Session::submit`].
    pub token: u64,
    /// Its status.
    pub status: Status,
    /// The buffer, returned to its owner.
    pub buffer: Vec<u8>,
    /// Bytes of Data-In or Data-Out that the target did not transfer (the underflow residual).
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
