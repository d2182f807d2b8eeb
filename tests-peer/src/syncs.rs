//! Checks that the product really syncs: a library loaded into the process traces what it submits
//! to the kernel, by system calls and by io_uring. A response that promises durability must follow
//! the completion of a durable write, or of a flush that began after the write had completed. A
//! kill can't show this: data that was never synced survives it in the kernel.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use libiscsi::{Cdb, Data, Direction, Session};

use crate::array::Array;
use crate::command;
use crate::offload::good;
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

const SOURCE: &str = include_str!("syncs/interposer.c");
const BLOCK: u32 = 512;
const WRITE_BYTES: usize = 64 << 10;
const WRITE_BLOCKS: u64 = WRITE_BYTES as u64 / BLOCK as u64;
const WRITES: u64 = 24;
/// One SYNCHRONIZE CACHE is sent after this many writes.
const SYNC_EVERY: u64 = 6;
/// The locations of the superblocks.
const SUPERBLOCKS: [u64; 2] = [0, 8 << 20];
/// The errno of a filesystem that does not support durable writes (errno(3)).
const EOPNOTSUPP: i32 = 95;
/// The opcode of a SCSI response (RFC 7143 section 11.4).
const SCSI_RESPONSE: u8 = 0x21;

/// Builds the library.
pub fn build(scratch: &Path) -> Result<PathBuf> {
    let (source, library) = (scratch.join("interposer.c"), scratch.join("interposer.so"));
    std::fs::write(&source, SOURCE)?;
    let paths = [source.display().to_string(), library.display().to_string()];
    let words = ["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", &paths[1], &paths[0], "-ldl"];
    command::run(60, "cc", &words)?.good()?;
    Ok(library)
}

/// A write to the pool. Times are lines of the trace.
struct Write {
    offset_bytes: u64,
    durable: bool,
    /// The first 8 bytes of each 4 KiB.
    heads: Vec<u64>,
    begun: usize,
    /// When it completed, and how many of its blocks were written.
    ended: Option<(usize, usize)>,
}

struct Flush {
    begun: usize,
    ended: Option<usize>,
}

/// The parsed trace.
#[derive(Default)]
struct Trace {
    writes: Vec<Write>,
    flushes: Vec<Flush>,
    /// When SCSI responses were sent.
    responses: Vec<usize>,
    rings: usize,
    /// Whether the first write or flush was a flush.
    begins_with_flush: Option<bool>,
    /// Whether the filesystem has refused a durable write (EOPNOTSUPP).
    refuses_durable: bool,
}

impl Trace {
    fn read(array: &Array) -> Result<Self> {
        let text = std::fs::read_to_string(array.trace_path())?;
        let mut trace = Self::default();
        let (mut writes, mut flushes) = (HashMap::new(), HashMap::new());
        for (at, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["W", id, offset, _, durable, heads] => {
                    writes.insert(id.to_owned(), trace.writes.len());
                    let heads = heads.split(',').filter(|head| !head.is_empty());
                    trace.writes.push(Write {
                        offset_bytes: offset.parse()?,
                        durable: durable == "1",
                        heads: heads
                            .map(|head| u64::from_str_radix(head, 16))
                            .collect::<Result<_, _>>()?,
                        begun: at,
                        ended: None,
                    });
                    trace.begins_with_flush.get_or_insert(false);
                }
                ["F", id] => {
                    flushes.insert(id.to_owned(), trace.flushes.len());
                    trace.flushes.push(Flush { begun: at, ended: None });
                    trace.begins_with_flush.get_or_insert(true);
                }
                ["D", id, result] => {
                    let result: i64 = result.parse()?;
                    if let (Some(write), 0..) = (writes.get(id), result) {
                        trace.writes[*write].ended = Some((at, result as usize / 4096));
                    }
                    trace.refuses_durable |= result == -i64::from(EOPNOTSUPP);
                    if let (Some(flush), 0) = (flushes.get(id), result) {
                        trace.flushes[*flush].ended = Some(at);
                    }
                }
                ["A", opcode] => {
                    if u8::from_str_radix(opcode, 16)? & 0x3F == SCSI_RESPONSE {
                        trace.responses.push(at);
                    }
                }
                ["R", _] => trace.rings += 1,
                // The last line may be incomplete.
                _ if !text.ends_with('\n') && at + 1 == text.lines().count() => {}
                _ => anyhow::bail!("an unexpected line in the trace: {line:?}"),
            }
        }
        Ok(trace)
    }

    /// Returns whether a flush that covers a write had completed before a time.
    fn is_flushed(&self, write: &Write, before: usize) -> bool {
        let Some((ended, _)) = write.ended else { return false };
        let covers =
            |flush: &&Flush| flush.begun > ended && flush.ended.is_some_and(|ended| ended < before);
        self.flushes.iter().any(|flush| covers(&flush))
    }

    /// Returns the writes completed before a time that contain a block which begins with `head`.
    fn holding(&self, head: u64, before: usize) -> impl Iterator<Item = &Write> {
        self.writes.iter().filter(move |write| {
            let there = write.ended.filter(|(ended, _)| *ended < before);
            there.is_some_and(|(_, blocks)| {
                write.heads.iter().take(blocks).any(|found| *found == head)
            })
        })
    }

    /// Returns whether a block that begins with `head` was durable before a time.
    fn is_durable(&self, head: u64, before: usize) -> bool {
        self.holding(head, before).any(|write| write.durable || self.is_flushed(write, before))
    }

    /// Returns whether a durable write had written it.
    fn carries_its_flush(&self, head: u64, before: usize) -> bool {
        self.holding(head, before).any(|write| write.durable)
    }
}

