//! Converts bytes to PDUs and back, with their digests.

use crate::options::Terms;
use crate::pdu::{BHS_BYTES, Bhs, digest, padding};
use crate::violation::Violation;

/// Received bytes that were not processed.
#[derive(Debug, Default)]
pub(crate) struct Incoming {
    bytes: Vec<u8>,
    /// The number of them that were taken.
    at: usize,
}

impl Incoming {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.at));
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the next PDU, if it is complete.
    pub(crate) fn next(
        &mut self,
        terms: &Terms,
        declared: usize,
    ) -> Result<Option<(Bhs, Vec<u8>)>, Violation> {
        let bytes = &self.bytes[self.at..];
        let Some(header) = bytes.first_chunk::<BHS_BYTES>() else { return Ok(None) };
        let bhs = Bhs(*header);
        let mut at = BHS_BYTES;
        if terms.header_digest {
            // The header is valid only after its digest was checked. A target sends no additional
            // header segments.
            let Some(sum) = bytes.get(at..at + 4) else { return Ok(None) };
            if sum != digest(header) {
                return Err(Violation::HeaderDigest);
            }
            at += 4;
        }
        if bhs.ahs_bytes() != 0 {
            return Err(Violation::field(bhs.opcode(), "additional header segments", "11.2.2"));
        }
        let data_bytes = bhs.data_bytes();
        if data_bytes > declared {
            return Err(Violation::SegmentTooLong { bytes: data_bytes, declared });
        }
        let padded = data_bytes + padding(data_bytes);
        let sum_bytes = if terms.data_digest && data_bytes > 0 { 4 } else { 0 };
        let Some(rest) = bytes.get(at..at + padded + sum_bytes) else { return Ok(None) };
        let (data, sum) = rest.split_at(padded);
        if sum_bytes > 0 && sum != digest(data) {
            return Err(Violation::DataDigest);
        }
        let data = data[..data_bytes].to_vec();
        self.at += at + padded + sum_bytes;
        Ok(Some((bhs, data)))
    }
}

/// Bytes to be sent.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    /// The number of `bytes` that were taken.
    at: usize,
    /// The total number taken.
    taken: u64,
}

impl Outgoing {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    pub(crate) fn take(&mut self, bytes: usize) {
        assert!(bytes <= self.bytes.len() - self.at, "more bytes were taken than queued");
        self.at += bytes;
        self.taken += bytes as u64;
        if self.at == self.bytes.len() {
            self.bytes.clear();
            self.at = 0;
        }
    }

    /// Returns the position in the stream: the number of bytes taken since it began.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Returns the position of the end of the queued stream.
    pub(crate) fn end(&self) -> u64 {
        self.taken + self.bytes().len() as u64
    }

    /// Queues a PDU; sets its lengths.
    pub(crate) fn push(&mut self, terms: &Terms, mut bhs: Bhs, ahs: &[u8], data: &[u8]) {
        bhs.0[4] = (ahs.len() / 4) as u8;
        bhs.put_data_bytes(data.len());
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&bhs.0);
        self.bytes.extend_from_slice(ahs);
        if terms.header_digest {
            let sum = digest(&self.bytes[start..]);
            self.bytes.extend_from_slice(&sum);
        }
        if data.is_empty() {
            return;
        }
        let start = self.bytes.len();
        self.bytes.extend_from_slice(data);
        self.bytes.resize(start + data.len() + padding(data.len()), 0);
        if terms.data_digest {
            let sum = digest(&self.bytes[start..]);
            self.bytes.extend_from_slice(&sum);
        }
    }
}
