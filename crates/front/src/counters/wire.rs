//! What went over the sockets.

use std::sync::atomic::AtomicU64;

/// What one front-end thread moved over its sockets.
#[derive(Debug, Default)]
pub struct WireCounters {
    /// Bytes that came.
    pub received_bytes: AtomicU64,
    /// Bytes that went.
    pub sent_bytes: AtomicU64,
    pub(super) connections: AtomicU64,
}

/// What all front-end threads moved over their sockets, at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireSnapshot {
    /// Bytes of TCP payload received since the start.
    pub received_bytes: u64,
    /// Bytes of TCP payload sent since the start.
    pub sent_bytes: u64,
    /// Connections that are open now.
    pub connections: u64,
}
