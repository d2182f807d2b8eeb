//! Checksums, and the keys that make them unforgeable for anyone who can only write data.
//!
//! * A [`Fingerprint`] (XXH3, 128 bits, with the pool's own secret) identifies the content of a 4
//!   KiB block: it is the block's checksum on every read, and the hint for deduplication.
//! * [`Keys::page_sum`] (XXH3, 64 bits, same secret) is the checksum that a parent stores for a
//!   metadata page or node.
//! * A [`Seal`] (BLAKE3, keyed, truncated to 128 bits) protects the header of a log record. It is
//!   keyed because guests choose the payload: without the key, payload bytes could look like a
//!   record after a crash left the tail of the log torn.

use twox_hash::{XxHash3_64, XxHash3_128};

/// The 128-bit keyed hash of a 4 KiB block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(pub [u8; 16]);

/// The keyed checksum of a log record's header and entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seal(pub [u8; 16]);

/// Bytes of a secret for XXH3.
pub const SECRET_BYTES: usize = 192;

/// The keys of the checksums of a pool.
#[derive(Clone)]
pub struct Keys {
    seal: [u8; 32],
    secret: Box<[u8; SECRET_BYTES]>,
}

impl Keys {
    /// Derives the keys from the pool's 32-byte root key.
    pub fn derive(root: &[u8; 32]) -> Self {
        let mut secret = Box::new([0; SECRET_BYTES]);
        let mut reader = blake3::Hasher::new_derive_key("holdfast 2026 fingerprint secret v1");
        reader.update(root);
        reader.finalize_xof().fill(&mut secret[..]);
        let seal = blake3::derive_key("holdfast 2026 log seal v1", root);
        Self { seal, secret }
    }

    /// Returns the fingerprint of a block.
    pub fn fingerprint(&self, block: &[u8]) -> Fingerprint {
        let hash = XxHash3_128::oneshot_with_secret(&self.secret[..], block);
        Fingerprint(hash.expect("the secret has XXH3's own length").to_le_bytes())
    }

    /// Returns the checksum of a page, node or piece of a stream.
    pub fn page_sum(&self, page: &[u8]) -> u64 {
        XxHash3_64::oneshot_with_secret(&self.secret[..], page)
            .expect("the secret has XXH3's own length")
    }

    /// Returns the seal over header and entries.
    pub fn seal(&self, header: &[u8], entries: &[u8]) -> Seal {
        let mut hasher = blake3::Hasher::new_keyed(&self.seal);
        hasher.update(header);
        hasher.update(entries);
        let mut seal = [0; 16];
        seal.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Seal(seal)
    }
}

impl std::fmt::Debug for Keys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Keys(secret)")
    }
}

/// Returns the unkeyed checksum of a superblock, which contains the key itself.
pub fn superblock_sum(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_by_root_and_sums_by_content() {
        let (a, b) = (Keys::derive(&[1; 32]), Keys::derive(&[2; 32]));
        let block = [7; 4096];
        assert_eq!(a.fingerprint(&block), Keys::derive(&[1; 32]).fingerprint(&block));
        assert_ne!(a.fingerprint(&block), b.fingerprint(&block));
        assert_ne!(a.page_sum(&block), b.page_sum(&block));
        assert_ne!(a.seal(b"x", b"y"), b.seal(b"x", b"y"));
        assert_ne!(a.seal(b"x", b"y"), a.seal(b"x", b"z"));
    }
}
