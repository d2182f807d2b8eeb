//! Labels identify a device and its pool. Each device of a pool has two copies of its own label.
//!
//! ```text
//!    0  8  magic "HOLDLABL"          16 16  pool id
//!    8  4  version (1)               32 16  device id
//!   12  2  number of the device      48  8  sequence
//!   14  2  members                   56  8  epoch
//!   64    members, 32 bytes each:
//!          0 16  device id
//!         16  8  bytes of it that belong to the pool
//!         24  2  number
//!         26  1  state: 1 in, 2 out, 3 out until it is taken back
//!         27  5  zero
//! 2112  8 sequence of the valid map of parts, 0 if there is none
//! 2120 32 checksum of that map
//! 2152  1912 reserved, for wrapped keys and more: zero
//! 4064 32  BLAKE3 of the preceding bytes
//! ```
//!
//! A segment's row names devices by their numbers ([rows](#rows-of-the-segment-table)). Labels
//! identify these devices, and so show which are missing, or in the wrong place. All devices of a
//! pool list the same members. If labels differ, those with the highest sequence number are valid.
//!
//! A member that is *in* has the whole pool. One that is *out* has failed, or does not have all
//! data yet, and its content is not trusted. The fact that a device is out is durable on the
//! devices that are in before anything it lacks is acknowledged.
//!
//! Pools with the compatible feature `labels` have labels. A program that does not know labels may
//! have grown the pool since they were written: a member has at least the size in its label. Losing
//! a label loses no data. Opening the pool for use, and scrubbing, rewrite it.

use block::BLOCK_BYTES;

use crate::FormatError;
use crate::checksum::superblock_sum;
use crate::codec::Reader;
use crate::parts_map::PartsMapRef;
use crate::superblock::Superblock;

const MAGIC: [u8; 8] = *b"HOLDLABL";
const VERSION: u32 = 1;
const MEMBERS_AT: usize = 64;
const MEMBER_BYTES: usize = 32;
const PARTS_AT: usize = MEMBERS_AT + DEVICES_MAX * MEMBER_BYTES;
const RESERVED_AT: usize = PARTS_AT + 40;
const SUM_AT: usize = 4064;

/// The maximum number of devices of a pool.
pub const DEVICES_MAX: usize = 64;
/// Bytes of a label.
pub const LABEL_BYTES: usize = BLOCK_BYTES as usize;
/// The offsets of the two copies on their device, in bytes: in segment 0, away from each other and
/// from the superblocks.
pub const LABEL_OFFSETS_BYTES: [u64; 2] = [2 << 20, 10 << 20];

/// What is wrong with a label of a later version.
pub const UNKNOWN_LABEL: &str = "the label has an unknown version";

/// The id of a device, which never changes and is never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(pub [u8; 16]);

impl DeviceId {
    /// Returns the id of the device on which a pool was created.
    pub fn first_of(pool_id: [u8; 16]) -> Self {
        let mut id = [0; 16];
        let hash = blake3::derive_key("holdfast 2026 first device of a pool v1", &pool_id);
        id.copy_from_slice(&hash[..16]);
        Self(id)
    }

    /// Returns the id of a device that joins a pool with this number. `entropy` is random, so that
    /// no id is ever reused.
    pub fn of_member(pool_id: [u8; 16], number: u16, entropy: [u8; 16]) -> Self {
        let known = [&pool_id[..], &number.to_le_bytes(), &entropy].concat();
        let mut id = [0; 16];
        let hash = blake3::derive_key("holdfast 2026 device of a pool v1", &known);
        id.copy_from_slice(&hash[..16]);
        Self(id)
    }
}

impl std::fmt::Display for DeviceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Whether the content of a member of a pool counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemberState {
    /// It has everything that it should have.
    In,
    /// It has failed, or does not have everything yet. It catches up when it is present.
    Out,
    /// The same, but an administrator keeps it out.
    Kept,
}

impl MemberState {
    fn encode(self) -> u8 {
        match self {
            Self::In => 1,
            Self::Out => 2,
            Self::Kept => 3,
        }
    }

    fn decode(raw: u8) -> Option<Self> {
        [Self::In, Self::Out, Self::Kept].into_iter().find(|state| state.encode() == raw)
    }
}

/// A device of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub device: DeviceId,
    /// How much of it the pool uses, in bytes, as of this label.
    pub bytes: u64,
    /// Its number in maps of parts, from 0 on.
    pub number: u16,
    /// Whether its content counts.
    pub state: MemberState,
}

