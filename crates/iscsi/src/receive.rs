//! Bytes in, PDUs out: the receive buffer, and data segments that are received directly into
//! frames.

use std::io::IoSliceMut;

use block::DataOut;

use crate::budget::Grant;
use crate::digest;
use crate::pdu::{BHS_BYTES, Bhs, padding};

/// The receive buffer: space for a thousand headers, or the beginning of a long data segment.
pub(crate) const BUFFER_BYTES: usize = 65_536;
/// How much of a long data segment is received together with its header.
const BULK_HEAD_BYTES: usize = 2048;
/// The most slices for one read.
const SLICES_MAX: usize = 256;

/// The data of a non-command request, and its memory.
#[derive(Debug, Default)]
pub(crate) struct Body {
    pub(crate) bytes: Vec<u8>,
    pub(crate) grant: Grant,
}

/// The destination of a data segment.
#[derive(Debug)]
pub(crate) enum Sink {
    /// A text, a ping or a similar request.
    Bytes(Body),
    /// A command's data, from this offset.
    Data(DataOut, usize),
    /// Discarded. Its digest is not checked.
    Discard,
}

/// A PDU whose header is complete.
#[derive(Debug)]
pub(crate) struct Incoming<T> {
    /// The header.
    pub(crate) bhs: Bhs,
    /// The decision made when the header was complete.
    pub(crate) plan: T,
    /// The destination of its data.
    pub(crate) sink: Sink,
    done: usize,
    /// The length of the data, without padding.
    pub(crate) bytes: usize,
}

impl std::fmt::Debug for Bhs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bhs({:02x?})", self.0)
    }
}

/// The result of parsing a header.
pub(crate) enum Header {
    /// More bytes are needed.
    Incomplete,
    /// The digest is wrong, so the rest of the stream can't be trusted.
    Corrupt,
    /// A header with its additional segments.
    Complete(Bhs, Option<Box<[u8]>>),
}

/// The receiving side. `T` is the state of a PDU between its header and its end.
pub(crate) struct Receive<T> {
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    incoming: Option<Incoming<T>>,
    /// The number of headers parsed.
    headers: u64,
    /// Whether long data is likely to follow: then only a little is received into the buffer, so
    /// that the rest goes directly into frames.
    pub(crate) bulk: bool,
    /// Whether headers have a digest.
    pub(crate) header_digest: bool,
    /// Whether data segments have a digest.
    pub(crate) data_digest: bool,
}

impl<T> Receive<T> {
    pub(crate) fn new() -> Self {
        Self {
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            start: 0,
            end: 0,
            incoming: None,
            headers: 0,
            bulk: false,
            header_digest: false,
            data_digest: false,
        }
    }

