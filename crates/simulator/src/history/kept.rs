//! What the administrator stores in the key-value space: a number that increases with each change,
//! and keys whose values are derived from it. So after a crash the number determines all of them.

use std::collections::BTreeMap;

use format::geometry::SEGMENT_BYTES_MIN;

use store::{Change, Store, StoreError};

use crate::plan::Plan;
use crate::rng::Rng;

/// The key of the number.
const NUMBER_KEY: &[u8] = b"changes";
/// A key changes with one in this many changes.
const TURN: u64 = 25;

/// A value for each key; `None` for keys that a change removes.
type Changed = Vec<(Vec<u8>, Option<Vec<u8>>)>;

/// How much is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    keys: u64,
    /// Most values are shorter than this, some are as long as a leaf.
    value_bytes_max: u64,
    long_bytes_max: u64,
}

impl Kept {
    pub(crate) fn of(plan: &Plan) -> Self {
        // In a full pool, little is stored with the end of a volume.
        match (plan.segment_bytes < SEGMENT_BYTES_MIN, plan.may_be_full) {
            (true, true) => Self { keys: 20, value_bytes_max: 300, long_bytes_max: 900 },
            (true, false) => Self { keys: 60, value_bytes_max: 300, long_bytes_max: 1500 },
            _ => Self { keys: 250, value_bytes_max: 400, long_bytes_max: 60_000 },
        }
    }

    /// Stores the values before the first change, some at a time.
    pub(crate) fn begin(self, store: &Store) -> Result<(), StoreError> {
        for pair in self.change(Vec::new(), 0) {
            store.change(Change { config: vec![pair], ..Change::default() })?;
        }
        Ok(())
    }

    /// Returns the values that change together with the number.
    pub(super) fn change(self, found: Vec<(Vec<u8>, Vec<u8>)>, number: u64) -> Changed {
        let (mut found, wanted) = (BTreeMap::from_iter(found), self.at(number));
        let mut changed: Changed = Vec::new();
        for (key, value) in wanted {
            if found.remove(&key).as_ref() != Some(&value) {
                changed.push((key, Some(value)));
            }
        }
        changed.extend(found.into_keys().map(|key| (key, None)));
        changed
    }

    /// Returns the stored number.
    ///
    /// # Errors
    /// If the stored values do not match it.
    pub(super) fn number(self, found: Vec<(Vec<u8>, Vec<u8>)>) -> Result<u64, String> {
        let found = BTreeMap::from_iter(found);
        let number = found.get(NUMBER_KEY).map_or(0, |value| {
            let mut eight = [0; 8];
            eight.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
            u64::from_le_bytes(eight)
        });
        let wanted = self.at(number);
        let mut keys = wanted.keys().chain(found.keys());
        match keys.find(|key| found.get(*key) != wanted.get(*key)) {
            None => Ok(number),
            Some(key) => {
                let key = String::from_utf8_lossy(key).into_owned();
                Err(format!("key {key} does not hold what change {number} stored"))
            }
        }
    }

    /// Returns all values after a change.
    fn at(self, number: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
        let value = |key: u64| {
            let turn = (number + key * 7) / TURN;
            let mut rng = Rng::new(key << 32 | turn);
            let most = if key % 16 == 5 { self.long_bytes_max } else { self.value_bytes_max };
            let bytes = rng.below(most);
            (!rng.chance(30)).then(|| vec![turn as u8; bytes as usize])
        };
        let keys = (0..self.keys).filter_map(|key| Some((format!("key {key:04}"), value(key)?)));
        let mut all: BTreeMap<_, _> = keys.map(|(key, value)| (key.into_bytes(), value)).collect();
        all.insert(NUMBER_KEY.to_vec(), number.to_le_bytes().to_vec());
        all
    }
}
