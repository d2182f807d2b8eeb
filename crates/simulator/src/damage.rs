//! Bits that flip, reads that fail, and reads that return another location's bytes.
//!
//! The store may then return MEDIUM ERROR, or refuse to open; it may never return anything wrong.
//! The damaged pool has a checkpoint of all of its log: a record after the last checkpoint with a
//! damaged header looks like the end of the log on a single device. For the same reason reads are
//! misdirected only once the pool is open: recovery takes a superblock that it can't decode for a
//! torn one, and a record that is not there for the log's end.

use std::collections::BTreeSet;
use std::sync::Arc;

use block::{
    CopySegment, DataOut, Sector, SectorCount, SectorRange, VolumeError, VolumeId, VolumeReply,
    VolumeRequest,
};
use store::{
    Change, CheckOptions, Finding, OpenOptions, ScrubStep, Store, StoreError, VolumeChange,
};

use crate::content::{Tag, bytes_of, unique_tag};
use crate::disk::{Faults, SimDisk, Survival};
use crate::rng::Rng;

const SECTORS: u64 = 4096;

/// The kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// This many bits have flipped, anywhere but in segment 0.
    Rot(u64),
    /// This many of a thousand reads fail.
    FailedReads(u64),
    /// This many of a thousand reads return another location's bytes.
    MisdirectedReads(u64),
}

/// How often the damage was noticed, and how often it did no harm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The pool was not opened.
    pub refused: u64,
    /// Reads that ended with MEDIUM ERROR.
    pub medium_errors: u64,
    /// Reads that returned the right bytes.
    pub right: u64,
    /// Pools in which `check` found something, or could not finish.
    pub found_by_check: u64,
    /// Findings listed by a scrubbing pass.
    pub found_by_scrub: u64,
    /// Blocks that it listed.
    pub blocks_named: u64,
}

/// Fills a pool, damages its device, and reads all of it. `Err` is data that is wrong.
pub fn inflict(seed: u64, damage: Damage) -> Result<Seen, String> {
    let mut rng = Rng::new(seed);
    let disk = Arc::new(SimDisk::new(256 << 20, seed));
    let (volume, tags) = fill(&disk, &mut rng).map_err(|error| error.to_string())?;
    disk.crash(Survival::Nothing, &mut rng);
    match damage {
        Damage::Rot(bits) => {
            for _ in 0..bits {
                disk.rot(&mut rng);
            }
        }
        Damage::FailedReads(failed_reads_per_mille) => {
            disk.set_faults(Faults { failed_reads_per_mille, ..Faults::default() });
        }
        Damage::MisdirectedReads(_) => {}
    }
    let mut seen = Seen::default();
    let Ok(store) =
        Store::open(disk.clone(), OpenOptions { memory_bytes: 0, ..Default::default() })
    else {
        seen.refused = 1;
        return Ok(seen);
    };
    if let Damage::MisdirectedReads(misdirected_reads_per_mille) = damage {
        disk.set_faults(Faults { misdirected_reads_per_mille, ..Faults::default() });
    }
    let mut lost = BTreeSet::new();
    for start in (0..SECTORS).step_by(8) {
        let range = SectorRange::new(start, 8);
        match store.execute(VolumeRequest::Read { volume, range }) {
            Ok(VolumeReply::Data(data)) => {
                let want = bytes_of(&tags[start as usize..start as usize + 8]);
                if data.to_vec() != want {
                    return Err(format!("seed {seed}: sectors from {start} on are wrong"));
                }
                seen.right += 1;
            }
            Err(VolumeError::Medium { .. }) => {
                lost.insert(start);
                seen.medium_errors += 1;
            }
            other => return Err(format!("seed {seed}: reading at {start}: {other:?}")),
        }
    }
    let sound = store.check(CheckOptions { data: true });
    seen.found_by_check = u64::from(!sound.is_ok_and(|report| report.findings.is_empty()));
    let findings = scrub(&store, seed)?;
    // The blocks of a volume whose row is lost are unknown: all of them count.
    let named = if store.is_lost(volume) { lost.clone() } else { named(&findings, volume) };
    seen.found_by_scrub = findings.len() as u64;
    seen.blocks_named = named.len() as u64;
    // Damaged bits stay; a read that fails or is misdirected is right the next time.
    if matches!(damage, Damage::Rot(_)) && named != lost {
        return Err(format!("seed {seed}: scrub reported {named:?}, but reads lost {lost:?}"));
    }
    Ok(seen)
}

/// Runs a scrubbing pass, in steps of any length.
fn scrub(store: &Store, seed: u64) -> Result<Vec<Finding>, String> {
    let mut rng = Rng::new(seed ^ 0x5c_12ab);
    store.scrub_start(1);
    for _ in 0..100_000 {
        match store.scrub_step(rng.between(1, 300), 2) {
            Ok(ScrubStep::Complete) => return Ok(store.damage().findings),
            Ok(ScrubStep::More { .. }) => {}
            other => return Err(format!("seed {seed}: scrubbing: {other:?}")),
        }
    }
    Err(format!("seed {seed}: the scrub never ends"))
}

/// Returns the first sectors of the blocks that findings list.
fn named(findings: &[Finding], volume: VolumeId) -> BTreeSet<u64> {
    let ranges = findings.iter().flat_map(|finding| &finding.ranges);
    ranges
        .filter(|damaged| damaged.volume == volume)
        .flat_map(|damaged| {
            let first = damaged.range.start.0;
            (first..first + damaged.range.count.0).step_by(8)
        })
        .collect()
}

/// Creates a volume that was written and copied in many ways, with checkpoints, the last at the
/// end.
fn fill(disk: &Arc<SimDisk>, rng: &mut Rng) -> Result<(VolumeId, Vec<Tag>), StoreError> {
    Store::create(&**disk, &[3; 64])?;
    let store = Store::open(disk.clone(), OpenOptions::default())?;
    let volume = store.allocate_volume_id();
    let create = VolumeChange::Create { id: volume, size: SectorCount(SECTORS) };
    store.change(Change { volumes: vec![create], ..Change::default() })?;
    let mut tags = vec![0; SECTORS as usize];
    for round in 0..60 {
        let start = rng.below(SECTORS);
        let count = rng.between(1, 200).min(SECTORS - start);
        let range = SectorRange::new(start, count);
        let here = start as usize..(start + count) as usize;
        if rng.chance(25) {
            let from = rng.below(SECTORS - count);
            let segment = CopySegment {
                source: volume,
                source_start: Sector(from),
                destination: volume,
                destination_start: Sector(start),
                count: SectorCount(count),
            };
            store.execute(VolumeRequest::Copy { segments: vec![segment] })?;
            tags.copy_within(from as usize..(from + count) as usize, here.start);
        } else {
            let new: Vec<Tag> = (0..count).map(|at| unique_tag(round << 32 | at)).collect();
            let data = DataOut::from_bytes(&bytes_of(&new), range.start.offset_in_block_bytes());
            store.execute(VolumeRequest::Write { volume, range, data, fua: false })?;
            tags[here].copy_from_slice(&new);
        }
        if round % 20 == 19 {
            store.checkpoint()?;
        }
    }
    Ok((volume, tags))
}
