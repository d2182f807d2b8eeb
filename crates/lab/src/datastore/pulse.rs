//! Heartbeats, by which the hosts of a datastore see which of them are alive.
//!
//! A slot's sector:
//!
//! | bytes | what |
//! |---|---|
//! | 16 | state: 0 free, 1 alive |
//! | 32..48 | host id |
//! | 48..56 | generation: increases with each host that takes the slot |
//! | 56..64 | sequence: increases with each beat |
//! | 64..72 | a random number of the writer |

use super::error::DatastoreError;
use super::lock_record::{Holder, HostId, host_of};
use super::sector::{Kind, Put, Sector, Take};

/// A slot's content. It contains no time: each host measures with its own clock how long another's
/// beat has not changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pulse {
    pub(super) is_alive: bool,
    pub(super) host: HostId,
    pub(super) generation: u64,
    pub(super) sequence: u64,
    pub(super) nonce: u64,
}

impl Pulse {
    /// Returns its content when formatted.
    pub(super) fn free() -> Self {
        Self { is_alive: false, host: HostId([0; 16]), generation: 0, sequence: 0, nonce: 0 }
    }

    /// Returns the first beat of a host that takes the slot.
    pub(super) fn taken_by(&self, host: HostId, nonce: u64) -> Self {
        let generation = self.generation.wrapping_add(1);
        Self { is_alive: true, host, generation, sequence: 0, nonce }
    }

    /// Returns the next beat.
    pub(super) fn next(&self, nonce: u64) -> Self {
        Self { sequence: self.sequence.wrapping_add(1), nonce, ..*self }
    }

    /// Returns the end of the host that had the slot.
    pub(super) fn ended(&self, nonce: u64) -> Self {
        Self { is_alive: false, nonce, ..*self }
    }

    /// Returns whether it is this holder's, in the same generation.
    pub(super) fn is_of(&self, holder: &Holder) -> bool {
        self.is_alive && self.host == holder.host && self.generation == holder.generation
    }

    pub(super) fn encode(&self, offset_bytes: u64) -> Sector {
        let mut put = Put::new();
        put.u8(16, self.is_alive.into()).bytes(32, &self.host.0).u64(48, self.generation);
        put.u64(56, self.sequence).u64(64, self.nonce);
        put.seal(Kind::Heartbeat, offset_bytes)
    }

    pub(super) fn decode(bytes: &[u8], offset_bytes: u64) -> Result<Self, DatastoreError> {
        let take = Take::open(Kind::Heartbeat, offset_bytes, bytes)?;
        if take.u8(16) > 1 {
            return Err(take.damaged(format!("a heartbeat in state {}", take.u8(16))));
        }
        Ok(Self {
            is_alive: take.u8(16) == 1,
            host: host_of(&take, 32),
            generation: take.u64(48),
            sequence: take.u64(56),
            nonce: take.u64(64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_heartbeat_survives_the_disk() {
        let first = Pulse::free().taken_by(HostId::of_name("a"), 77);
        let holder = Holder { host: HostId::of_name("a"), slot: 0, generation: 1 };
        for pulse in [Pulse::free(), first, first.next(8), first.ended(9)] {
            assert_eq!(Pulse::decode(&pulse.encode(512), 512).unwrap(), pulse);
        }
        assert!(first.is_of(&holder) && first.next(1).is_of(&holder));
        assert!(!first.ended(1).is_of(&holder));
        let later = first.ended(1).taken_by(holder.host, 2);
        assert!(!later.is_of(&holder), "another life");
        assert!(Pulse::decode(&Put::new().u8(16, 2).seal(Kind::Heartbeat, 0), 0).is_err());
    }
}