    /// Appends where the next bytes go to `out`.
    pub(crate) fn slices<'a>(&'a mut self, out: &mut impl Extend<IoSliceMut<'a>>) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let mut room = SLICES_MAX;
        let is_empty = self.end == 0;
        let head_only = self.bulk && is_empty && self.incoming.is_none();
        if let Some(Incoming { sink: Sink::Data(data, offset), done, bytes, .. }) =
            self.incoming.as_mut().filter(|_| is_empty)
        {
            for slice in data.slices_mut(*offset + *done, *bytes - *done) {
                if room == 0 {
                    return;
                }
                out.extend([IoSliceMut::new(slice)]);
                room -= 1;
            }
        }
        let end = if head_only { BULK_HEAD_BYTES } else { self.buffer.len() };
        if room > 0 && self.end < end {
            out.extend([IoSliceMut::new(&mut self.buffer[self.end..end])]);
        }
    }

    /// Notes that `bytes` were read into the slices.
    pub(crate) fn received(&mut self, mut bytes: usize) {
        let is_empty = self.start == self.end;
        if let Some(incoming) = self.incoming.as_mut().filter(|_| is_empty)
            && matches!(incoming.sink, Sink::Data(..))
        {
            let n = bytes.min(incoming.bytes - incoming.done);
            incoming.done += n;
            bytes -= n;
        }
        assert!(
            bytes <= self.buffer.len() - self.end,
            "more bytes were received than fit the buffer"
        );
        self.end += bytes;
    }

    /// Fills the empty buffer with bytes received earlier; the next receive appends to them.
    ///
    /// # Panics
    /// If they exceed the buffer ([`BUFFER_BYTES`]).
    pub(crate) fn prefill(&mut self, bytes: &[u8]) {
        self.buffer[..bytes.len()].copy_from_slice(bytes);
        (self.start, self.end) = (0, bytes.len());
    }

    pub(crate) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns whether the header of a PDU is complete, and its data is not.
    pub(crate) fn in_data(&self) -> bool {
        self.incoming.is_some()
    }

    /// Returns the progress of an incomplete PDU: its number, and how much of its data has arrived.
    pub(crate) fn arrival(&self) -> Option<(u64, usize)> {
        let done = self.incoming.as_ref().map(|incoming| incoming.done);
        let is_begun = done.is_some() || self.start < self.end;
        is_begun.then(|| (self.headers, done.unwrap_or(0)))
    }

    /// Takes the next header off the buffer.
    pub(crate) fn header(&mut self) -> Header {
        let digest_bytes = if self.header_digest { 4 } else { 0 };
        let Some(fixed) = self.available().first_chunk::<BHS_BYTES>() else {
            return Header::Incomplete;
        };
        let bhs = Bhs(*fixed);
        let bytes = BHS_BYTES + bhs.ahs_bytes();
        let Some(all) = self.available().get(..bytes + digest_bytes) else {
            return Header::Incomplete;
        };
        if self.header_digest && digest::of(&all[..bytes]) != all[bytes..] {
            return Header::Corrupt;
        }
        let ahs = (bytes > BHS_BYTES).then(|| Box::from(&all[BHS_BYTES..bytes]));
        self.start += bytes + digest_bytes;
        self.headers += 1;
        Header::Complete(bhs, ahs)
    }

    /// Receives the data segment of the header just taken into `sink`.
    pub(crate) fn begin(&mut self, bhs: Bhs, plan: T, sink: Sink) {
        let bytes = bhs.data_bytes();
        self.incoming = Some(Incoming { bhs, plan, sink, done: 0, bytes });
    }

    /// Returns the PDU whose data is arriving: its tag and its plan.
    pub(crate) fn arriving(&mut self) -> Option<(u32, &mut T)> {
        self.incoming.as_mut().map(|incoming| (incoming.bhs.task_tag(), &mut incoming.plan))
    }

    /// Discards the rest of the data of a PDU with such a plan, and frees its memory.
    pub(crate) fn discard(&mut self, is: impl Fn(&T) -> bool) {
        if let Some(incoming) = self.incoming.as_mut().filter(|incoming| is(&incoming.plan)) {
            incoming.sink = Sink::Discard;
        }
    }

    /// Drops the incomplete PDU: nothing more will arrive.
    pub(crate) fn end(&mut self) {
        self.incoming = None;
    }

    /// Returns the PDU once it is complete, and whether its data digest is right.
    pub(crate) fn finish(&mut self) -> Option<(Incoming<T>, bool)> {
        let Self { buffer, start, end, incoming, .. } = self;
        let current = incoming.as_mut()?;
        let taken = (*end - *start).min(current.bytes - current.done);
        let piece = &buffer[*start..*start + taken];
        match &mut current.sink {
            Sink::Bytes(body) => body.bytes.extend_from_slice(piece),
            Sink::Data(data, offset) => data.write_at(*offset + current.done, piece),
            Sink::Discard => {}
        }
        current.done += taken;
        *start += taken;
        if current.done < current.bytes {
            return None;
        }
        let pad = padding(current.bytes);
        let digest_bytes = if self.data_digest && current.bytes > 0 { 4 } else { 0 };
        let tail = self.buffer[self.start..self.end].get(..pad + digest_bytes)?;
        let right = digest_bytes == 0 || {
            let (pad, sum) = tail.split_at(pad);
            match &current.sink {
                Sink::Bytes(body) => {
                    digest::of_pieces(std::iter::once(&body.bytes[..]), pad) == sum
                }
                Sink::Data(data, offset) => {
                    digest::of_range(data, *offset, current.bytes, pad) == sum
                }
                Sink::Discard => true,
            }
        };
        self.start += pad + digest_bytes;
        self.incoming.take().map(|incoming| (incoming, right))
    }
}
