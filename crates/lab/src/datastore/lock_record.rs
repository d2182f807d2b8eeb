//! A lock on disk: who holds it, and how.
//!
//! | bytes | what |
//! |---|---|
//! | 16 | mode: 0 free, 1 exclusive, 2 shared, 3 multi-writer |
//! | 17 | number of holders |
//! | 24..32 | sequence: increases with each change |
//! | 32..40 | a random number of the host that made the last change |
//! | 40..48 | stamp of the content of a free lock, see [`stamp_of`]; 0: not known, or held |
//! | 64..512 | 14 holders of 32 bytes: host id, heartbeat slot (u32), its generation (u64 at 24) |

use std::fmt;

use super::error::DatastoreError;
use super::sector::{Kind, Put, Sector, Take};

/// The number of heartbeat slots, and so the maximum number of hosts that have a datastore mounted
/// (VMFS: 64).
pub(super) const HOSTS_MAX: u32 = 64;
/// The maximum number of hosts that hold one lock together.
pub(super) const HOLDERS_MAX: usize = 14;

const HOLDERS_AT: usize = 64;
const HOLDER_BYTES: usize = 32;

/// The identity of a host, independent of its name and its restarts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostId(pub [u8; 16]);

impl HostId {
    /// Returns the id of a host with this (initiator) name: always the same.
    pub fn of_name(name: &str) -> Self {
        let mut id = [0; 16];
        for (index, word) in id.chunks_mut(4).enumerate() {
            let sum = crc32c::crc32c(format!("{index} {name}").as_bytes());
            word.copy_from_slice(&sum.to_le_bytes());
        }
        Self(id)
    }
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A host between one mount and its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Holder {
    pub(super) host: HostId,
    /// Its heartbeat slot.
    pub(super) slot: u32,
    /// Identifies one of the slot's owners: a host that restarts is another one.
    pub(super) generation: u64,
}

/// How a lock is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By one host, which alone may change the file.
    Exclusive,
    /// By hosts that only read.
    Shared,
    /// By hosts that all write, in blocks that exist already (eager zeroed disks only).
    MultiWriter,
}

/// A lock's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LockRecord {
    pub(super) sequence: u64,
    pub(super) nonce: u64,
    /// The stamp of its content; 0: the content must be read once the lock is held.
    pub(super) stamp: u64,
    /// `None`: it is free.
    pub(super) mode: Option<Mode>,
    pub(super) holders: Vec<Holder>,
}

impl LockRecord {
    /// Returns its content when formatted, with this content after it.
    pub(super) fn free_before(content: &[u8]) -> Self {
        let stamp = stamp_of(content);
        Self { sequence: 0, nonce: 0, stamp, mode: None, holders: Vec::new() }
    }

    /// Returns whether this is its content, as long as the lock is unchanged.
    pub(super) fn proves(&self, content: &[u8]) -> bool {
        self.mode.is_none() && self.stamp == stamp_of(content)
    }

    /// Returns it with one more holder; `None` if that conflicts with the present ones. A caller
    /// that is a holder already has forgotten that, and does not conflict with itself.
    pub(super) fn with(&self, holder: Holder, mode: Mode) -> Option<Self> {
        let mut next = self.without(|held| *held == holder);
        let fits = match next.mode {
            None => true,
            Some(held) => held == mode && mode != Mode::Exclusive,
        };
        if !fits || next.holders.len() == HOLDERS_MAX {
            return None;
        }
        next.mode = Some(mode);
        next.holders.push(holder);
        Some(next)
    }

    /// Returns it without some of its holders.
    pub(super) fn without(&self, goes: impl Fn(&Holder) -> bool) -> Self {
        let mut next = self.clone();
        next.holders.retain(|holder| !goes(holder));
        if next.holders.is_empty() {
            next.mode = None;
        }
        next.sequence = self.sequence.wrapping_add(1);
        next
    }

    pub(super) fn encode(&self, offset_bytes: u64) -> Sector {
        let mode = match self.mode {
            None => 0,
            Some(Mode::Exclusive) => 1,
            Some(Mode::Shared) => 2,
            Some(Mode::MultiWriter) => 3,
        };
        let mut put = Put::new();
        put.u8(16, mode).u8(17, self.holders.len() as u8);
        put.u64(24, self.sequence).u64(32, self.nonce).u64(40, self.stamp);
        for (index, holder) in self.holders.iter().enumerate() {
            let at = HOLDERS_AT + index * HOLDER_BYTES;
            put.bytes(at, &holder.host.0).u32(at + 16, holder.slot);
            put.u64(at + 24, holder.generation);
        }
        put.seal(Kind::Lock, offset_bytes)
    }

