//! Real data, whose duplicates are to be found among everything in the pool.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use block::{BLOCK_BYTES, DataOut};
use format::Keys;

use crate::Measured;

/// Files, and the duplicates in them.
pub struct Content {
    files: Vec<PathBuf>,
    /// Blocks that are neither zeros nor a pattern, which cost nothing.
    pub data_blocks: u64,
    /// The number of different blocks among them.
    distinct_blocks: u64,
}

/// Returns whether a block consists of the same 32 bits.
fn is_uniform(block: &[u8]) -> bool {
    block[4..] == block[..block.len() - 4]
}

impl Content {
    /// Reads the files; `None` if there are none.
    pub fn examine(files: &[PathBuf]) -> Measured<Option<Self>> {
        if files.is_empty() {
            return Ok(None);
        }
        let keys = Keys::derive(&[5; 32]);
        let mut distinct = HashSet::new();
        let mut data_blocks = 0;
        for piece in bytes(files, 1 << 20) {
            let piece = piece?;
            let blocks = piece.chunks_exact(BLOCK_BYTES as usize);
            for block in blocks.filter(|block| !is_uniform(block)) {
                data_blocks += 1;
                distinct.insert(keys.fingerprint(block));
            }
        }
        let distinct_blocks = distinct.len() as u64;
        Ok(Some(Self { files: files.to_vec(), data_blocks, distinct_blocks }))
    }

    /// Returns the number of blocks that equal an earlier one.
    pub fn duplicate_blocks(&self) -> u64 {
        self.data_blocks - self.distinct_blocks
    }

    /// Returns the data as writes. Each salt makes other blocks of it, with the same duplicates
    /// among themselves, and as compressible: what was written before with another salt is not a
    /// duplicate.
    pub fn pieces(&self, piece_bytes: u64, salt: u32) -> impl Iterator<Item = Measured<DataOut>> {
        bytes(&self.files, piece_bytes).map(move |piece| {
            let mut piece = piece?;
            let blocks = piece.chunks_exact_mut(BLOCK_BYTES as usize);
            for block in blocks.filter(|block| !is_uniform(block)) {
                let salt = salt.to_le_bytes().into_iter().cycle();
                block.iter_mut().zip(salt).for_each(|(byte, salt)| *byte ^= salt);
            }
            Ok(DataOut::from_bytes(&piece, 0))
        })
    }
}

/// Returns the files one after the other, in pieces of at most this many bytes.
fn bytes(files: &[PathBuf], piece_bytes: u64) -> impl Iterator<Item = Measured<Vec<u8>>> {
    files.iter().flat_map(move |path| {
        #[expect(clippy::disallowed_methods, reason = "a program, not a simulated component")]
        let mut file = File::open(path);
        std::iter::from_fn(move || match &mut file {
            Ok(file) => next_piece(file, piece_bytes).transpose(),
            Err(error) => Some(Err(format!("{}: {error}", path.display()).into())),
        })
    })
}

fn next_piece(file: &mut File, piece_bytes: u64) -> Measured<Option<Vec<u8>>> {
    let mut piece = Vec::with_capacity(piece_bytes as usize);
    file.take(piece_bytes).read_to_end(&mut piece)?;
    if (piece.len() as u64).is_multiple_of(BLOCK_BYTES) {
        return Ok((!piece.is_empty()).then_some(piece));
    }
    Err("a file's size is not a multiple of 4 KiB".into())
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |blocks: u64| (blocks * BLOCK_BYTES) >> 20;
        let (data, duplicate) = (mib(self.data_blocks), mib(self.duplicate_blocks()));
        write!(f, "{data} MiB of data, including {duplicate} MiB of duplicates")
    }
}