/// What a device says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its pool.
    pub pool_id: [u8; 16],
    /// The id of the device.
    pub device: DeviceId,
    /// The number of the device among the members.
    pub number: u16,
    /// Incremented with each change of the members.
    pub sequence: u64,
    /// The epoch in which the label was written.
    pub epoch: u64,
    /// All devices of the pool, by number.
    pub members: Vec<Member>,
    /// The map of parts that counts, in a pool that has one.
    pub parts: PartsMapRef,
}

impl Label {
    /// Returns the label of the only device of a pool.
    pub fn of_only(root: &Superblock) -> Self {
        let device = DeviceId::first_of(root.pool_id);
        let state = MemberState::In;
        let member = Member { device, bytes: root.capacity_bytes, number: 0, state };
        let Superblock { pool_id, epoch, .. } = *root;
        let (members, parts) = (vec![member], PartsMapRef::default());
        Self { pool_id, device, number: 0, sequence: 1, epoch, members, parts }
    }

    /// Encodes it: [`LABEL_BYTES`] bytes.
    ///
    /// # Panics
    /// If there are more than [`DEVICES_MAX`] members.
    pub fn encode(&self) -> Vec<u8> {
        assert!(self.members.len() <= DEVICES_MAX, "a pool has at most 64 devices");
        let mut out = Vec::with_capacity(LABEL_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&(self.members.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.pool_id);
        out.extend_from_slice(&self.device.0);
        out.extend_from_slice(&self.sequence.to_le_bytes());
        out.extend_from_slice(&self.epoch.to_le_bytes());
        debug_assert_eq!(out.len(), MEMBERS_AT);
        for member in &self.members {
            out.extend_from_slice(&member.device.0);
            out.extend_from_slice(&member.bytes.to_le_bytes());
            out.extend_from_slice(&member.number.to_le_bytes());
            out.extend_from_slice(&[member.state.encode(), 0, 0, 0, 0, 0]);
        }
        out.resize(PARTS_AT, 0);
        out.extend_from_slice(&self.parts.sequence.to_le_bytes());
        out.extend_from_slice(&self.parts.sum);
        out.resize(SUM_AT, 0);
        let sum = superblock_sum(&out);
        out.extend_from_slice(&sum);
        out
    }

    /// Decodes one.
    ///
    /// # Errors
    /// What is wrong with it; [`UNKNOWN_LABEL`] if a later program has written it.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() != LABEL_BYTES {
            return Err(FormatError { what: "a label has 4096 bytes", offset: 0 });
        }
        let mut reader = Reader::new(bytes);
        if reader.array()? != MAGIC {
            return Err(FormatError { what: "no label", offset: 0 });
        }
        if superblock_sum(&bytes[..SUM_AT]) != bytes[SUM_AT..] {
            return Err(FormatError { what: "wrong checksum of a label", offset: SUM_AT });
        }
        if reader.u32()? != VERSION {
            return Err(FormatError { what: UNKNOWN_LABEL, offset: 8 });
        }
        let (number, count) = (reader.u16()?, usize::from(reader.u16()?));
        let (pool_id, device) = (reader.array()?, DeviceId(reader.array()?));
        let (sequence, epoch) = (reader.u64()?, reader.u64()?);
        if count > DEVICES_MAX {
            return Err(FormatError { what: "a label of too many devices", offset: 14 });
        }
        let members = (0..count).map(|_| Member::decode(&mut reader)).collect::<Result<_, _>>()?;
        for zeros in [reader.offset()..PARTS_AT, RESERVED_AT..SUM_AT] {
            if bytes[zeros.clone()].iter().any(|byte| *byte != 0) {
                let offset = zeros.start;
                return Err(FormatError { what: "a label with unknown content", offset });
            }
        }
        let mut reader = Reader::new(&bytes[PARTS_AT..]);
        let parts = PartsMapRef { sequence: reader.u64()?, sum: reader.array()? };
        if parts.sequence == 0 && parts.sum != [0; 32] {
            return Err(FormatError {
                what: "a label with a checksum but no map of parts",
                offset: PARTS_AT,
            });
        }
        let label = Self { pool_id, device, number, sequence, epoch, members, parts };
        label.check()?;
        Ok(label)
    }

    /// Checks that the members are different devices in the order of their numbers, and that it is
    /// one of them.
    fn check(&self) -> Result<(), FormatError> {
        let mut devices: Vec<_> = self.members.iter().map(|member| member.device).collect();
        devices.sort_unstable();
        let is_ordered = self.members.is_sorted_by(|one, next| one.number < next.number)
            && devices.is_sorted_by(|one, next| one < next);
        let is_itself =
            |member: &Member| member.number == self.number && member.device == self.device;
        match is_ordered && self.members.iter().any(is_itself) {
            true => Ok(()),
            false => Err(FormatError { what: "impossible members of a label", offset: MEMBERS_AT }),
        }
    }
}

