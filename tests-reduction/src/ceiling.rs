//! The ceiling of data reduction: exact deduplication of aligned 4 KiB blocks, then compression.
//!
//! Zero blocks cost nothing. Each other block counts once, in the part of its first occurrence. So
//! sizes of parts add up, like the growth of a pool to which the parts are written in order. First
//! occurrences are compressed
//!
//! - *alone*: each 4 KiB by itself, like an array can do inline with 4 KiB writes;
//! - *in writes* of 32 or 256 KiB: the new blocks of one aligned write, in their order, eight at a
//!   time, without regard to known blocks between them;
//! - *packed*: the new blocks of a part, in their order, eight at a time, without regard to their
//!   addresses. A background pass can do that; with zstd at level 9 it is "the ceiling".
//!
//! Incompressible data counts with its own size. Headers, maps, checksums and rounding are not
//! counted, so an array can come near these sizes but never reach them.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::corpus::{self, BLOCK_BYTES, Part};

/// The most blocks that are compressed together: 32 KiB.
const GROUP_BLOCKS: usize = 8;
/// The bytes of one read; a multiple of the longest writes.
const READ_BYTES: usize = 1 << 20;

/// Find the ceiling.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The corpus, made by `tests-reduction/build`.
    #[arg(long)]
    corpus: PathBuf,
    /// Write the results to this file as JSON.
    #[arg(long)]
    json: PathBuf,
}

/// How blocks are grouped and compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Scheme {
    name: &'static str,
    codec: Codec,
    /// The most blocks of one group.
    group_blocks: usize,
    /// Groups also end at multiples of this many bytes of the part, unless it is 0.
    write_bytes: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Codec {
    Lz4,
    Zstd(i32),
}

const fn scheme(
    name: &'static str,
    codec: Codec,
    group_blocks: usize,
    write_bytes: usize,
) -> Scheme {
    Scheme { name, codec, group_blocks, write_bytes }
}

/// The name of the scheme to which the aim for the background pass refers.
pub const CEILING: &str = "zstd-9 packed";

const SCHEMES: &[Scheme] = &[
    scheme("lz4 alone", Codec::Lz4, 1, 0),
    scheme("lz4 in 32K writes", Codec::Lz4, GROUP_BLOCKS, 32 << 10),
    scheme("lz4 in 256K writes", Codec::Lz4, GROUP_BLOCKS, 256 << 10),
    scheme("lz4 packed", Codec::Lz4, GROUP_BLOCKS, 0),
    scheme("zstd-3 alone", Codec::Zstd(3), 1, 0),
    scheme("zstd-3 packed", Codec::Zstd(3), GROUP_BLOCKS, 0),
    scheme("zstd-9 alone", Codec::Zstd(9), 1, 0),
    scheme(CEILING, Codec::Zstd(9), GROUP_BLOCKS, 0),
];

/// The results of one part, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// What kind of data it is.
    pub set: String,
    /// The part's name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Blocks that are not zeros.
    pub data_bytes: u64,
    /// Its distinct blocks, without regard to other parts.
    pub distinct_bytes: u64,
    /// Its blocks that occur neither earlier in it nor in an earlier part.
    pub new_bytes: u64,
    /// The new blocks, compressed, by the name of the scheme.
    pub stored_bytes: BTreeMap<String, u64>,
}

/// Reads the corpus and writes the results.
pub fn run(arguments: &Arguments) -> Result<()> {
    let mut known = HashSet::new();
    let mut all = Vec::new();
    for part in corpus::parts(&arguments.corpus)? {
        let found = examine(&part, &mut known)?;
        eprintln!(
            "{}: {} MiB of data, {} MiB new, {} MiB with {CEILING}",
            found.name,
            found.data_bytes >> 20,
            found.new_bytes >> 20,
            found.stored_bytes[CEILING] >> 20
        );
        all.push(found);
    }
    lab::report::write_json(&arguments.json, &all).map_err(anyhow::Error::msg)
}

/// Reads the results that `run` wrote.
pub fn read(path: &Path) -> Result<Vec<Found>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// A fingerprint that is long enough to identify a block.
type Fingerprint = [u8; 32];

