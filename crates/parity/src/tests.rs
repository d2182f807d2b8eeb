use std::sync::Arc;

use block::{FRAME_BYTES, Frame, FrameMut};
use proptest::prelude::*;

use crate::library::Library;
use crate::{Code, DATA_SHARDS_MAX, LibraryError, ParityError, Stripe, code};

type Shards = Vec<Vec<Frame>>;

fn stripes() -> impl Iterator<Item = Stripe> {
    let all = (1..=DATA_SHARDS_MAX).flat_map(|data| (0..=2).map(move |parity| (data, parity)));
    all.map(|(data, parity)| Stripe::new(data, parity).unwrap())
}

/// Returns the code for such stripes; `None` if it needs the library, and that is not installed.
fn installed(stripe: Stripe) -> Option<Arc<dyn Code>> {
    match code(stripe) {
        Ok(code) => Some(code),
        Err(missing @ LibraryError::Missing { .. }) => {
            eprintln!("{stripe:?} is not tested: {missing}");
            None
        }
        Err(other) => panic!("{other}"),
    }
}

/// Returns all codes that are available on this machine.
fn codes() -> impl Iterator<Item = Arc<dyn Code>> {
    stripes().filter_map(installed)
}

/// Returns pseudo-random bytes that differ from shard to shard.
fn data(stripe: Stripe, frames_each: usize, seed: u64) -> Shards {
    let mut state = seed | 1;
    let mut frame = || {
        let mut frame = FrameMut::stale();
        for word in frame.as_chunks_mut::<8>().0 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *word = state.to_le_bytes();
        }
        frame.freeze()
    };
    (0..stripe.data()).map(|_| (0..frames_each).map(|_| frame()).collect()).collect()
}

fn slices(shards: &Shards) -> Vec<&[Frame]> {
    shards.iter().map(Vec::as_slice).collect()
}

/// Returns all shards of a stripe.
fn whole(code: &dyn Code, frames_each: usize, seed: u64) -> Shards {
    let mut shards = data(code.stripe(), frames_each, seed);
    let parity = code.encode(&slices(&shards)).unwrap();
    shards.extend(parity);
    shards
}

fn without<'a>(shards: &'a Shards, lost: &[usize]) -> Vec<Option<&'a [Frame]>> {
    let left = |(number, shard): (usize, &'a Vec<Frame>)| {
        (!lost.contains(&number)).then_some(shard.as_slice())
    };
    shards.iter().enumerate().map(left).collect()
}

/// Doubles an element, by the definition: a shift, and the polynomial 11Dh if a bit is shifted out.
fn twice(element: u8) -> u8 {
    (element << 1) ^ if element & 0x80 == 0 { 0 } else { 0x1d }
}

/// Returns P and Q of the bytes at one position of the data shards, by the definition: by Horner's
/// rule.
fn p_and_q(data: impl DoubleEndedIterator<Item = u8>) -> (u8, u8) {
    data.rev().fold((0, 0), |(p, q), byte| (p ^ byte, twice(q) ^ byte))
}

/// Computed by hand: 2 * 80h = 1Dh, 2 * FFh = E3h, 4 * FFh = DBh.
#[test]
fn a_vector_computed_by_hand() {
    let Some(code) = installed(Stripe::new(3, 2).unwrap()) else { return };
    let shards: Shards = [0x01, 0x80, 0xff]
        .map(|byte| vec![FrameMut::from_bytes(&[byte; FRAME_BYTES]).freeze()])
        .into();
    let parity = code.encode(&slices(&shards)).unwrap();
    assert!(parity[0][0].iter().all(|byte| *byte == 0x01 ^ 0x80 ^ 0xff));
    assert!(parity[1][0].iter().all(|byte| *byte == 0x01 ^ 0x1d ^ 0xdb));
}

/// Data on devices stays readable only as long as this holds, regardless of the library.
#[test]
fn parity_matches_raid_6() {
    for code in codes() {
        let (stripe, shards) = (code.stripe(), whole(&*code, 2, 7));
        for row in 0..2 {
            for at in 0..FRAME_BYTES {
                let (p, q) = p_and_q(shards[..stripe.data()].iter().map(|data| data[row][at]));
                let found: Vec<u8> =
                    shards[stripe.data()..].iter().map(|parity| parity[row][at]).collect();
                assert_eq!(found, [p, q][..stripe.parity()], "{stripe:?}");
            }
        }
    }
}

#[test]
fn any_shards_that_may_be_lost_are_reconstructed() {
    for code in codes() {
        let stripe = code.stripe();
        let shards = whole(&*code, 2, 11);
        let n = stripe.shards();
        let pairs = (0..n).flat_map(|a| (0..n).map(move |b| [a, b]));
        for pair in pairs.filter(|[a, b]| a <= b) {
            let lost = if pair[0] == pair[1] { &pair[..1] } else { &pair[..] };
            let made = code.reconstruct(&without(&shards, lost), lost);
            if lost.len() > stripe.parity() {
                let left = n - lost.len();
                assert_eq!(made, Err(ParityError::TooFew { needed: stripe.data(), left }));
                continue;
            }
            let expected: Shards = lost.iter().map(|number| shards[*number].clone()).collect();
            assert_eq!(made.unwrap(), expected, "{stripe:?} without {lost:?}");
            // Only one of two, as a read requests.
            let one = code.reconstruct(&without(&shards, lost), &lost[lost.len() - 1..]);
            assert_eq!(one.unwrap(), expected[lost.len() - 1..], "{stripe:?} without {lost:?}");
        }
    }
}

