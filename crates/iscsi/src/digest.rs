//! CRC32C digests (RFC 7143, 13.1), sent least significant byte first.

use block::DataOut;

/// Returns the digest of a header, including its additional segments.
pub(crate) fn of(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).to_le_bytes()
}

/// Returns the digest of data in pieces and its padding.
pub(crate) fn of_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>, pad: &[u8]) -> [u8; 4] {
    let crc = pieces.fold(0, crc32c::crc32c_append);
    crc32c::crc32c_append(crc, pad).to_le_bytes()
}

/// Returns the digest of `bytes` bytes of data from `offset`, and its padding.
pub(crate) fn of_range(data: &DataOut, offset: usize, bytes: usize, pad: &[u8]) -> [u8; 4] {
    let mut at = offset;
    let end = offset + bytes;
    let mut crc = 0;
    while at < end {
        let piece = data.slice_from(at);
        let n = piece.len().min(end - at);
        if n == 0 {
            break;
        }
        crc = crc32c::crc32c_append(crc, &piece[..n]);
        at += n;
    }
    crc32c::crc32c_append(crc, pad).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 7143, appendix A.4: the CRC examples.
    #[test]
    fn the_crc_examples_of_the_rfc_match() {
        assert_eq!(of(&[0; 32]), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(of(&[0xff; 32]), [0x43, 0xab, 0xa8, 0x62]);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(of(&up), [0x4e, 0x79, 0xdd, 0x46]);
    }

    #[test]
    fn pieces_and_ranges_agree_with_the_whole() {
        let bytes: Vec<u8> = (0..9_999u32).map(|n| (n * 7) as u8).collect();
        let data = DataOut::from_bytes(&bytes, 512);
        assert_eq!(of_range(&data, 100, 9_000, &[0; 3]), {
            let mut part = bytes[100..9_100].to_vec();
            part.extend_from_slice(&[0; 3]);
            of(&part)
        });
        assert_eq!(of_pieces(bytes.chunks(17), &[]), of(&bytes));
    }
}
