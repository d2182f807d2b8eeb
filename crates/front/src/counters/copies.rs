//! Counters of copies, at their source and at their destination.

use std::sync::atomic::{AtomicU64, Ordering};

use block::VolumeId;

/// Counters of the copies that read a volume, or that wrote it.
#[derive(Debug, Default)]
pub(super) struct CopyCounters {
    commands: AtomicU64,
    bytes: AtomicU64,
}

impl CopyCounters {
    pub(super) fn count(&self, bytes: u64) {
        self.commands.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn snapshot(&self) -> CopySnapshot {
        CopySnapshot {
            commands: self.commands.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
        }
    }

    /// Adds counters that count no more.
    pub(super) fn absorb(&self, more: CopySnapshot) {
        self.commands.fetch_add(more.commands, Ordering::Relaxed);
        self.bytes.fetch_add(more.bytes, Ordering::Relaxed);
    }
}

/// A snapshot of these counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopySnapshot {
    /// Successful commands.
    pub commands: u64,
    /// The bytes they copied.
    pub bytes: u64,
}

/// The bytes that a command copied from one volume to another, or within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    pub source: VolumeId,
    pub destination: VolumeId,
    pub bytes: u64,
}
