//! Violations of the standard by a target.

/// A violation of RFC 7143 by the target. The message contains the clause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// An opcode that no target sends, or not in this phase.
    #[error("opcode {opcode:#04x} is not for this phase (RFC 7143, 11.2.1.2)")]
    Opcode {
        /// The opcode.
        opcode: u8,
    },
    /// A field of a header has an invalid value.
    #[error("opcode {opcode:#04x}: {what} (RFC 7143, {clause})")]
    Field {
        /// The opcode.
        opcode: u8,
        /// What is wrong.
        what: &'static str,
        /// The clause.
        clause: &'static str,
    },
    /// The data segment is longer than the initiator declared to receive.
    #[error("a data segment of {bytes} bytes, over the declared {declared} (RFC 7143, 13.12)")]
    SegmentTooLong {
        /// DataSegmentLength.
        bytes: usize,
        /// MaxRecvDataSegmentLength.
        declared: usize,
    },
    /// The header digest is wrong.
    #[error("wrong header digest (RFC 7143, 13.1)")]
    HeaderDigest,
    /// The data digest is wrong.
    #[error("wrong data digest (RFC 7143, 13.1)")]
    DataDigest,
    /// StatSN is not the next.
    #[error("StatSN {got}, but {expected} is next (RFC 7143, 4.2.2.2)")]
    StatSn {
        /// The value received.
        got: u32,
        /// The expected value.
        expected: u32,
    },
    /// ExpCmdSN or MaxCmdSN has decreased on this connection.
    #[error("{name} decreased from {from} to {to} (RFC 7143, 4.2.2.1)")]
    Backwards {
        /// The name of the field.
        name: &'static str,
        /// The previous value.
        from: u32,
        /// The value received.
        to: u32,
    },
    /// ExpCmdSN is beyond what was sent, or MaxCmdSN is less than ExpCmdSN - 1.
    #[error("ExpCmdSN {exp}, MaxCmdSN {max}, next CmdSN {next}: {what} (RFC 7143, 4.2.2.1)")]
    Window {
        /// ExpCmdSN.
        exp: u32,
        /// MaxCmdSN.
        max: u32,
        /// The CmdSN of the next request.
        next: u32,
        /// What is wrong.
        what: &'static str,
    },
    /// A tag that belongs to no request of this session, or to a request of another kind.
    #[error("opcode {opcode:#04x} for tag {itt:#x}, which was never sent (RFC 7143, 11.2.1.8)")]
    NeverAsked {
        /// The opcode.
        opcode: u8,
        /// The tag.
        itt: u32,
    },
    /// A PDU for a request that already has its response, or that was sent on another connection.
    #[error(
        "opcode {opcode:#04x} for tag {itt:#x}, not outstanding here (RFC 7143, 4.2.2.2, 4.2.4)"
    )]
    AnsweredTwice {
        /// The opcode.
        opcode: u8,
        /// The tag.
        itt: u32,
    },
    /// A PDU for a task after the response to the request that aborted it.
    #[error("opcode {opcode:#04x} for tag {itt:#x} after its end (RFC 7143, 4.2.3.3 and 11.6.1)")]
    AfterAbort {
        /// The opcode.
        opcode: u8,
        /// The tag.
        itt: u32,
    },
    /// Data-In or R2T out of order.
    #[error("task {itt:#x}: {name} {got}, but {expected} is next (RFC 7143, {clause})")]
    Order {
        /// The tag.
        itt: u32,
        /// DataSN, R2TSN, or the offset of one of them.
        name: &'static str,
        /// The value received.
        got: u32,
        /// The expected value.
        expected: u32,
        /// The clause.
        clause: &'static str,
    },
    /// More data than was announced, or than was negotiated for a sequence.
    #[error("task {itt:#x}: {bytes} bytes, but the maximum is {most}: {what} (RFC 7143, {clause})")]
    TooMuch {
        /// The tag.
        itt: u32,
        /// The number of bytes.
        bytes: u64,
        /// The limit.
        most: u64,
        /// What exceeds the limit.
        what: &'static str,
        /// The clause.
        clause: &'static str,
    },
    /// The residual does not match what was transferred.
    #[error(
        "task {itt:#x}: residual {residual:?} of {expected} bytes, {moved} moved (RFC 7143, 11.4.5)"
    )]
    Residual {
        /// The tag.
        itt: u32,
        /// The residual in the response.
        residual: crate::Residual,
        /// The announced length, in bytes.
        expected: u32,
        /// The transferred length, in bytes.
        moved: u32,
    },
    /// ExpDataSN is not the number of Data-In and R2T PDUs of the command.
    #[error("task {itt:#x}: ExpDataSN {got} after {sent} PDUs (RFC 7143, 11.4.8)")]
    ExpDataSn {
        /// The tag.
        itt: u32,
        /// The value in the response.
        got: u32,
        /// The number received.
        sent: u32,
    },
    /// An invalid key of the login or of a text response.
    #[error("key {key}={value}: {what} (RFC 7143, 6.2 and 13)")]
    Key {
        /// The key.
        key: String,
        /// Its value.
        value: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The text is not a list of pairs.
    #[error("malformed text (RFC 7143, 6.1)")]
    Text,
    /// The login takes more exchanges than necessary.
    #[error("the login takes too many exchanges (RFC 7143, 6.3)")]
    EndlessLogin,
    /// A ping's data was returned changed.
    #[error("NOP-In does not return the data of NOP-Out (RFC 7143, 11.19.2)")]
    Echo,
}

impl Violation {
    pub(crate) fn field(opcode: u8, what: &'static str, clause: &'static str) -> Self {
        Self::Field { opcode, what, clause }
    }
}
