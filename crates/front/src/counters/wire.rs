//! Counters of the sockets.

use std::sync::atomic::AtomicU64;

/// The socket counters of one front-end thread.
#[derive(Debug, Default)]
pub struct WireCounters {
    /// Bytes received.
    pub received_bytes: AtomicU64,
    /// Bytes sent.
    pub sent_bytes: AtomicU64,
    pub(super) connections: AtomicU64,
}

/// A snapshot of all front-end threads' socket counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireSnapshot {
    /// Bytes of TCP payload received since the start.
    pub received_bytes: u64,
    /// Bytes of TCP payload sent since the start.
    pub sent_bytes: u64,
    /// Open connections.
    pub connections: u64,
}
