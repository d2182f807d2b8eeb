//! The data that a host sends ([`DataOut`]) and receives ([`DataIn`]), as runs of frames.

use smallvec::SmallVec;

use crate::frame::{FRAME_BYTES, Frame, FrameMut};

/// The most pieces of a reply that are stored inline. A block of 4 KiB has at most two.
const FEW_PIECES: usize = 2;

/// Data from a host, received straight into frames.
///
/// The frames are aligned with the *volume's* blocks: byte 0 of the data is at offset `phase` of
/// the first frame. A write to LBA 3 of a 512e volume has phase 1536, so the store can take each
/// frame as a block, and only has to fill the edges.
#[derive(Debug, Default)]
pub struct DataOut {
    frames: Vec<FrameMut>,
    phase: usize,
    len: usize,
}

impl DataOut {
    /// Returns room for `len` bytes, with the first one at offset `phase` (0..4096) of the first
    /// frame. The bytes are stale until they are written.
    pub fn new(len: usize, phase: usize) -> Self {
        assert!(phase < FRAME_BYTES);
        let count = if len == 0 { 0 } else { (phase + len).div_ceil(FRAME_BYTES) };
        Self { frames: (0..count).map(|_| FrameMut::stale()).collect(), phase, len }
    }

    /// Returns a copy of `bytes`, aligned at `phase`.
    pub fn from_bytes(bytes: &[u8], phase: usize) -> Self {
        let mut data = Self::new(bytes.len(), phase);
        data.write_at(0, bytes);
        data
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the offset of the data in its first frame.
    pub fn phase(&self) -> usize {
        self.phase
    }

    /// Returns the longest run of bytes from `offset` that is contiguous in memory; empty at the
    /// end.
    pub fn slice_from(&self, offset: usize) -> &[u8] {
        if offset >= self.len {
            return &[];
        }
        let at = self.phase + offset;
        let start = at % FRAME_BYTES;
        let end = (start + self.len - offset).min(FRAME_BYTES);
        &self.frames[at / FRAME_BYTES][start..end]
    }

    /// Returns the mutable form of [`DataOut::slice_from`].
    pub fn slice_from_mut(&mut self, offset: usize) -> &mut [u8] {
        if offset >= self.len {
            return &mut [];
        }
        let at = self.phase + offset;
        let start = at % FRAME_BYTES;
        let end = (start + self.len - offset).min(FRAME_BYTES);
        &mut self.frames[at / FRAME_BYTES][start..end]
    }

    /// Returns all of `offset..offset + len` as mutable pieces (for a vectored read).
    ///
    /// # Panics
    /// If the range exceeds the data.
    pub fn slices_mut(&mut self, offset: usize, len: usize) -> impl Iterator<Item = &mut [u8]> {
        assert!(offset + len <= self.len);
        let start = self.phase + offset;
        let end = start + len;
        let first = if len == 0 { self.frames.len() } else { start / FRAME_BYTES };
        self.frames.iter_mut().enumerate().skip(first).map_while(move |(index, frame)| {
            let base = index * FRAME_BYTES;
            if base >= end {
                return None;
            }
            Some(&mut frame[start.max(base) - base..end.min(base + FRAME_BYTES) - base])
        })
    }

    /// Returns the bytes in pieces, in order.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        let end = self.phase + self.len;
        self.frames.iter().enumerate().map(move |(index, frame)| {
            let base = index * FRAME_BYTES;
            &frame[self.phase.max(base) - base..end.min(base + FRAME_BYTES) - base]
        })
    }

    /// Copies `bytes` into the data at `offset`.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn write_at(&mut self, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= self.len);
        let mut done = 0;
        while done < bytes.len() {
            let room = self.slice_from_mut(offset + done);
            let n = room.len().min(bytes.len() - done);
            room[..n].copy_from_slice(&bytes[done..done + n]);
            done += n;
        }
    }

    /// Copies `out.len()` bytes from `offset` into `out`.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn read_at(&self, offset: usize, out: &mut [u8]) {
        assert!(offset + out.len() <= self.len);
        let mut done = 0;
        while done < out.len() {
            let piece = self.slice_from(offset + done);
            let n = piece.len().min(out.len() - done);
            out[done..done + n].copy_from_slice(&piece[..n]);
            done += n;
        }
    }

    /// Returns a contiguous copy, for parameter lists. Not for data.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![0; self.len];
        self.read_at(0, &mut out);
        out
    }

    /// Returns `len` bytes from `offset` as separate data, aligned at `phase`. Copies nothing if
    /// the range starts and ends at frame boundaries and the alignment stays the same.
    pub fn split(mut self, offset: usize, len: usize, phase: usize) -> DataOut {
        assert!(offset + len <= self.len);
        if len > 0 && (self.phase + offset) % FRAME_BYTES == phase {
            let first = (self.phase + offset) / FRAME_BYTES;
            let count = (phase + len).div_ceil(FRAME_BYTES);
            self.frames.truncate(first + count);
            self.frames.drain(..first);
            return DataOut { frames: self.frames, phase, len };
        }
        self.copy(offset, len, phase)
    }

    /// Returns a copy of `len` bytes from `offset`, aligned at `phase`.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn copy(&self, offset: usize, len: usize, phase: usize) -> DataOut {
        let mut out = DataOut::new(len, phase);
        let mut done = 0;
        while done < len {
            let room = out.slice_from_mut(done);
            let n = room.len();
            self.read_at(offset + done, room);
            done += n;
        }
        out
    }

    /// Splits off the first `len` bytes; the rest stays. Moves frames, and copies nothing.
    ///
    /// # Panics
    /// If there are fewer, or if the cut is inside a frame and not at the end of the data.
    pub fn take_front(&mut self, len: usize) -> DataOut {
        assert!(len <= self.len);
        if len == self.len {
            let phase = std::mem::take(&mut self.phase);
            let frames = std::mem::take(&mut self.frames);
            return DataOut { frames, phase, len: std::mem::take(&mut self.len) };
        }
        let end = self.phase + len;
        assert!(end.is_multiple_of(FRAME_BYTES), "data can be cut only between frames");
        let frames = self.frames.drain(..end / FRAME_BYTES).collect();
        self.len -= len;
        DataOut { frames, phase: std::mem::take(&mut self.phase), len }
    }

    /// Returns the frames, the phase and the length. In the first and the last frame the bytes
    /// outside the data are stale.
    pub fn into_frames(self) -> (Vec<FrameMut>, usize, usize) {
        (self.frames, self.phase, self.len)
    }
}