fn heads(bytes: &[u8]) -> Vec<u64> {
    let head = |block: &[u8]| block.iter().take(8).rev().fold(0, |n, b| n << 8 | u64::from(*b));
    bytes.chunks(4096).map(head).collect()
}

/// Sends a command. Returns the trace, and the time at which its response was sent.
fn answered(array: &Array, command: impl FnOnce() -> Result<()>) -> Result<(Trace, usize)> {
    let before = Trace::read(array)?.responses.len();
    command()?;
    let trace = Trace::read(array)?;
    let at = *trace.responses.get(before).context("no response is in the trace")?;
    Ok((trace, at))
}

fn write(session: &mut Session, index: u64, bytes: &[u8], fua: bool) -> Result<()> {
    let mut cdb = [0; 16];
    cdb[0] = 0x8A;
    cdb[1] = u8::from(fua) << 3;
    cdb[2..10].copy_from_slice(&(index * WRITE_BLOCKS).to_be_bytes());
    cdb[10..14].copy_from_slice(&(WRITE_BLOCKS as u32).to_be_bytes());
    let answer = session.execute(Cdb::raw(&cdb, Direction::Out), Data::Out(bytes.to_vec()))?;
    good(answer.status)
}

/// Writes and syncs, and compares what was acknowledged with what was durable. `commit`: everything
/// acknowledged must be durable.
pub fn run(
    report: &mut Report,
    array: &mut Array,
    target: &Target,
    commit: bool,
    refuse_uring: bool,
) {
    let durability = if commit { "commit" } else { "flush" };
    let way = if refuse_uring { "system calls" } else { "io_uring" };
    report.check(&format!("{durability}, {way}: acknowledged data was synced before"), || {
        let trace = Trace::read(array)?;
        ensure!(trace.begins_with_flush == Some(true), "the pool was opened without a flush");
        ensure!(!refuse_uring || trace.rings == 0, "io_uring was not refused");
        let rings = trace.rings;
        let checked = promises(array, target, commit)?;
        let note = if refuse_uring || rings > 0 { "" } else { "; the kernel refuses io_uring" };
        Ok(format!("{checked} blocks, {rings} rings{note}"))
    });
    report.check(&format!("{durability}, {way}: a superblock refers to flushed data only"), || {
        array.stop()?;
        let trace = Trace::read(array)?;
        let count = superblocks(&trace, commit)?;
        Ok(format!("{count} superblocks"))
    });
}

fn promises(array: &Array, target: &Target, commit: bool) -> Result<usize> {
    let mut random = Random::new(11);
    let mut session = Session::connect(&target.config())?;
    let (mut waiting, mut checked): (Vec<u64>, usize) = (Vec::new(), 0);
    for index in 0..WRITES {
        let bytes = random.bytes(WRITE_BYTES);
        let fua = index % 4 == 3;
        let (mut trace, mut at) = answered(array, || write(&mut session, index, &bytes, fua))?;
        waiting.extend(heads(&bytes));
        let mut promised = if commit || fua { heads(&bytes) } else { Vec::new() };
        if index % SYNC_EVERY == SYNC_EVERY - 1 {
            (trace, at) = answered(array, || {
                good(session.execute(Cdb::synchronize_cache_16(), Data::None)?.status)
            })?;
            promised = std::mem::take(&mut waiting);
        }
        checked += promised.len();
        for head in promised {
            ensure!(
                trace.is_durable(head, at),
                "write {index} of {WRITES}: block {head:016x} was acknowledged but not durable"
            );
            // A flush of the whole device would suffice, but delay every other write to it.
            ensure!(
                !commit || trace.refuses_durable || trace.carries_its_flush(head, at),
                "write {index} of {WRITES}: its record was not written with FUA"
            );
        }
    }
    ensure!(checked > 0 && waiting.is_empty(), "no write was checked");
    Ok(checked)
}

/// A checkpoint's writes are flushed before the superblock that refers to it, which is
/// flushed too. With `durability = "flush"` log records are written meanwhile without a flush.
fn superblocks(trace: &Trace, commit: bool) -> Result<usize> {
    let is_superblock = |write: &&Write| SUPERBLOCKS.contains(&write.offset_bytes);
    let mut count = 0;
    for superblock in trace.writes.iter().filter(is_superblock) {
        count += 1;
        let flushed = superblock.durable || trace.is_flushed(superblock, usize::MAX);
        ensure!(flushed, "a superblock was never flushed");
        let earlier = trace.writes.iter().filter(|write| write.begun < superblock.begun);
        // A separate thread writes zeros ahead of the log.
        let named = earlier.filter(|write| write.heads.iter().any(|head| *head != 0));
        for write in named.filter(|_| commit) {
            let there = write.durable && write.ended.is_some();
            ensure!(
                there || trace.is_flushed(write, superblock.begun),
                "a superblock was written before the write at {} was durable",
                write.offset_bytes
            );
        }
    }
    // Opening writes one, and stopping at least one more.
    ensure!(count >= 2, "only {count} superblocks were written");
    Ok(count)
}
