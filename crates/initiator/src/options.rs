//! Options of an initiator, and the parameters that its login negotiates.

/// Identity and offers of an initiator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its iSCSI name.
    pub initiator_name: String,
    /// The target; unused for discovery.
    pub target_name: String,
    /// The initiator's part of the session id.
    pub isid: [u8; 6],
    /// The target's part of the session id; 0 for a new session, even for one that replaces
    /// another.
    pub tsih: u16,
    /// The connection id (CID).
    pub cid: u16,
    /// CmdSN of the login, where the session's numbering begins.
    pub first_cmd_sn: u32,
    /// Whether the login begins with security negotiation, as most hosts do.
    pub security_stage: bool,
    /// Whether this is a discovery session, which carries no commands.
    pub discovery: bool,
    /// Offers CRC32C for headers, otherwise None.
    pub header_digest: bool,
    /// Offers CRC32C for data, otherwise None.
    pub data_digest: bool,
    /// Offers ImmediateData=Yes.
    pub immediate_data: bool,
    /// Offers InitialR2T=Yes.
    pub initial_r2t: bool,
    /// MaxRecvDataSegmentLength, in bytes. 512..=16777215.
    pub max_recv_data_segment_bytes: u32,
    /// The offered MaxBurstLength, in bytes. 512..=16777215.
    pub max_burst_bytes: u32,
    /// The offered FirstBurstLength, in bytes. 512..=`max_burst_bytes`.
    pub first_burst_bytes: u32,
    /// The offered MaxOutstandingR2T. 1..=65535.
    pub max_outstanding_r2t: u16,
    /// The offered MaxConnections. 1..=65535.
    pub max_connections: u16,
    /// The most immediate data sent with a command, in bytes, regardless of the negotiated values.
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

/// The negotiated parameters (RFC 7143, 13). Before the login ends: the defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// HeaderDigest: whether headers have a CRC32C.
    pub header_digest: bool,
    /// DataDigest: whether data has a CRC32C.
    pub data_digest: bool,
    /// ImmediateData: whether the PDU of a command may contain data.
    pub immediate_data: bool,
    /// InitialR2T: whether all data beyond immediate data must be solicited.
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
