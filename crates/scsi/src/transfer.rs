//! Determines how much data a CDB takes from the host, before anything else of it is evaluated.

/// Returns how many bytes a CDB takes from the host, on a unit with logical blocks of this size. 0
/// for commands that take none, and for unsupported ones.
pub fn data_out_bytes(cdb: &[u8], block_bytes: u64) -> u64 {
    let u8_at = |at: usize| u64::from(cdb.get(at).copied().unwrap_or(0));
    let u16_at = |at: usize| u8_at(at) << 8 | u8_at(at + 1);
    let u32_at = |at: usize| u16_at(at) << 16 | u16_at(at + 2);
    let blocks = match cdb.first() {
        // WRITE (6): 0 means 256 blocks (SBC-3, 5.31).
        Some(0x0a) if u8_at(4) == 0 => 256,
        Some(0x0a) => u8_at(4),
        Some(0x2a | 0x2e) => u16_at(7),
        Some(0xaa | 0xae) => u32_at(6),
        Some(0x8a | 0x8b | 0x8e) => u32_at(10),
        Some(0x9c) => u16_at(12),
        // Both buffers of COMPARE AND WRITE.
        Some(0x89) => 2 * u8_at(13),
        // VERIFY compares with no data (BYTCHK 00b), with as many blocks (01b), or with one (11b).
        Some(opcode @ (0x2f | 0x8f | 0xaf)) => match (cdb.get(1).map(|byte| byte >> 1 & 3), opcode)
        {
            (Some(1), 0x2f) => u16_at(7),
            (Some(1), 0x8f) => u32_at(10),
            (Some(1), _) => u32_at(6),
            (Some(3), _) => 1,
            _ => 0,
        },
        // WRITE SAME without a data-out block (NDOB).
        Some(0x93) if u8_at(1) & 1 != 0 => 0,
        Some(0x41 | 0x93) => 1,
        // Parameter lists.
        Some(0x15) => return u8_at(4),
        Some(0x1d) => return u16_at(3),
        Some(0x42 | 0x48 | 0x55) => return u16_at(7),
        Some(0x5f) => return u32_at(5),
        Some(0x83) => return u32_at(10),
        Some(0xa4) => return u32_at(6),
        _ => 0,
    };
    blocks.saturating_mul(block_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cdb(bytes: &[(usize, u8)]) -> [u8; 16] {
        let mut cdb = [0; 16];
        bytes.iter().for_each(|(at, byte)| cdb[*at] = *byte);
        cdb
    }

    #[test]
    fn the_block_count_is_read_at_each_commands_offset() {
        for (bytes, blocks) in [
            (&[(0, 0x0a)][..], 256),
            (&[(0, 0x0a), (4, 7)], 7),
            (&[(0, 0x2a), (7, 1), (8, 2)], 258),
            (&[(0, 0x2e), (8, 2)], 2),
            (&[(0, 0x8a), (10, 1), (13, 2)], (1 << 24) + 2),
            (&[(0, 0x8b), (13, 2)], 2),
            (&[(0, 0x8e), (13, 2)], 2),
            (&[(0, 0x9c), (12, 1), (13, 2)], 258),
            (&[(0, 0xaa), (9, 3)], 3),
            (&[(0, 0xae), (9, 3)], 3),
            (&[(0, 0x89), (13, 255)], 510),
            (&[(0, 0x2f), (8, 9)], 0),
            (&[(0, 0x2f), (1, 2), (8, 9)], 9),
            (&[(0, 0x8f), (1, 2), (13, 9)], 9),
            (&[(0, 0xaf), (1, 2), (9, 9)], 9),
            (&[(0, 0xaf), (1, 6), (9, 9)], 1),
            (&[(0, 0x41), (8, 9)], 1),
            (&[(0, 0x93), (13, 9)], 1),
            (&[(0, 0x93), (1, 1), (13, 9)], 0),
            (&[(0, 0x28), (8, 9)], 0),
            (&[(0, 0xff), (8, 9)], 0),
        ] {
            for block in [512, 4096] {
                assert_eq!(data_out_bytes(&cdb(bytes), block), blocks * block, "{bytes:?}");
            }
        }
        assert_eq!(data_out_bytes(&[], 512), 0);
    }

    #[test]
    fn parameter_lists_have_the_length_of_the_cdb() {
        for (bytes, length) in [
            (&[(0, 0x15), (4, 9)][..], 9),
            (&[(0, 0x55), (7, 1), (8, 1)], 257),
            (&[(0, 0x42), (8, 24)], 24),
            (&[(0, 0x48), (8, 4)], 4),
            (&[(0, 0x5f), (5, 1), (8, 1)], (1 << 24) + 1),
            (&[(0, 0x83), (13, 88)], 88),
            (&[(0, 0xa4), (9, 8)], 8),
            (&[(0, 0x1d), (4, 8)], 8),
        ] {
            assert_eq!(data_out_bytes(&cdb(bytes), 512), length, "{bytes:?}");
        }
    }
}
