//! Options of an initiator, and the parameters that its login negotiates.

/// Who it is, and what it offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its iSCSI name.
    pub initiator_name: String,
    /// The target; of no meaning for discovery.
    pub target_name: String,
    /// The initiator's part of the session's name.
    pub isid: [u8; 6],
    /// The target's part; 0 for a new session, also for one that takes the place of another.
    pub tsih: u16,
    /// The connection's name within the session.
    pub cid: u16,
    /// CmdSN of the login, where the session's counting starts.
    pub first_cmd_sn: u32,
    /// Whether the login begins with the stage of security negotiation, as most hosts do.
    pub security_stage: bool,
    /// Whether this is a discovery session, which carries no commands.
    pub discovery: bool,
    /// Offers CRC32C for headers, else None.
    pub header_digest: bool,
    /// Offers CRC32C for data, else None.
    pub data_digest: bool,
    /// Offers ImmediateData=Yes.
    pub immediate_data: bool,
    /// Offers InitialR2T=Yes.
    pub initial_r2t: bool,
    /// MaxRecvDataSegmentLength, in bytes. 512..=16777215.
    pub max_recv_data_segment_bytes: u32,
    /// MaxBurstLength as offered, in bytes. 512..=16777215.
    pub max_burst_bytes: u32,
    /// FirstBurstLength as offered, in bytes. 512..=`max_burst_bytes`.
    pub first_burst_bytes: u32,
    /// MaxOutstandingR2T as offered. 1..=65535.
    pub max_outstanding_r2t: u16,
    /// MaxConnections as offered. 1..=65535.
    pub max_connections: u16,
    /// The most immediate data that it sends with a command, in bytes, whatever was agreed on.
    pub immediate_bytes_max: u32,
    /// Whether it answers pings of the target (NOP-In).
    pub answers_pings: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            initiator_name: String::new(),
            target_name: String::new(),
            isid: [0x80, 0, 0, 0, 0, 1],
            tsih: 0,
            cid: 0,
            first_cmd_sn: 1,
            security_stage: true,
            discovery: false,
            header_digest: false,
            data_digest: false,
            immediate_data: true,
            initial_r2t: false,
            max_recv_data_segment_bytes: 262_144,
            max_burst_bytes: 1 << 20,
            first_burst_bytes: 262_144,
            max_outstanding_r2t: 4,
            max_connections: 1,
            immediate_bytes_max: u32::MAX,
            answers_pings: true,
        }
    }
}

/// What was agreed on (RFC 7143, 13). Before the login ends: the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// Whether headers carry a CRC32C.
    pub header_digest: bool,
    /// Whether data carries one.
    pub data_digest: bool,
    /// Whether data may come in the PDU of its command.
    pub immediate_data: bool,
    /// Whether no data goes unasked after its command.
    pub initial_r2t: bool,
    /// The target's MaxRecvDataSegmentLength, in bytes.
    pub send_segment_bytes: u32,
    /// MaxBurstLength, in bytes.
    pub burst_bytes: u32,
    /// FirstBurstLength, in bytes.
    pub first_burst_bytes: u32,
    /// MaxOutstandingR2T.
    pub outstanding_r2t: u16,
    /// MaxConnections.
    pub connections: u16,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            header_digest: false,
            data_digest: false,
            immediate_data: true,
            initial_r2t: true,
            send_segment_bytes: 8192,
            burst_bytes: 262_144,
            first_burst_bytes: 65_536,
            outstanding_r2t: 1,
            connections: 1,
        }
    }
}
