//! The class of a block, determined before it costs space: zeros, a repeated pattern, or data with
//! a fingerprint.

use block::{FRAME_BYTES, Frame};
use format::{ChunkId, Fingerprint, Keys, MapEntry};

/// The class of a block, as determined by the front end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Zeros or 32 bits that repeat: the map entry has everything.
    Uniform(MapEntry),
    /// Anything else.
    Data(Fingerprint),
    /// Data that a chunk already has, as compared byte for byte.
    Known(Fingerprint, ChunkId),
    /// Data that an earlier block of the same step has: its index in the step.
    Twin(Fingerprint, usize),
}

impl Class {
    /// Returns the fingerprint of data that is to be stored.
    pub(crate) fn fingerprint(&self) -> Option<Fingerprint> {
        match self {
            Self::Data(fingerprint) => Some(*fingerprint),
            _ => None,
        }
    }
}

/// Returns the map entry of a block that consists of the same 32 bits.
pub(crate) fn uniform_entry(frame: &Frame) -> Option<MapEntry> {
    // A block that equals itself shifted by four bytes repeats its first four. Most blocks differ
    // at once.
    if frame[..FRAME_BYTES - 4] != frame[4..] {
        return None;
    }
    let bits = u32::from_le_bytes([frame[0], frame[1], frame[2], frame[3]]);
    Some(if bits == 0 { MapEntry::Zero } else { MapEntry::Pattern(bits) })
}

/// Determines the class of a block.
pub(crate) fn classify(keys: &Keys, frame: &Frame) -> Class {
    match uniform_entry(frame) {
        Some(entry) => Class::Uniform(entry),
        None => Class::Data(keys.fingerprint(&frame[..])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::FrameMut;

    #[test]
    fn only_zeros_and_patterns_are_detected() {
        assert_eq!(uniform_entry(&Frame::zeros()), Some(MapEntry::Zero));
        let mut frame = FrameMut::zeroed();
        frame.chunks_exact_mut(4).for_each(|word| word.copy_from_slice(&[1, 2, 3, 4]));
        let pattern = frame.freeze();
        assert_eq!(uniform_entry(&pattern), Some(MapEntry::Pattern(0x0403_0201)));
        for at in [0, 1, 2048, 4095] {
            let mut frame = FrameMut::from_bytes(&pattern[..]);
            frame[at] ^= 1;
            assert_eq!(uniform_entry(&frame.freeze()), None, "byte {at}");
        }
    }
}
