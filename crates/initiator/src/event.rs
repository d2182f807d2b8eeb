//! Events of an initiator.

/// The Initiator Task Tag of a request. A session never reuses one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Itt(pub u32);

/// The events, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The login is complete; full-feature phase begins.
    LoggedIn {
        /// The target's part of the session id.
        tsih: u16,
    },
    /// The login was refused or redirected (RFC 7143, 11.13.5). The connection has ended.
    LoginFailed {
        /// Status class.
        class: u8,
        /// Status detail.
        detail: u8,
    },
    /// A command has its response.
    Answered(Answer),
    /// A task management request has its response.
    TaskManagementAnswered {
        /// The request.
        itt: Itt,
        /// The response (RFC 7143, 11.6.1): 0 complete, 1 the task does not exist, ….
        response: u8,
        /// The commands of this connection that it aborted: they will never get a response.
        ended: Vec<Itt>,
    },
    /// A text request has its complete response.
    Text {
        /// The request.
        itt: Itt,
        /// The pairs.
        pairs: Vec<(String, String)>,
    },
    /// A logout has its response. With response 0 and a reason that closes this connection, it has
    /// ended.
    LoggedOut {
        /// The response (RFC 7143, 11.15.1).
        response: u8,
    },
    /// A ping, or the response to one.
    Nop(Nop),
    /// An asynchronous message (RFC 7143, 11.9).
    AsyncMessage {
        /// AsyncEvent: 0 SCSI, 1 logout requested, 2 this connection and 3 all will be dropped, ….
        event: u8,
        /// Parameter1 to Parameter3.
        parameters: [u16; 3],
        /// The data segment: for event 0, sense data with its length before it.
        data: Vec<u8>,
    },
    /// A PDU was rejected.
    Rejected {
        /// The reason (RFC 7143, 11.17.1).
        reason: u8,
        /// The header of the PDU.
        header: [u8; 48],
    },
}

/// The response to a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The command.
    pub itt: Itt,
    /// The iSCSI response: 0 completed at the target, 1 target failure. The status is valid only if
    /// it is 0.
    pub response: u8,
    /// The SCSI status.
    pub status: u8,
    /// Sense data; empty if there is none.
    pub sense: Vec<u8>,
    /// The data received.
    pub data_in: Vec<u8>,
    /// The residual of the announced length.
    pub residual: Residual,
}

/// The residual of a command (RFC 7143, 11.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residual {
    /// All announced data was transferred.
    None,
    /// This many announced bytes were not transferred.
    Underflow(u32),
    /// This many bytes more than announced would have been transferred.
    Overflow(u32),
}

/// Pings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nop {
    /// The target responded to a ping, with the data that was sent.
    Answered {
        /// The request.
        itt: Itt,
    },
    /// The target pings; a response was sent if [`crate::Options::answers_pings`].
    Asked,
    /// The target reports its counters and wants no response.
    Told,
}
