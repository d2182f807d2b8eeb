//! Common CDBs.

/// Returns a CDB of 10 bytes with an LBA and a length.
pub(crate) fn cdb_10(opcode: u8, flags: u8, lba: u32, blocks: u16) -> Vec<u8> {
    let mut cdb = vec![opcode, flags];
    cdb.extend(lba.to_be_bytes());
    cdb.push(0);
    cdb.extend(blocks.to_be_bytes());
    cdb.push(0);
    cdb
}

/// Returns a CDB of 16 bytes with an LBA and a length.
pub(crate) fn cdb_16(opcode: u8, flags: u8, lba: u64, length: u32) -> Vec<u8> {
    let mut cdb = vec![opcode, flags];
    cdb.extend(lba.to_be_bytes());
    cdb.extend(length.to_be_bytes());
    cdb.extend([0, 0]);
    cdb
}
