//! Compressed groups one after the other, in the blocks that they are written in.

use block::{FRAME_BYTES, Frame, FrameMut};

/// Bytes that are gathered in blocks.
#[derive(Debug, Default)]
pub(crate) struct PackedBlocks {
    frames: Vec<FrameMut>,
    len_bytes: usize,
}

impl PackedBlocks {
    /// How much was gathered.
    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Adds these behind all others.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let at = self.len_bytes % FRAME_BYTES;
            if at == 0 {
                self.frames.push(FrameMut::stale());
            }
            let (now, later) = bytes.split_at(bytes.len().min(FRAME_BYTES - at));
            if let Some(last) = self.frames.last_mut() {
                last[at..at + now.len()].copy_from_slice(now);
            }
            self.len_bytes += now.len();
            bytes = later;
        }
    }

    /// Ends the gathering: the blocks, the last one filled up with zeros.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Frame> + '_ {
        let end = self.len_bytes % FRAME_BYTES;
        if let Some(last) = self.frames.last_mut().filter(|_| end > 0) {
            last[end..].fill(0);
        }
        self.len_bytes = 0;
        self.frames.drain(..).map(FrameMut::freeze)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gathered_is_in_order_and_ends_in_zeros() {
        let bytes: Vec<u8> = (0..10_000_u32).map(|at| (at % 251) as u8 + 1).collect();
        for ends in [&[10_000][..], &[64, 4096, 4160, 9_000, 10_000], &[4096, 8192]] {
            // Of what was there before nothing is seen.
            drop(FrameMut::from_bytes(&[0xff; FRAME_BYTES]));
            let (mut packed, mut start) = (PackedBlocks::default(), 0);
            for end in ends {
                packed.push(&bytes[start..*end]);
                start = *end;
            }
            assert_eq!(packed.len_bytes(), start);
            let mut expected = bytes[..start].to_vec();
            expected.resize(start.next_multiple_of(FRAME_BYTES), 0);
            let found: Vec<u8> = packed.take().flat_map(|frame| frame.to_vec()).collect();
            assert!(found == expected, "{ends:?}");
            assert_eq!((packed.len_bytes(), packed.take().count()), (0, 0));
        }
    }
}
