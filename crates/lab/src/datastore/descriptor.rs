//! The name and size of a file.
//!
//! A descriptor has 4 KiB: the file's lock, this sector, and six with references to pointer blocks.
//!
//! | bytes | what |
//! |---|---|
//! | 16 | state: 0 free, 1 in use |
//! | 20..24 | number of the descriptor |
//! | 24..32 | generation: increases with each file that it has been |
//! | 32..40 | size of the file in bytes |
//! | 40..168 | name, UTF-8, ended by zeros |

use super::error::DatastoreError;
use super::layout::BLOCK_BYTES;
use super::sector::{Kind, Put, Sector, Take, text_of};

/// Bytes of a file's name.
pub(super) const NAME_BYTES_MAX: usize = 128;

/// A description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Description {
    pub(super) is_used: bool,
    pub(super) generation: u64,
    pub(super) size_bytes: u64,
    pub(super) name: String,
}

impl Description {
    /// Returns its content when formatted.
    pub(super) fn free() -> Self {
        Self { is_used: false, generation: 0, size_bytes: 0, name: String::new() }
    }

    /// Returns its content when its file was deleted.
    pub(super) fn erased(&self) -> Self {
        Self { generation: self.generation, ..Self::free() }
    }

    pub(super) fn encode(&self, file: u32, offset_bytes: u64) -> Sector {
        let mut put = Put::new();
        put.u8(16, self.is_used.into()).u32(20, file).u64(24, self.generation);
        put.u64(32, self.size_bytes).bytes(40, self.name.as_bytes());
        put.seal(Kind::Descriptor, offset_bytes)
    }

    /// Decodes one. `blocks_max`: the maximum number of blocks of a file.
    pub(super) fn decode(
        file: u32,
        offset_bytes: u64,
        blocks_max: u32,
        bytes: &[u8],
    ) -> Result<Self, DatastoreError> {
        let take = Take::open(Kind::Descriptor, offset_bytes, bytes)?;
        if take.u8(16) > 1 || take.u32(20) != file {
            return Err(take.damaged("it is another descriptor, or in an unknown state"));
        }
        let description = Self {
            is_used: take.u8(16) == 1,
            generation: take.u64(24),
            size_bytes: take.u64(32),
            name: text_of(&take, 40, NAME_BYTES_MAX)?,
        };
        if description.is_used && description.name.is_empty() {
            return Err(take.damaged("a file without a name"));
        }
        if description.size_bytes.div_ceil(BLOCK_BYTES) > u64::from(blocks_max) {
            return Err(take.damaged("a file that is larger than the maximum"));
        }
        Ok(description)
    }
}

/// Checks whether a file may have this name and size.
pub(super) fn check_file(
    name: &str,
    size_bytes: u64,
    blocks_max: u32,
) -> Result<(), DatastoreError> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains('\0') {
        let text = format!("a file's name has 1 to {NAME_BYTES_MAX} bytes");
        return Err(DatastoreError::Argument(text));
    }
    if size_bytes.div_ceil(BLOCK_BYTES) > u64::from(blocks_max) {
        let text = format!("a file of this datastore has at most {blocks_max} MiB");
        return Err(DatastoreError::Argument(text));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_survives_the_disk() {
        let longest = "n".repeat(NAME_BYTES_MAX);
        let used = Description { is_used: true, generation: 3, size_bytes: 5 << 20, name: longest };
        for description in [Description::free(), used.clone()] {
            let sector = description.encode(9, 512);
            assert_eq!(Description::decode(9, 512, 5, &sector).unwrap(), description);
            assert!(Description::decode(8, 512, 5, &sector).is_err());
        }
        assert!(Description::decode(9, 512, 4, &used.encode(9, 512)).is_err(), "too big");
        let nameless = Description { name: String::new(), ..used };
        assert!(Description::decode(9, 512, 5, &nameless.encode(9, 512)).is_err());
    }

    #[test]
    fn names_and_sizes_have_bounds() {
        assert!(check_file("a", 5 << 20, 5).is_ok());
        assert!(check_file("", 0, 5).is_err());
        assert!(check_file("a\0b", 0, 5).is_err());
        assert!(check_file(&"n".repeat(129), 0, 5).is_err());
        assert!(check_file("a", (5 << 20) + 1, 5).is_err());
        assert!(check_file("a", u64::MAX, 5).is_err());
    }
}
