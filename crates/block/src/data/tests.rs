//! Cutting and joining data keeps its bytes.

use super::*;

#[test]
fn data_out_keeps_bytes_at_any_phase() {
    let bytes: Vec<u8> = (0..10_000u32).map(|n| n as u8).collect();
    for phase in [0, 512, 3584] {
        let data = DataOut::from_bytes(&bytes, phase);
        assert_eq!(data.to_vec(), bytes);
        assert_eq!(data.slices().flatten().copied().collect::<Vec<_>>(), bytes);
        let part = DataOut::from_bytes(&bytes, phase).split(512, 9_000, 0);
        assert_eq!(part.to_vec(), bytes[512..9_512]);
        let aligned = (FRAME_BYTES - phase) % FRAME_BYTES;
        let part = DataOut::from_bytes(&bytes, phase).split(aligned, 5_000, 0);
        assert_eq!(part.to_vec(), bytes[aligned..aligned + 5_000]);
    }
}

#[test]
fn slices_mut_cover_exactly_the_range() {
    let mut data = DataOut::from_bytes(&[1; 9_000], 1_000);
    for piece in data.slices_mut(3_000, 5_000) {
        piece.fill(2);
    }
    let bytes = data.to_vec();
    assert!(bytes[..3_000].iter().all(|&b| b == 1));
    assert!(bytes[3_000..8_000].iter().all(|&b| b == 2));
    assert!(bytes[8_000..].iter().all(|&b| b == 1));
    assert_eq!(data.slices_mut(0, 0).count(), 0);
}

#[test]
fn data_out_is_taken_from_the_front_between_frames() {
    let bytes: Vec<u8> = (0..20_000u32).map(|n| (n / 3) as u8).collect();
    for phase in [0, 512, 3584] {
        let mut data = DataOut::from_bytes(&bytes, phase);
        let len = 2 * FRAME_BYTES - phase;
        let front = data.take_front(len);
        assert_eq!((front.phase(), data.phase()), (phase, 0));
        assert_eq!(front.to_vec(), bytes[..len]);
        assert_eq!(data.to_vec(), bytes[len..]);
        let rest = data.take_front(data.len());
        assert_eq!(rest.to_vec(), bytes[len..]);
        assert!(data.is_empty());
        assert_eq!(data.take_front(0).len(), 0);
    }
}

#[test]
#[should_panic(expected = "between frames")]
fn data_out_is_not_cut_inside_a_frame() {
    DataOut::new(10_000, 512).take_front(4096);
}

#[test]
fn data_in_is_joined() {
    let bytes: Vec<u8> = (0..9_000u32).map(|n| (n / 5) as u8).collect();
    let mut data = DataIn::from_bytes(&bytes[..4_500]);
    data.append(DataIn::from_bytes(&bytes[4_500..]));
    data.append(DataIn::empty());
    assert_eq!((data.len(), data.to_vec()), (9_000, bytes));
}

#[test]
fn data_in_splits_and_truncates() {
    let bytes: Vec<u8> = (0..9_000u32).map(|n| (n / 7) as u8).collect();
    let mut data = DataIn::from_bytes(&bytes);
    let front = data.split_front(5_000);
    assert_eq!(front.to_vec(), bytes[..5_000]);
    assert_eq!(data.to_vec(), bytes[5_000..]);
    data.truncate(100);
    assert_eq!(data.to_vec(), bytes[5_000..5_100]);
    assert_eq!(data.len(), 100);
    data.truncate(0);
    assert!(data.is_empty() && data.pieces().is_empty());
}
