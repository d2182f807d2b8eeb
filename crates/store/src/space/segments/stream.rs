//! The segment table in a stream, as each checkpoint writes it in a pool that does not have it in
//! pages.

use format::segment_row::SHORT_SEGMENT_ROW_BYTES;
use format::{FormatVersion, Geometry, SegmentRow, SegmentState};

use super::Segments;
use crate::StoreError;

impl Segments {
    /// Decodes the table that a checkpoint has in a stream.
    pub(crate) fn decode(
        geometry: Geometry,
        version: FormatVersion,
        bytes: &[u8],
    ) -> Result<Self, StoreError> {
        let mut segments = Self::new(geometry, version);
        segments.is_in_stream = true;
        if bytes.len() != segments.rows.len() * SHORT_SEGMENT_ROW_BYTES {
            return Err(StoreError::Damaged("the segment table has a wrong length".into()));
        }
        for (index, raw) in bytes.chunks_exact(SHORT_SEGMENT_ROW_BYTES).enumerate() {
            let row = SegmentRow::decode_short(raw)
                .ok_or_else(|| StoreError::Damaged("an invalid segment row".into()))?;
            segments.read(geometry, index as u32, row)?;
        }
        Ok(segments)
    }

    /// Sets a row as read from a checkpoint.
    pub(crate) fn read(
        &mut self,
        geometry: Geometry,
        segment: u32,
        row: SegmentRow,
    ) -> Result<(), StoreError> {
        if u64::from(row.live_units) * format::PLACE_UNIT_BYTES > geometry.segment_bytes() {
            return Err(StoreError::Damaged(format!(
                "segment {segment} counts more than it holds"
            )));
        }
        if row.state != SegmentState::Free {
            self.free.remove(segment);
        }
        self.set_row(segment, row);
        Ok(())
    }

    /// Encodes the table for a stream; empty if it is in pages.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.encoded_bytes());
        if self.pages.is_none() {
            self.rows.iter().for_each(|row| out.extend_from_slice(&row.encode_short()));
        }
        out
    }

    /// Returns the size of that.
    pub(crate) fn encoded_bytes(&self) -> usize {
        if self.pages.is_some() { 0 } else { self.rows.len() * SHORT_SEGMENT_ROW_BYTES }
    }

    /// Returns whether the last checkpoint has the rows in a stream.
    pub(crate) fn is_in_stream(&self) -> bool {
        self.is_in_stream
    }

    /// Returns the size of the stream, if checkpoints are to write the rows in pages and none has
    /// yet.
    pub(crate) fn to_be_divided_bytes(&self) -> Option<usize> {
        let is_to_be = self.is_in_stream && self.pages.is_some();
        is_to_be.then_some(self.rows.len() * SHORT_SEGMENT_ROW_BYTES)
    }

    /// Records that a checkpoint is on the medium.
    pub(crate) fn written(&mut self) {
        self.is_in_stream = self.pages.is_none();
    }
}
