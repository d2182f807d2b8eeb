//! The target's state: entries of their own, in the key-value space of the layer above.

use format::target_state::TARGET_STATE_KEY;

use super::{assert_sound, pool};
use crate::{Change, OpenOptions, Store};

type Pair = (Vec<u8>, Vec<u8>);

pub(super) fn keep(store: &Store, pairs: &[(&[u8], Option<&[u8]>)]) {
    let config = pairs.iter().map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec)));
    store.change(Change { config: config.collect(), ..Change::default() }).unwrap();
}

#[test]
fn the_targets_state_is_restored_from_the_log_and_from_a_checkpoint() {
    assert_eq!(TARGET_STATE_KEY, b'S');
    for checkpoints in [false, true] {
        let (disk, store) = pool(256 << 20);
        let checkpoint = || {
            if checkpoints {
                store.checkpoint().unwrap();
            }
        };
        keep(&store, &[(b"Si", Some(b"1")), (b"Sv1", Some(b"one")), (b"other", Some(b"name"))]);
        checkpoint();
        keep(&store, &[(b"Sv1", None), (b"Sv2", Some(b"two"))]);
        keep(&store, &[(b"Si", Some(b"2"))]);
        checkpoint();
        let pair = |key: &[u8], value: &[u8]| -> Pair { (key.to_vec(), value.to_vec()) };
        let want = [pair(b"Si", b"2"), pair(b"Sv2", b"two"), pair(b"other", b"name")];
        assert_eq!(store.config(), want);
        drop(store); // without another checkpoint
        let again = Store::open(disk, OpenOptions::default()).unwrap();
        assert_eq!(again.config(), want, "with checkpoints: {checkpoints}");
        assert_sound(&again);
    }
}
