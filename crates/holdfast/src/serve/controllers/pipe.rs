//! One direction of a forwarded connection.

use std::io::{self, Read, Write};

/// The most bytes read at once. Nothing more is read before all of it is written, so this also
/// bounds the data held for a direction.
const BUFFER_BYTES: usize = 64 << 10;
/// The most unused buffers that are kept.
const SPARE_MAX: usize = 16;

/// Unused buffers.
#[derive(Default)]
pub(super) struct Spare(Vec<Box<[u8]>>);

impl Spare {
    pub(super) fn take(&mut self) -> Box<[u8]> {
        self.0.pop().unwrap_or_else(|| vec![0; BUFFER_BYTES].into())
    }

    pub(super) fn give(&mut self, buffer: Box<[u8]>) {
        if self.0.len() < SPARE_MAX {
            self.0.push(buffer);
        }
    }
}

/// A socket, and its readiness: the poller reports only changes.
pub(super) struct End<S> {
    pub socket: S,
    pub is_readable: bool,
    pub is_writable: bool,
}

impl<S> End<S> {
    /// Creates the state of a new socket, assumed to be ready.
    pub(super) fn new(socket: S) -> Self {
        Self { socket, is_readable: true, is_writable: true }
    }
}

/// Bytes in transit from one socket to the other.
#[derive(Default)]
pub(super) struct Pipe {
    buffer: Option<Box<[u8]>>,
    start: usize,
    end: usize,
    /// Whether nothing more will be read.
    is_over: bool,
}

impl Pipe {
    /// Moves what can be moved at once. Returns whether anything was moved.
    ///
    /// # Errors
    /// Errors of the sockets, except that they are not ready.
    pub(super) fn pump<R: Read, W: Write>(
        &mut self,
        from: &mut End<R>,
        to: &mut End<W>,
        spare: &mut Spare,
    ) -> io::Result<bool> {
        let mut has_moved = false;
        if self.start == self.end && !self.is_over && from.is_readable {
            let buffer = self.buffer.get_or_insert_with(|| spare.take());
            match ready(from.socket.read(buffer), &mut from.is_readable)? {
                Some(0) => self.is_over = true,
                Some(bytes) => (self.start, self.end, has_moved) = (0, bytes, true),
                None => {}
            }
        }
        if let Some(buffer) = self.buffer.as_ref().filter(|_| self.start < self.end)
            && to.is_writable
        {
            let left = &buffer[self.start..self.end];
            if let Some(bytes) = ready(to.socket.write(left), &mut to.is_writable)? {
                to.is_writable &= bytes == left.len();
                self.start += bytes;
                has_moved |= bytes > 0;
            }
        }
        if self.start == self.end
            && let Some(buffer) = self.buffer.take()
        {
            spare.give(buffer);
        }
        Ok(has_moved)
    }

    /// Returns what was read and not written.
    pub(super) fn rest(self) -> Vec<u8> {
        self.buffer.map_or_else(Vec::new, |buffer| buffer[self.start..self.end].to_vec())
    }

    /// Returns whether everything has been moved, and no more will arrive.
    pub(super) fn is_done(&self) -> bool {
        self.is_over && self.start == self.end
    }
}

/// Returns `None` if the socket was not ready, or the call must be repeated.
pub(super) fn ready(result: io::Result<usize>, is_ready: &mut bool) -> io::Result<Option<usize>> {
    match result {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            *is_ready = false;
            Ok(None)
        }
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
    }
}
