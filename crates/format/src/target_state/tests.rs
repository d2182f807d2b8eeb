//! Encoding and decoding the target's state, and invalid bytes.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use block::SectorRange;

use super::tokens::*;
use super::*;

fn nexus() -> impl Strategy<Value = NexusName> {
    let fields = (any::<u16>(), any::<[u8; 16]>(), "[a-z0-9.:-]{0,255}");
    fields.prop_map(|(target_port, id, host)| NexusName { target_port, id, host })
}

fn registrations() -> impl Strategy<Value = Vec<Registration>> {
    let one = (nexus(), any::<u64>()).prop_map(|(nexus, key)| Registration { nexus, key });
    // A few are generated, and repeated: what matters is their number.
    (vec(one, 1..4), 0..=REGISTRATIONS_MAX)
        .prop_map(|(some, count)| some.iter().cycle().take(count).cloned().collect())
}

prop_compose! {
    fn state()(
        incarnation: u64,
        aptpl: bool,
        generation: u32,
        events: [u32; EVENTS],
        type_code in option::of(1..=u8::MAX),
        holder: u16,
        exclusive in option::of(nexus()),
        access in vec((any::<u16>(), any::<u8>()), 0..=ACCESS_STATES_MAX),
        registrations in registrations(),
    ) -> HostState {
        let count = registrations.len() as u16;
        let holder = (count > 0).then(|| holder % count);
        HostState {
            incarnation, aptpl, generation, events, type_code, holder, exclusive, access,
            registrations,
        }
    }
}

