//! The configuration of the target, and its interface to management.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use block::LunMap;

/// An address on which the target listens (RFC 7143, 4.4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portal {
    /// The address. One with an unspecified IP (`0.0.0.0`, `::`) is reported to initiators as the
    /// local address of their connection.
    pub address: SocketAddr,
    /// The tag of its portal group: all connections of a session use portals of one group.
    pub tag: u16,
}

/// Limits on the target's memory and time that hold for any input from its peers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Commands of a session in progress: the window that MaxCmdSN opens. 1..=4096.
    pub commands_per_session: u32,
    /// Immediate commands of a connection in progress; they do not count for the window.
    pub immediate_commands_per_connection: u32,
    /// Sessions, including discovery sessions.
    pub sessions: usize,
    /// Sessions of one initiator, including discovery sessions: its paths to all portals.
    pub sessions_per_initiator: usize,
    /// Sessions from one address (of IPv6: from one 64-bit network), regardless of their names, so
    /// that no machine can take all by using the names of many hosts.
    pub sessions_per_address: usize,
    /// Connections in a session (MaxConnections). 1..=65535.
    pub connections_per_session: u16,
    /// MaxRecvDataSegmentLength as declared to initiators, in bytes. 512..=16777215.
    pub receive_segment_bytes: u32,
    /// The offered MaxBurstLength, in bytes. 512..=16777215.
    pub burst_bytes: u32,
    /// The offered FirstBurstLength, in bytes. 512..=`burst_bytes`.
    pub first_burst_bytes: u32,
    /// The offered MaxOutstandingR2T. 1..=64.
    pub outstanding_r2t: u16,
    /// The most data-out of one command, in bytes. Data beyond it is never solicited: SCSI refuses
    /// longer commands, or does not need that much.
    pub data_out_bytes_per_command: u32,
    /// The memory for incoming data of one connection, in bytes. The R2T of a command that does not
    /// fit is delayed; a command that never fits waits until it is alone. Unsolicited data is not
    /// included: FirstBurstLength for each command.
    pub data_out_bytes_per_connection: usize,
    /// The memory for data of all connections, in both directions, in bytes. At least twice the
    /// data of one command. Beyond it each initiator has 1 MiB.
    pub data_bytes: usize,
    /// How long solicited data may be missing, or a connection may accept no output, before the
    /// connection is closed.
    pub data_timeout: Duration,
    /// About how many PDUs are processed in one call.
    pub pdus_per_call: u32,
    /// The queued output, in bytes, above which nothing more is received.
    pub output_bytes: usize,
    /// The text of one negotiation (login or text request), in bytes.
    pub text_bytes: usize,
    /// The maximum duration of a login.
    pub login_timeout: Duration,
    /// How long a connection may be silent before it is pinged (NOP-In).
    pub ping_after: Duration,
    /// How long the response to a ping may take before the connection is dropped.
    pub ping_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            commands_per_session: 128,
            immediate_commands_per_connection: 32,
            sessions: 1024,
            sessions_per_initiator: 64,
            sessions_per_address: 256,
            connections_per_session: 8,
            receive_segment_bytes: 262_144,
            burst_bytes: 1 << 20,
            first_burst_bytes: 262_144,
            outstanding_r2t: 4,
            data_out_bytes_per_command: block::request::limits::COMMAND_BYTES_MAX as u32,
            data_out_bytes_per_connection: 32 << 20,
            data_bytes: 256 << 20,
            data_timeout: Duration::from_secs(30),
            pdus_per_call: 64,
            output_bytes: 16 << 20,
            text_bytes: 65_536,
            login_timeout: Duration::from_secs(15),
            ping_after: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// Returns the limits with every value clamped to its range, so that other code can rely on it.
    pub(crate) fn clamped(mut self) -> Self {
        let most = (1 << 24) - 1;
        self.commands_per_session = self.commands_per_session.clamp(1, 4096);
        self.immediate_commands_per_connection = self.immediate_commands_per_connection.max(1);
        self.sessions = self.sessions.clamp(1, 65_535);
        self.connections_per_session = self.connections_per_session.max(1);
        self.receive_segment_bytes = self.receive_segment_bytes.clamp(8192, most);
        self.burst_bytes = self.burst_bytes.clamp(512, most);
        self.first_burst_bytes = self.first_burst_bytes.clamp(512, self.burst_bytes);
        self.outstanding_r2t = self.outstanding_r2t.clamp(1, 64);
        self.data_out_bytes_per_command =
            self.data_out_bytes_per_command.clamp(self.first_burst_bytes, 1 << 30);
        self.data_bytes = self.data_bytes.max(2 * self.data_out_bytes_per_command as usize);
        self.sessions_per_initiator = self.sessions_per_initiator.max(1);
        self.sessions_per_address = self.sessions_per_address.max(1);
        self.pdus_per_call = self.pdus_per_call.max(1);
        self.text_bytes = self.text_bytes.max(8192);
        self
    }
}

/// The configuration of the target: one iSCSI node with its portals.
#[derive(Clone)]
pub struct TargetConfig {
    /// Its iSCSI name: `iqn.…`, `eui.…` or `naa.…`.
    pub target_name: String,
    /// Its alias for display; empty for none.
    pub target_alias: String,
    /// The portals on which it listens.
    pub portals: Vec<Portal>,
    /// Its limits.
    pub limits: Limits,
    /// Decides who may log in.
    pub access: Arc<dyn Access>,
    /// Returns the offset of a CDB's data in its 4 KiB block, in bytes (0..4096), so that received
    /// data has the layout of the volume's blocks. Called with any CDB of 16 bytes or more.
    pub data_out_phase: fn(&[u8]) -> usize,
    /// Returns how many bytes a CDB takes from the initiator, for a logical unit in its LUN map
    /// ([`crate::Connection::set_luns`]); `None` if unknown. Data that an initiator announces
    /// beyond that is never solicited.
    pub data_out_bytes: fn(&LunMap, [u8; 8], &[u8]) -> Option<u64>,
}

impl fmt::Debug for TargetConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TargetConfig")
            .field("target_name", &self.target_name)
            .field("portals", &self.portals)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The interface to management. Called at each login, so that changes take effect from the next
/// login on.
pub trait Access: Send + Sync {
    /// Returns how the initiator with this name may log in; `None` if it may not (the login is
    /// refused with 0202, authorization failure).
    fn initiator(&self, initiator_name: &str) -> Option<InitiatorAccess>;
}

/// How an initiator may log in.
#[derive(Clone, Debug, Default)]
pub struct InitiatorAccess {
    /// The credentials that it must prove; `None` if its name is sufficient.
    pub chap: Option<ChapCredentials>,
}

/// The credentials of CHAP for both directions (RFC 7143, 12.1.3; RFC 1994). `Debug` shows no
/// secret.
#[derive(Clone)]
pub struct ChapCredentials {
    /// The initiator's name (CHAP_N).
    pub user: String,
    /// The initiator's secret.
    pub secret: Vec<u8>,
    /// The name and secret by which the target authenticates itself if the initiator requests it
    /// (mutual CHAP).
    pub mutual: Option<(String, Vec<u8>)>,
}

impl fmt::Debug for ChapCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChapCredentials")
            .field("user", &self.user)
            .field("mutual", &self.mutual.as_ref().map(|(user, _)| user))
            .finish_non_exhaustive()
    }
}
