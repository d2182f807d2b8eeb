//! Frames as I/O vectors of the kernel.

use block::{FRAME_BYTES, Frame, FrameMut};

/// The maximum number of vectors of one call (`IOV_MAX` of Linux).
pub(crate) const IOVECS_MAX: usize = 1024;

/// Adds the vectors of `frames` from byte `skip_bytes` on to `iovecs`, at most [`IOVECS_MAX`].
/// Returns how many bytes they are.
pub(crate) fn for_read(
    iovecs: &mut Vec<libc::iovec>,
    frames: &mut [FrameMut],
    skip_bytes: usize,
) -> usize {
    iovecs.clear();
    let mut skip = skip_bytes % FRAME_BYTES;
    let mut len = 0;
    for frame in frames.iter_mut().skip(skip_bytes / FRAME_BYTES).take(IOVECS_MAX) {
        let bytes = &mut frame[skip..];
        len += bytes.len();
        iovecs.push(libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() });
        skip = 0;
    }
    len
}

/// Does the same as [`for_read`] for frames that the kernel only reads from.
pub(crate) fn for_write(
    iovecs: &mut Vec<libc::iovec>,
    frames: &[Frame],
    skip_bytes: usize,
) -> usize {
    iovecs.clear();
    let mut skip = skip_bytes % FRAME_BYTES;
    let mut len = 0;
    for frame in frames.iter().skip(skip_bytes / FRAME_BYTES).take(IOVECS_MAX) {
        let bytes = &frame[skip..];
        len += bytes.len();
        iovecs
            .push(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
        skip = 0;
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_start_where_the_last_transfer_ended() {
        let mut frames: Vec<FrameMut> = (0..3).map(|_| FrameMut::zeroed()).collect();
        let mut iovecs = Vec::new();
        let len = for_read(&mut iovecs, &mut frames, FRAME_BYTES + 512);
        assert_eq!(len, 2 * FRAME_BYTES - 512);
        assert_eq!(iovecs.len(), 2);
        assert_eq!(iovecs[0].iov_base as usize, frames[1].as_ptr() as usize + 512);
        assert_eq!(iovecs[1].iov_len, FRAME_BYTES);
        assert_eq!(for_read(&mut iovecs, &mut frames, 3 * FRAME_BYTES), 0);
    }

    #[test]
    fn no_more_vectors_than_one_call_accepts() {
        let frames: Vec<Frame> = (0..1500).map(|_| Frame::zeros()).collect();
        let mut iovecs = Vec::new();
        assert_eq!(for_write(&mut iovecs, &frames, 0), IOVECS_MAX * FRAME_BYTES);
        let rest = for_write(&mut iovecs, &frames, IOVECS_MAX * FRAME_BYTES);
        assert_eq!(rest, (1500 - IOVECS_MAX) * FRAME_BYTES);
    }
}
