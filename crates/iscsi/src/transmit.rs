//! PDUs in, bytes out: the output queue, which does not copy data.

use std::collections::VecDeque;
use std::io::IoSlice;

use block::DataIn;

use crate::digest;
use crate::pdu::{BHS_BYTES, Bhs, padding};

/// The most slices of one write.
const SLICES_MAX: usize = 512;

/// The data segment of a response.
pub(crate) enum OutData {
    None,
    Bytes(Vec<u8>),
    Data(DataIn),
}

impl OutData {
    fn len(&self) -> usize {
        match self {
            Self::None => 0,
            Self::Bytes(bytes) => bytes.len(),
            Self::Data(data) => data.len(),
        }
    }
}

/// A queued PDU: the header with its digest, the data, padding and data digest.
struct OutPdu {
    header: [u8; BHS_BYTES + 4],
    header_bytes: u8,
    tail: [u8; 8],
    tail_bytes: u8,
    data: OutData,
    bytes: usize,
}

/// The sending side.
#[derive(Default)]
pub(crate) struct Transmit {
    queue: VecDeque<OutPdu>,
    /// How much of the first PDU was sent.
    sent: usize,
    /// The number of queued bytes, including the part of the first PDU that was sent.
    bytes: usize,
    /// Whether headers have a digest.
    pub(crate) header_digest: bool,
    /// Whether data segments have a digest.
    pub(crate) data_digest: bool,
}

impl Transmit {
    /// Queues a PDU. Sets its DataSegmentLength.
    pub(crate) fn push(&mut self, mut bhs: Bhs, data: OutData) {
        let data_bytes = data.len();
        bhs.put_data_bytes(data_bytes);
        let mut pdu = OutPdu {
            header: [0; BHS_BYTES + 4],
            header_bytes: BHS_BYTES as u8,
            tail: [0; 8],
            tail_bytes: padding(data_bytes) as u8,
            data,
            bytes: 0,
        };
        pdu.header[..BHS_BYTES].copy_from_slice(&bhs.0);
        if self.header_digest {
            pdu.header[BHS_BYTES..].copy_from_slice(&digest::of(&bhs.0));
            pdu.header_bytes += 4;
        }
        if self.data_digest && data_bytes > 0 {
            let pad = usize::from(pdu.tail_bytes);
            let sum = match &pdu.data {
                OutData::None => [0; 4],
                OutData::Bytes(bytes) => {
                    digest::of_pieces(std::iter::once(&bytes[..]), &[0; 3][..pad])
                }
                OutData::Data(data) => digest::of_pieces(data.slices(), &[0; 3][..pad]),
            };
            pdu.tail[pad..pad + 4].copy_from_slice(&sum);
            pdu.tail_bytes += 4;
        }
        pdu.bytes = usize::from(pdu.header_bytes) + data_bytes + usize::from(pdu.tail_bytes);
        self.bytes += pdu.bytes;
        self.queue.push_back(pdu);
    }

    /// Returns the number of bytes not sent yet.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.bytes - self.sent
    }

    /// Drops all output.
    pub(crate) fn clear(&mut self) {
        self.queue.clear();
        self.sent = 0;
        self.bytes = 0;
    }

    /// Appends what to send next to `out`.
    pub(crate) fn slices<'a>(&'a self, out: &mut impl Extend<IoSlice<'a>>, bytes_max: usize) {
        let mut gather =
            Gather { out, skip: self.sent, slices_left: SLICES_MAX, bytes_left: bytes_max };
        for pdu in &self.queue {
            if !gather.add_pdu(pdu) {
                return;
            }
        }
    }

    /// Notes that `bytes` of it were sent.
    pub(crate) fn transmitted(&mut self, bytes: usize) {
        assert!(bytes <= self.waiting_bytes(), "more bytes were sent than were queued");
        self.sent += bytes;
        while let Some(front) = self.queue.front() {
            if self.sent < front.bytes {
                break;
            }
            self.sent -= front.bytes;
            self.bytes -= front.bytes;
            self.queue.pop_front();
        }
    }
}

/// Collects slices up to its limits.
struct Gather<'b, E> {
    out: &'b mut E,
    skip: usize,
    slices_left: usize,
    bytes_left: usize,
}

impl<'a, E: Extend<IoSlice<'a>>> Gather<'_, E> {
    fn add_pdu(&mut self, pdu: &'a OutPdu) -> bool {
        self.add(&pdu.header[..usize::from(pdu.header_bytes)])
            && match &pdu.data {
                OutData::None => true,
                OutData::Bytes(bytes) => self.add(bytes),
                OutData::Data(data) => data.slices().all(|slice| self.add(slice)),
            }
            && self.add(&pdu.tail[..usize::from(pdu.tail_bytes)])
    }

    /// Adds a slice. Returns whether there is space for more after it.
    fn add(&mut self, slice: &'a [u8]) -> bool {
        if self.skip >= slice.len() {
            self.skip -= slice.len();
            return true;
        }
        let slice = &slice[self.skip..];
        self.skip = 0;
        if self.slices_left == 0 || self.bytes_left == 0 {
            return false;
        }
        let slice = &slice[..slice.len().min(self.bytes_left)];
        self.out.extend([IoSlice::new(slice)]);
        self.slices_left -= 1;
        self.bytes_left -= slice.len();
        self.bytes_left > 0
    }
}