    pub(super) fn decode(bytes: &[u8], offset_bytes: u64) -> Result<Self, DatastoreError> {
        let take = Take::open(Kind::Lock, offset_bytes, bytes)?;
        let mode = match take.u8(16) {
            0 => None,
            1 => Some(Mode::Exclusive),
            2 => Some(Mode::Shared),
            3 => Some(Mode::MultiWriter),
            other => return Err(take.damaged(format!("a lock of mode {other}"))),
        };
        let count = usize::from(take.u8(17));
        let fits = match mode {
            None => count == 0,
            Some(Mode::Exclusive) => count == 1,
            Some(_) => (1..=HOLDERS_MAX).contains(&count),
        };
        if !fits {
            return Err(take.damaged(format!("a lock of mode {mode:?} with {count} holders")));
        }
        let mut holders = Vec::with_capacity(count);
        for index in 0..count {
            let at = HOLDERS_AT + index * HOLDER_BYTES;
            let slot = take.u32(at + 16);
            if slot >= HOSTS_MAX {
                return Err(take.damaged(format!("a holder in heartbeat slot {slot}")));
            }
            let host = host_of(&take, at);
            holders.push(Holder { host, slot, generation: take.u64(at + 24) });
        }
        let (sequence, nonce, stamp) = (take.u64(24), take.u64(32), take.u64(40));
        Ok(Self { sequence, nonce, stamp, mode, holders })
    }
}

/// Returns a hash of a lock's content (FNV-1a, 64 bits); never 0.
pub(super) fn stamp_of(content: &[u8]) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    content.iter().fold(0xCBF2_9CE4_8422_2325, mix).max(1)
}

/// Reads a host id at an offset.
pub(super) fn host_of(take: &Take<'_>, at: usize) -> HostId {
    let mut id = [0; 16];
    id.copy_from_slice(take.bytes(at, 16));
    HostId(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(slot: u32) -> Holder {
        Holder { host: HostId::of_name(&slot.to_string()), slot, generation: 5 }
    }

    #[test]
    fn a_lock_survives_the_disk() {
        let mut lock = LockRecord::free_before(b"some bytes");
        assert!(lock.proves(b"some bytes") && !lock.proves(b"other bytes"));
        assert_eq!(LockRecord::decode(&lock.encode(512), 512).unwrap(), lock);
        for slot in 0..HOLDERS_MAX as u32 {
            lock = lock.with(holder(slot), Mode::Shared).unwrap();
            lock.nonce = u64::from(slot) << 40;
            assert_eq!(LockRecord::decode(&lock.encode(512), 512).unwrap(), lock);
        }
        assert_eq!(lock.with(holder(60), Mode::Shared), None, "no room");
        assert!(!lock.proves(b"some bytes"), "it is held");
    }

    #[test]
    fn compatible_modes_share_a_lock() {
        let (one, two) = (holder(1), holder(2));
        let modes = [Mode::Exclusive, Mode::Shared, Mode::MultiWriter];
        for first in modes {
            let held = LockRecord::free_before(&[]).with(one, first).unwrap();
            for second in modes {
                let goes = first == second && first != Mode::Exclusive;
                assert_eq!(held.with(two, second).is_some(), goes, "{first:?} {second:?}");
                // A forgotten hold does not conflict with its own host.
                assert!(held.with(one, second).is_some());
            }
            let freed = held.without(|holder| *holder == one);
            assert_eq!((freed.mode, freed.sequence), (None, 2));
        }
    }

    #[test]
    fn invalid_locks_are_detected() {
        let sealed = |mode, count, slot| {
            Put::new().u8(16, mode).u8(17, count).u32(80, slot).seal(Kind::Lock, 0)
        };
        assert!(LockRecord::decode(&sealed(1, 1, 63), 0).is_ok());
        for (mode, count, slot) in [(4, 1, 0), (0, 1, 0), (1, 0, 0), (1, 2, 0), (2, 15, 0)] {
            assert!(LockRecord::decode(&sealed(mode, count, slot), 0).is_err());
        }
        assert!(LockRecord::decode(&sealed(1, 1, 64), 0).is_err());
    }
}