#[test]
fn one_data_shard_has_copies_that_share_its_frames() {
    for parity in 0..=2 {
        let stripe = Stripe::new(1, parity).unwrap();
        let shards = whole(&*code(stripe).unwrap(), 3, 5);
        assert_eq!(shards.len(), 1 + parity);
        for copy in &shards[1..] {
            assert!(copy.iter().zip(&shards[0]).all(|(copy, frame)| copy.is_same(frame)));
        }
    }
}

#[test]
fn a_changed_byte_of_any_shard_is_detected() {
    for code in codes().filter(|code| code.stripe().parity() > 0) {
        let stripe = code.stripe();
        let shards = whole(&*code, 2, 3);
        assert_eq!(code.verify(&slices(&shards)), Ok(true));
        for number in 0..stripe.shards() {
            let mut other = shards.clone();
            let mut frame = FrameMut::from_bytes(&other[number][1][..]);
            frame[FRAME_BYTES - 1] ^= 1;
            other[number][1] = frame.freeze();
            assert_eq!(code.verify(&slices(&other)), Ok(false), "{stripe:?}, shard {number}");
        }
    }
}

#[test]
fn a_missing_library_is_reported_in_one_line_with_its_package() {
    let missing = Library::open(c"libisal-of-nobody.so.2").unwrap_err();
    assert!(matches!(missing, LibraryError::Missing { .. }), "{missing:?}");
    let other = Library::open(c"libc.so.6").unwrap_err();
    assert!(matches!(other, LibraryError::Other { .. }), "{other:?}");
    for (error, named) in [(missing, "libisal-of-nobody.so.2"), (other, "gf_gen_rs_matrix")] {
        let text = error.to_string();
        assert!(text.contains("libisal2") && text.contains(named), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

/// A pool on one device, and mirrors, need nothing to be installed.
#[test]
fn copies_and_data_without_parity_need_no_library() {
    for stripe in stripes().filter(|stripe| stripe.data() == 1 || stripe.parity() == 0) {
        let code = code(stripe).unwrap();
        assert!(format!("{code:?}").starts_with("Copies"), "{code:?}");
    }
}

#[test]
fn impossible_stripes_are_refused() {
    for (data, parity) in [(0, 2), (17, 2), (4, 3), (300, 0)] {
        assert_eq!(Stripe::new(data, parity), Err(ParityError::Stripe { data, parity }));
    }
}

#[test]
fn wrong_numbers_and_lengths_are_refused() {
    for code in codes().filter(|code| code.stripe().parity() > 0) {
        let stripe = code.stripe();
        let shards = whole(&*code, 2, 3);
        let (k, n) = (stripe.data(), stripe.shards());
        let all = slices(&shards);
        let given = |given, expected| Err(ParityError::Shards { expected, given });
        assert_eq!(code.encode(&all[..k - 1]), given(k - 1, k));
        assert_eq!(code.encode(&all[..k + 1]), given(k + 1, k));
        assert_eq!(code.verify(&all[..n - 1]).map(|_| vec![]), given(n - 1, n));
        assert_eq!(code.reconstruct(&without(&shards, &[0])[..n - 1], &[0]), given(n - 1, n));

        let mut short = all.clone();
        short[n - 1] = &shards[n - 1][..1];
        let lengths = ParityError::Lengths { shard: n - 1, frames: 1, expected: 2 };
        assert_eq!(code.verify(&short), Err(lengths));
        if k > 1 {
            let mut short = all[..k].to_vec();
            short[k - 1] = &shards[k - 1][..1];
            let lengths = ParityError::Lengths { shard: k - 1, frames: 1, expected: 2 };
            assert_eq!(code.encode(&short), Err(lengths));
            let mut left = without(&shards, &[0]);
            left[n - 1] = Some(&shards[n - 1][..1]);
            let lengths = ParityError::Lengths { shard: n - 1, frames: 1, expected: 2 };
            assert_eq!(code.reconstruct(&left, &[0]), Err(lengths));
        }
        let there = code.reconstruct(&without(&shards, &[0]), &[n - 1]);
        assert_eq!(there, Err(ParityError::NotLost(n - 1)));
        assert_eq!(code.reconstruct(&without(&shards, &[0]), &[n]), Err(ParityError::NotLost(n)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// For any content, including frames of zeros that are in several shards.
    #[test]
    fn any_content_is_reconstructed(
        (k, p) in (1..=DATA_SHARDS_MAX, 0..=2usize),
        frames_each in 0..5usize,
        seed: u64,
        zeros: u64,
        lost in prop::collection::hash_set(0..18usize, 0..=2),
    ) {
        let stripe = Stripe::new(k, p).unwrap();
        let Some(code) = installed(stripe) else { return Ok(()) };
        let mut shards = data(stripe, frames_each, seed);
        for (index, frame) in shards.iter_mut().flatten().enumerate() {
            if zeros >> (index % 64) & 1 == 1 {
                *frame = Frame::zeros();
            }
        }
        let parity = code.encode(&slices(&shards)).unwrap();
        shards.extend(parity);
        prop_assert!(code.verify(&slices(&shards)).unwrap());
        let lost: Vec<usize> = lost.into_iter().filter(|n| *n < stripe.shards()).take(p).collect();
        let made = code.reconstruct(&without(&shards, &lost), &lost).unwrap();
        let expected: Shards = lost.iter().map(|number| shards[*number].clone()).collect();
        prop_assert_eq!(made, expected);
    }
}