fn decode(parts: &[Vec<u8>]) -> Result<HostState, FormatError> {
    HostState::decode(parts.iter().map(|part| &part[..]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_state_survives_and_each_part_fits_a_value(state in state()) {
        let parts = state.encode();
        prop_assert_eq!(parts.len(), usize::from(state.part_count()));
        let most = crate::entry::CONFIG_VALUE_BYTES_MAX;
        prop_assert!(parts.iter().all(|part| part.len() <= most));
        prop_assert_eq!(decode(&parts), Ok(state));
    }

    #[test]
    fn a_part_too_few_too_many_or_of_another_state_is_refused(state in state(), at: u16) {
        let parts = state.encode();
        let mut other = state.clone();
        other.generation = other.generation.wrapping_add(1);
        let mut mixed = parts.clone();
        mixed.push(parts[parts.len() - 1].clone());
        prop_assert!(decode(&mixed).is_err());
        prop_assert!(decode(&parts[1..]).is_err());
        prop_assert!(decode(&parts[..parts.len() - 1]).is_err());
        if parts.len() > 1 {
            let at = usize::from(at) % parts.len();
            let mut mixed = parts.clone();
            mixed[at] = other.encode()[at].clone();
            prop_assert!(decode(&mixed).is_err());
        }
    }

    #[test]
    fn truncated_state_is_refused(state in state(), at: usize) {
        let mut parts = state.encode();
        let last = parts.len() - 1;
        let length = parts[last].len();
        parts[last].truncate(at % length);
        prop_assert!(decode(&parts).is_err());
    }

    /// Bytes that decode are encoded as the same bytes: nothing is guessed.
    #[test]
    fn changed_bytes_are_refused_or_encode_to_themselves(
        state in state(),
        bends in vec(any::<(u16, u8)>(), 1..4),
    ) {
        let mut parts = state.encode();
        for (at, bits) in bends {
            let length = parts[0].len();
            parts[0][usize::from(at) % length] ^= bits;
        }
        if let Ok(state) = decode(&parts) && state.type_code != Some(0) {
            prop_assert_eq!(state.encode(), parts);
        }
    }

    #[test]
    fn random_bytes_never_panic(
        parts in vec(vec(any::<u8>(), 0..200), 0..4),
        key in vec(any::<u8>(), 0..20),
    ) {
        let _ = decode(&parts);
        let mut versioned = parts.clone();
        versioned.iter_mut().filter(|part| part.len() > 1).for_each(|part| part[..2].fill(1));
        let _ = decode(&versioned);
        for part in &parts {
            let _ = decode_incarnation(part);
        }
        if let Ok(found) = StateKey::decode(&key) {
            prop_assert_eq!(found.encode(), key);
        }
    }
}

#[test]
fn golden_bytes_of_a_volume() {
    let name = |host: &str| NexusName { target_port: 2, id: [7; 16], host: host.into() };
    let state = HostState {
        incarnation: 3,
        aptpl: true,
        generation: 0x0405,
        events: [0, 0, 6, 0],
        type_code: Some(5),
        holder: Some(0),
        exclusive: None,
        access: vec![(1, 2)],
        registrations: vec![Registration { nexus: name("ab"), key: 0x0809 }],
    };
    let mut want = vec![1, 1, 1, 0, 3, 0, 0, 0, 0, 0, 0, 0, 5, 4, 0, 0];
    want.extend([0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 1, 0, 1, 0]);
    want.extend([1, 0, 2, 2, 0]);
    want.extend([7; 16]);
    want.extend([2, b'a', b'b', 9, 8, 0, 0, 0, 0, 0, 0]);
    assert_eq!(state.encode(), [want]);
    let state = HostState { exclusive: Some(name("c")), ..HostState::default() };
    let mut want = vec![1, 2, 1, 0];
    want.resize(39, 0);
    want[33..35].fill(0xff);
    want.extend([2, 0]);
    want.extend([7; 16]);
    want.extend([1, b'c']);
    assert_eq!(state.encode(), [want]);
}

#[test]
fn keys_and_incarnations_survive() {
    let volume = StateKey::Volume { volume: VolumeId(0x0102), part: 3 };
    assert_eq!(volume.encode(), *b"Sv\0\0\0\0\0\0\x01\x02\0\x03");
    for key in [StateKey::Incarnation, volume] {
        assert_eq!(StateKey::decode(&key.encode()), Ok(key));
        let mut longer = key.encode();
        longer.push(0);
        assert!(StateKey::decode(&longer).is_err());
    }
    for unknown in [&b"S"[..], b"Sx", b"v\0\0\0\0\0\0\0\x01\0\0", b""] {
        assert!(StateKey::decode(unknown).is_err(), "{unknown:?}");
    }
    let value = encode_incarnation(0x0a0b);
    assert_eq!(value, [1, 0x0b, 0x0a, 0, 0, 0, 0, 0, 0]);
    assert_eq!(decode_incarnation(&value), Ok(0x0a0b));
    assert!(decode_incarnation(&[2, 0, 0, 0, 0, 0, 0, 0, 0]).is_err(), "another version");
    assert!(decode_incarnation(&value[..8]).is_err());
}

#[test]
fn an_entry_of_another_key_is_refused() {
    let entry = crate::Entry::TargetState { key: b"v".to_vec(), value: None };
    let mut bytes = Vec::new();
    entry.encode(&mut bytes);
    assert!(crate::Entry::decode(&mut Reader::new(&bytes)).is_err());
}

prop_compose! {
    fn token()(
        incarnation: u64,
        source: u64,
        inactivity_s: u32,
        token in vec(any::<u8>(), TOKEN_BYTES),
        initiator in "[a-z0-9.:-]{0,255}",
        pieces in vec((any::<u64>(), any::<u64>()), 0..=TOKEN_PIECES_MAX),
    ) -> StoredToken {
        StoredToken {
            incarnation,
            source: VolumeId(source),
            inactivity_s,
            token: token.try_into().unwrap(),
            initiator,
            pieces: pieces.into_iter().map(|(at, count)| SectorRange::new(at, count)).collect(),
        }
    }
}

proptest! {
    #[test]
    fn a_token_survives_and_a_part_of_it_is_refused(token in token(), cut: prop::sample::Index) {
        let value = token.encode();
        prop_assert!(value.len() <= crate::entry::CONFIG_VALUE_BYTES_MAX);
        prop_assert_eq!(StoredToken::decode(&value), Ok(token));
        prop_assert!(StoredToken::decode(&value[..cut.index(value.len())]).is_err());
        prop_assert!(StoredToken::decode(&[&value[..], &[0]].concat()).is_err());
    }

    #[test]
    fn the_token_maker_round_trips(incarnation: u64, key: [u8; 32], next_id: u64, id: u64) {
        let maker = StoredTokenMaker { incarnation, key, next_id };
        prop_assert_eq!(StoredTokenMaker::decode(&maker.encode()), Ok(maker));
        for key in [StateKey::TokenMaker, StateKey::Token(id)] {
            prop_assert_eq!(StateKey::decode(&key.encode()), Ok(key));
        }
    }

    #[test]
    fn any_bytes_for_a_token_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..700)) {
        let bytes = [&[1][..], &bytes].concat();
        let _ = (StoredToken::decode(&bytes), StoredTokenMaker::decode(&bytes));
    }
}