/// Examines a part, and adds its blocks to the known ones.
fn examine(part: &Part, known: &mut HashSet<Fingerprint>) -> Result<Found> {
    let context = || part.path.display().to_string();
    let mut file = File::open(&part.path).with_context(context)?;
    let mut packers = SCHEMES.iter().map(|s| Packer::new(*s)).collect::<Result<Vec<_>>>()?;
    let mut found = Found { set: part.set.clone(), name: part.name.clone(), ..Found::default() };
    let mut own = HashSet::new();
    let mut buffer = Vec::with_capacity(READ_BYTES);
    loop {
        buffer.clear();
        file.by_ref().take(READ_BYTES as u64).read_to_end(&mut buffer).with_context(context)?;
        if buffer.is_empty() {
            break;
        }
        let new = sort_out(&buffer, known, &mut own, &mut found);
        // The last scheme takes about as long as the others together.
        std::thread::scope(|scope| {
            let (others, last) = packers.split_at_mut(SCHEMES.len() - 1);
            scope.spawn(|| others.iter_mut().for_each(|packer| packer.add(&buffer, &new)));
            last.iter_mut().for_each(|packer| packer.add(&buffer, &new));
        });
    }
    for packer in &mut packers {
        packer.end_group();
        found.stored_bytes.insert(packer.scheme.name.to_owned(), packer.stored_bytes);
    }
    Ok(found)
}

/// Counts the blocks of a piece, and returns the offsets of new ones.
fn sort_out(
    piece: &[u8],
    known: &mut HashSet<Fingerprint>,
    own: &mut HashSet<Fingerprint>,
    found: &mut Found,
) -> Vec<usize> {
    let mut new = Vec::new();
    for (index, block) in piece.chunks(BLOCK_BYTES).enumerate() {
        let bytes = block.len() as u64;
        found.bytes += bytes;
        if block.iter().all(|byte| *byte == 0) {
            continue;
        }
        found.data_bytes += bytes;
        let fingerprint = *blake3::hash(block).as_bytes();
        if own.insert(fingerprint) {
            found.distinct_bytes += bytes;
        }
        if known.insert(fingerprint) {
            found.new_bytes += bytes;
            new.push(index * BLOCK_BYTES);
        }
    }
    new
}

/// Groups new blocks by a scheme, and adds up their compressed sizes.
struct Packer {
    scheme: Scheme,
    zstd: Option<zstd::bulk::Compressor<'static>>,
    group: Vec<u8>,
    output: Vec<u8>,
    /// The write to which the group's blocks belong.
    write: usize,
    stored_bytes: u64,
}

impl Packer {
    fn new(scheme: Scheme) -> Result<Self> {
        let zstd = match scheme.codec {
            Codec::Zstd(level) => Some(zstd::bulk::Compressor::new(level)?),
            Codec::Lz4 => None,
        };
        let output = vec![0; lz4_flex::block::get_maximum_output_size(GROUP_BLOCKS * BLOCK_BYTES)];
        Ok(Self { scheme, zstd, group: Vec::new(), output, write: 0, stored_bytes: 0 })
    }

    /// Adds the new blocks of a piece, which begins at the beginning of a write.
    fn add(&mut self, piece: &[u8], new: &[usize]) {
        if self.scheme.write_bytes != 0 {
            self.end_group();
        }
        for &at in new {
            let write = at.checked_div(self.scheme.write_bytes).unwrap_or_default();
            if write != self.write || self.group.len() >= self.scheme.group_blocks * BLOCK_BYTES {
                self.end_group();
            }
            self.write = write;
            self.group.extend_from_slice(&piece[at..piece.len().min(at + BLOCK_BYTES)]);
        }
    }

    /// Compresses the group.
    fn end_group(&mut self) {
        let compressed = match &mut self.zstd {
            // If the output does not fit, the data is incompressible.
            Some(zstd) => zstd.compress_to_buffer(&self.group, self.output.as_mut_slice()).ok(),
            None => lz4_flex::block::compress_into(&self.group, &mut self.output).ok(),
        };
        let raw = self.group.len();
        self.stored_bytes += compressed.map_or(raw, |bytes| bytes.min(raw)) as u64;
        self.group.clear();
    }
}

#[cfg(test)]
#[path = "ceiling_tests.rs"]
mod tests;
