//! Ids in the format of REST 2.x: UUIDs. An id is derived from the pool's id and an object's
//! number, which never changes, so ids need no table and are never reused.
//!
//! ```text
//! 56 bits of the pool's id | kind (8 bits) | number (64 bits)
//! ```

use array::Array;

/// The kinds of objects that have ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The array, with number 0.
    Array = 0,
    /// A volume or a snapshot, which share their numbers.
    Volume = 1,
    /// A protection group.
    Group = 2,
    /// An alert.
    Alert = 3,
    /// A volume group.
    VolumeGroup = 4,
    /// A pod.
    Pod = 5,
}

/// Creates and parses the ids of one array.
#[derive(Clone, Copy)]
pub(crate) struct Ids {
    pool: [u8; 7],
}

impl Ids {
    pub(crate) fn of(array: &Array) -> Self {
        let id = array.pool().pool_id;
        let mut pool = [0; 7];
        // All bytes are combined, because any of them may be the random ones.
        id.iter().enumerate().for_each(|(at, byte)| pool[at % 7] ^= byte);
        Self { pool }
    }

    /// Returns the id of an object.
    pub(crate) fn id(&self, kind: Kind, number: u64) -> String {
        let (kind, number) = ([kind as u8], number.to_be_bytes());
        let mut text = String::with_capacity(36);
        // Lists with many thousands of items need many ids, so this does not use the formatter.
        for (at, byte) in self.pool.iter().chain(&kind).chain(&number).enumerate() {
            if [4, 6, 8, 10].contains(&at) {
                text.push('-');
            }
            let digits = [byte >> 4, byte & 0xf].map(|digit| b"0123456789abcdef"[digit as usize]);
            text.extend(digits.map(char::from));
        }
        text
    }

    /// Returns the number of an object, if this is the id of an object of that kind in this array.
    pub(crate) fn number(&self, kind: Kind, id: &str) -> Option<u64> {
        let digits: String = id.chars().filter(|c| *c != '-').collect();
        let number = u64::from_str_radix(digits.get(16..)?, 16).ok()?;
        (self.id(kind, number).eq_ignore_ascii_case(id)).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_arrays_own_ids_are_parsed() {
        let ids = Ids { pool: [1, 2, 3, 4, 5, 6, 7] };
        let id = ids.id(Kind::Volume, 0x1_0000_002a);
        assert_eq!(id, "01020304-0506-0701-0000-00010000002a");
        assert_eq!(ids.number(Kind::Volume, &id), Some(0x1_0000_002a));
        assert_eq!(ids.number(Kind::Volume, &id.to_uppercase()), Some(0x1_0000_002a));
        assert_eq!(ids.number(Kind::Group, &id), None);
        assert_eq!(Ids { pool: [0; 7] }.number(Kind::Volume, &id), None);
        for bad in ["", "x", "01020304-0506-0701-0000-0001000000zz", &id[1..], "ä"] {
            assert_eq!(ids.number(Kind::Volume, bad), None, "{bad}");
        }
    }
}
