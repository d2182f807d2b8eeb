//! Compressed groups one after the other, in the blocks in which they are written.

use block::{FRAME_BYTES, Frame, FrameMut};

/// Bytes collected in blocks.
#[derive(Debug, Default)]
pub(crate) struct PackedBlocks {
    frames: Vec<FrameMut>,
    len_bytes: usize,
}

impl PackedBlocks {
    /// Returns the number of collected bytes.
    pub(crate) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Appends bytes.
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

    /// Moves the collected bytes apart, so that each piece begins at its given offset, with zeros
    /// in between. A piece is given by its offset and its length.
    pub(crate) fn spread(&mut self, pieces: impl Iterator<Item = (usize, usize)>) {
        let (before, mut from) = (std::mem::take(self), 0);
        for (start, len_bytes) in pieces {
            debug_assert!(start >= self.len_bytes, "pieces are in order");
            let zeros = [0; FRAME_BYTES];
            while self.len_bytes < start {
                self.push(&zeros[..(start - self.len_bytes).min(FRAME_BYTES)]);
            }
            let end = from + len_bytes;
            while from < end {
                let at = from % FRAME_BYTES;
                let bytes = (end - from).min(FRAME_BYTES - at);
                self.push(&before.frames[from / FRAME_BYTES][at..at + bytes]);
                from += bytes;
            }
        }
        debug_assert_eq!(from, before.len_bytes, "everything was moved");
    }

    /// Ends collecting: returns the blocks, the last one padded with zeros.
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
    fn moved_pieces_are_separated_by_zeros() {
        let mut packed = PackedBlocks::default();
        let piece = |byte: u8, len_bytes: usize| vec![byte; len_bytes];
        packed.push(&[piece(1, 100), piece(2, 5000), piece(3, 7)].concat());
        packed.spread([(0, 100), (4096, 5000), (9100, 7)].into_iter());
        let found: Vec<u8> = packed.take().flat_map(|frame| frame.to_vec()).collect();
        let mut expected = [piece(1, 100), piece(0, 3996), piece(2, 5000), piece(0, 4)].concat();
        expected.extend(piece(3, 7));
        expected.resize(3 * FRAME_BYTES, 0);
        assert!(found == expected);
    }

    #[test]
    fn gathered_pieces_are_in_order_and_end_in_zeros() {
        let bytes: Vec<u8> = (0..10_000_u32).map(|at| (at % 251) as u8 + 1).collect();
        for ends in [&[10_000][..], &[64, 4096, 4160, 9_000, 10_000], &[4096, 8192]] {
            // Previous content of the memory does not show.
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
