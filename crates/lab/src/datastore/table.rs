//! Sectors with numbers: the directory, the slots of a descriptor, and pointers.
//!
//! | bytes | what |
//! |---|---|
//! | 16..20 | the file (its number; zero for the directory) |
//! | 20..24 | which part of the whole this is |
//! | 24..32 | generation of the file, to detect what an older one has left |
//! | 32..512 | 120 entries of 32 bits |
//!
//! A directory's entry is 0 if the descriptor is free, otherwise a hash of the name. A slot is 0 or
//! a pointer block's number plus one. A pointer is 0 (absent), or a data block's number with bit 31
//! (present) or bit 30 (to be zeroed).

use super::error::DatastoreError;
use super::sector::{Kind, Put, Sector, Take};

/// Entries in a sector.
pub(super) const ENTRIES: usize = 120;

const ENTRIES_AT: usize = 32;
const PRESENT: u32 = 1 << 31;
const TO_BE_ZEROED: u32 = 1 << 30;

/// The owner of a table's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) file: u32,
    pub(super) generation: u64,
    pub(super) part: u32,
}

/// The entries in a sector.
pub(super) type Entries = [u32; ENTRIES];

/// Encodes a table's sector.
pub(super) fn encode(kind: Kind, offset_bytes: u64, owner: Owner, entries: &Entries) -> Sector {
    let mut put = Put::new();
    put.u32(16, owner.file).u32(20, owner.part).u64(24, owner.generation);
    for (index, entry) in entries.iter().enumerate() {
        put.u32(ENTRIES_AT + 4 * index, *entry);
    }
    put.seal(kind, offset_bytes)
}

/// Decodes the entries of a table, which must be its owner's.
pub(super) fn decode(
    kind: Kind,
    offset_bytes: u64,
    owner: Owner,
    bytes: &[u8],
) -> Result<Entries, DatastoreError> {
    let take = Take::open(kind, offset_bytes, bytes)?;
    let found = Owner { file: take.u32(16), part: take.u32(20), generation: take.u64(24) };
    if found != owner {
        return Err(take.damaged(format!("it is of {found:?}, not of {owner:?}")));
    }
    Ok(std::array::from_fn(|index| take.u32(ENTRIES_AT + 4 * index)))
}

/// The same, if an older generation may have left something, which does not count.
pub(super) fn decode_if_newest(
    kind: Kind,
    offset_bytes: u64,
    owner: Owner,
    bytes: &[u8],
) -> Result<Entries, DatastoreError> {
    let generation = Take::open(kind, offset_bytes, bytes)?.u64(24).min(owner.generation);
    let entries = decode(kind, offset_bytes, Owner { generation, ..owner }, bytes)?;
    Ok(if generation < owner.generation { [0; ENTRIES] } else { entries })
}

/// The state of one of a file's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pointer {
    Absent,
    Present(u32),
    ToBeZeroed(u32),
}

impl Pointer {
    pub(super) fn pack(self) -> u32 {
        match self {
            Self::Absent => 0,
            Self::Present(block) => block | PRESENT,
            Self::ToBeZeroed(block) => block | TO_BE_ZEROED,
        }
    }

    /// Decodes one; `None` if it is not a valid pointer into this many blocks.
    pub(super) fn unpack(entry: u32, blocks: u32) -> Option<Self> {
        let block = entry & !(PRESENT | TO_BE_ZEROED);
        let pointer = match (entry & PRESENT != 0, entry & TO_BE_ZEROED != 0) {
            (false, false) if entry == 0 => return Some(Self::Absent),
            (true, false) => Self::Present(block),
            (false, true) => Self::ToBeZeroed(block),
            _ => return None,
        };
        (block < blocks).then_some(pointer)
    }

    /// Returns the data block, if there is one.
    pub(super) fn block(self) -> Option<u32> {
        match self {
            Self::Absent => None,
            Self::Present(block) | Self::ToBeZeroed(block) => Some(block),
        }
    }
}

/// Returns the directory's entry for a name: never 0.
pub(super) fn hash_of(name: &str) -> u32 {
    crc32c::crc32c(name.as_bytes()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_round_trips_and_belongs_to_its_owner() {
        let owner = Owner { file: 3, generation: 9, part: 2 };
        let entries = std::array::from_fn(|index| index as u32 * 0x0101_0101);
        let sector = encode(Kind::Pointers, 1024, owner, &entries);
        assert_eq!(decode(Kind::Pointers, 1024, owner, &sector).unwrap(), entries);
        let others = [
            Owner { file: 4, ..owner },
            Owner { generation: 8, ..owner },
            Owner { part: 0, ..owner },
        ];
        for other in others {
            assert!(decode(Kind::Pointers, 1024, other, &sector).is_err());
            assert!(decode_if_newest(Kind::Pointers, 1024, other, &sector).is_err());
        }
        let newest = |owner| decode_if_newest(Kind::Pointers, 1024, owner, &sector).unwrap();
        assert_eq!(newest(owner), entries);
        assert_eq!(newest(Owner { generation: 10, ..owner }), [0; ENTRIES]);
        assert!(decode(Kind::Slots, 1024, owner, &sector).is_err());
    }

    #[test]
    fn pointers_are_within_the_device() {
        for pointer in [Pointer::Absent, Pointer::Present(0), Pointer::ToBeZeroed(99)] {
            assert_eq!(Pointer::unpack(pointer.pack(), 100), Some(pointer));
        }
        for bad in [Pointer::Present(100).pack(), 5, PRESENT | TO_BE_ZEROED, u32::MAX] {
            assert_eq!(Pointer::unpack(bad, 100), None);
        }
    }
}