impl Member {
    fn decode(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        let (device, bytes) = (DeviceId(reader.array()?), reader.u64()?);
        let number = reader.u16()?;
        let [state, zeros @ ..] = reader.array::<6>()?;
        match MemberState::decode(state) {
            Some(state) if zeros == [0; 5] => Ok(Self { device, bytes, number, state }),
            _ => Err(reader.error("a device in an unknown state")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label() -> Label {
        let member = |number: u16| Member {
            device: DeviceId([number as u8 + 1; 16]),
            bytes: 1 << 40,
            number,
            state: if number == 9 { MemberState::Out } else { MemberState::In },
        };
        Label {
            pool_id: [7; 16],
            device: DeviceId([3; 16]),
            number: 2,
            sequence: 5,
            epoch: 0x0102_0304,
            members: vec![member(0), member(2), member(9)],
            parts: PartsMapRef { sequence: 3, sum: [8; 32] },
        }
    }

    #[test]
    fn golden_bytes_of_a_label() {
        let bytes = label().encode();
        assert_eq!(bytes[..16], *b"HOLDLABL\x01\0\0\0\x02\0\x03\0");
        assert_eq!((bytes[16], bytes[32], bytes[48]), (7, 3, 5));
        assert_eq!(bytes[56..64], [4, 3, 2, 1, 0, 0, 0, 0]);
        assert_eq!(bytes[64 + 32..64 + 48], [3; 16]);
        assert_eq!(bytes[64 + 48..64 + 64], [0, 0, 0, 0, 0, 1, 0, 0, 2, 0, 1, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[64 + 64 + 16..64 + 96], [0, 0, 0, 0, 0, 1, 0, 0, 9, 0, 2, 0, 0, 0, 0, 0]);
        assert!(bytes[64 + 96..2112].iter().all(|byte| *byte == 0));
        assert_eq!(bytes[2112..2120], [3, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[2120..2152], [8; 32]);
        assert!(bytes[2152..SUM_AT].iter().all(|byte| *byte == 0));
        assert_eq!(Label::decode(&bytes), Ok(label()));
    }

    #[test]
    fn a_label_of_most_devices_fits() {
        let member = |number: u16| Member {
            device: DeviceId([number as u8 + 1; 16]),
            bytes: u64::MAX,
            number,
            state: MemberState::In,
        };
        let members: Vec<_> = (0..DEVICES_MAX as u16).map(member).collect();
        let label = Label { device: members[5].device, number: 5, members, ..label() };
        assert_eq!(Label::decode(&label.encode()), Ok(label));
    }

    /// Changes a byte, and corrects the checksum.
    fn forged(at: usize, value: u8) -> Result<Label, FormatError> {
        let mut bytes = label().encode();
        bytes[at] = value;
        let sum = superblock_sum(&bytes[..SUM_AT]);
        bytes[SUM_AT..].copy_from_slice(&sum);
        Label::decode(&bytes)
    }

    #[test]
    fn unknown_values_are_refused() {
        assert!(forged(49, 1).is_ok());
        assert_eq!(forged(8, 2).unwrap_err().what, UNKNOWN_LABEL);
        for (at, value) in [
            (0, b'h'),
            (12, 1),          // a device that is no member
            (14, 65),         // too many
            (14, 2),          // a third one after the last
            (32, 4),          // another device
            (64 + 24, 2),     // two of one number
            (64 + 26, 4),     // a state
            (64 + 31, 1),     // a reserved byte of a member
            (PARTS_AT, 0),    // a checksum without a map
            (RESERVED_AT, 1), // reserved for keys
            (SUM_AT - 1, 1),
        ] {
            assert!(forged(at, value).is_err(), "byte {at}");
        }
        let mut bytes = label().encode();
        for at in 0..LABEL_BYTES {
            bytes[at] ^= 0x10;
            assert!(Label::decode(&bytes).is_err(), "byte {at}");
            bytes[at] ^= 0x10;
        }
        assert!(Label::decode(&bytes[1..]).is_err());
        assert!(Label::decode(&[0; LABEL_BYTES]).is_err());
    }

    #[test]
    fn two_pools_have_different_first_devices() {
        assert_ne!(DeviceId::first_of([1; 16]), DeviceId::first_of([2; 16]));
        assert_ne!(DeviceId::first_of([1; 16]).0, [1; 16]);
    }
}