/// A run of bytes in one frame.
#[derive(Clone, Debug)]
pub struct FrameSlice {
    frame: Frame,
    start: u16,
    len: u16,
}

impl FrameSlice {
    /// Returns the `len` bytes from `start`.
    ///
    /// # Panics
    /// If they exceed the frame.
    pub fn new(frame: Frame, start: usize, len: usize) -> Self {
        assert!(start + len <= FRAME_BYTES);
        Self { frame, start: start as u16, len: len as u16 }
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        let start = usize::from(self.start);
        &self.frame[start..start + usize::from(self.len)]
    }
}

/// Data for a host, gathered from shared frames.
#[derive(Clone, Debug, Default)]
pub struct DataIn {
    pieces: SmallVec<[FrameSlice; FEW_PIECES]>,
    len: usize,
}

impl DataIn {
    /// Returns data without bytes.
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns a copy of `bytes`, for parameter data.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut data = Self::default();
        for piece in bytes.chunks(FRAME_BYTES) {
            data.push(FrameSlice::new(FrameMut::from_bytes(piece).freeze(), 0, piece.len()));
        }
        data
    }

    /// Returns `len` bytes of consecutive frames, from offset `phase` of the first.
    ///
    /// # Panics
    /// If the frames hold fewer.
    pub fn from_frames(frames: impl IntoIterator<Item = Frame>, phase: usize, len: usize) -> Self {
        let mut data = Self::default();
        data.pieces.reserve((phase + len).div_ceil(FRAME_BYTES));
        let mut start = phase;
        for frame in frames {
            let n = (FRAME_BYTES - start).min(len - data.len);
            data.push(FrameSlice::new(frame, start, n));
            start = 0;
            if data.len == len {
                break;
            }
        }
        assert_eq!(data.len, len, "the frames hold fewer bytes than requested");
        data
    }

    /// Adds a piece at the end.
    pub fn push(&mut self, piece: FrameSlice) {
        if piece.len > 0 {
            self.len += usize::from(piece.len);
            self.pieces.push(piece);
        }
    }

    /// Appends other data; the frames are shared, not copied.
    pub fn append(&mut self, mut other: DataIn) {
        self.pieces.append(&mut other.pieces);
        self.len += other.len;
    }

    /// Returns the number of bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Drops everything after the first `len` bytes (the allocation length).
    pub fn truncate(&mut self, len: usize) {
        let mut kept = 0;
        for index in 0..self.pieces.len() {
            if kept == len {
                self.pieces.truncate(index);
                break;
            }
            let piece = &mut self.pieces[index];
            let n = usize::from(piece.len).min(len - kept);
            piece.len = n as u16;
            kept += n;
        }
        self.len = self.len.min(len);
    }

    /// Returns the bytes in pieces, in order.
    pub fn slices(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(FrameSlice::bytes)
    }

    /// Returns the pieces, in order.
    pub fn pieces(&self) -> &[FrameSlice] {
        &self.pieces
    }

    /// Splits off the first `len` bytes; the rest stays. Shares the frames.
    pub fn split_front(&mut self, len: usize) -> DataIn {
        let len = len.min(self.len);
        let mut front = DataIn::default();
        let mut whole = 0;
        while front.len < len {
            let piece = &mut self.pieces[whole];
            let n = usize::from(piece.len).min(len - front.len);
            let taken =
                FrameSlice { frame: piece.frame.clone(), start: piece.start, len: n as u16 };
            piece.start += n as u16;
            piece.len -= n as u16;
            if piece.len == 0 {
                whole += 1;
            }
            front.push(taken);
        }
        self.pieces.drain(..whole);
        self.len -= len;
        front
    }

    /// Returns a contiguous copy.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.len);
        self.slices().for_each(|slice| out.extend_from_slice(slice));
        out
    }
}

#[cfg(test)]
mod tests;
