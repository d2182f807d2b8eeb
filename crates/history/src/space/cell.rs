//! The bytes of a sample of space. Numbers of fixed width are little endian, all others LEB128.
//!
//! A cell consists of pages of 4 KiB, so that the figures of a few volumes are read without the
//! others: the first page has an index, the others the volumes in the order of their ids.
//!
//! | bytes of the first page | what |
//! |---|---|
//! | 0..4 | CRC32C of the length of the ring's steps (4 bytes), and of 4.. with the index |
//! | 4..6 | version: 1 |
//! | 6..8 | how many other pages there are |
//! | 8..16 | when the step begins, in milliseconds since 1970 |
//! | 16..24 | the time of the figures, likewise |
//! | 24.. | the first id in each of the other pages, 8 bytes each |
//!
//! | bytes of the others | what |
//! |---|---|
//! | 0..4 | CRC32C of the checksum of the first page, and of 4.. with the volumes |
//! | 4..8 | bytes of the volumes |
//! | 8.. | for each volume its id, size, and mapped, unique, shared and snapshots' bytes |
//!
//! The checksum of a page depends on the first page: a page of an earlier step is not taken.

use std::ops::Range;

use super::{VolumeFigures, Volumes};
use crate::layout::{Ring, SPACE_CELL_BYTES};
use crate::numbers::{NUMBER_BYTES_MAX, number, put};

/// The bytes of a page.
pub(super) const PAGE_BYTES: usize = 4096;
const PAGES_MAX: usize = SPACE_CELL_BYTES / PAGE_BYTES - 1;
const VERSION: u16 = 1;
const HEAD_BYTES: usize = 24;
const PAGE_HEAD_BYTES: usize = 8;
/// The maximum bytes of a volume.
const VOLUME_BYTES_MAX: usize = 6 * NUMBER_BYTES_MAX;

const _: () = {
    assert!(HEAD_BYTES + 8 * PAGES_MAX <= PAGE_BYTES);
    // As many volumes as an array may have always fit.
    assert!((PAGE_BYTES - PAGE_HEAD_BYTES) / VOLUME_BYTES_MAX * PAGES_MAX >= 10_000);
};

/// Encodes the cell of a step. Volumes that do not fit are left out, the newest first.
pub(super) fn encode(ring: &Ring, start_ms: u64, time_ms: u64, volumes: &Volumes) -> Vec<u8> {
    let (mut first_ids, mut pages): (Vec<u64>, Vec<Vec<u8>>) = (Vec::new(), Vec::new());
    let mut record = Vec::with_capacity(VOLUME_BYTES_MAX);
    for (id, figures) in volumes {
        record.clear();
        put(&mut record, (*id).into());
        for bytes in figures.all() {
            put(&mut record, bytes.into());
        }
        let fits = |page: &&mut Vec<u8>| page.len() + record.len() <= PAGE_BYTES;
        if let Some(page) = pages.last_mut().filter(fits) {
            page.extend(&record);
        } else if pages.len() < PAGES_MAX {
            first_ids.push(*id);
            pages.push([&[0; PAGE_HEAD_BYTES][..], &record].concat());
        } else {
            break;
        }
    }
    let mut cell = vec![0; 4];
    cell.extend(VERSION.to_le_bytes());
    cell.extend((pages.len() as u16).to_le_bytes());
    cell.extend(start_ms.to_le_bytes());
    cell.extend(time_ms.to_le_bytes());
    cell.extend(first_ids.into_iter().flat_map(u64::to_le_bytes));
    let of_head = head_checksum(ring, &cell[4..]);
    cell[..4].copy_from_slice(&of_head.to_le_bytes());
    for mut page in pages {
        let len = (page.len() - PAGE_HEAD_BYTES) as u32;
        page[4..8].copy_from_slice(&len.to_le_bytes());
        let checksum = page_checksum(of_head, &page[4..]);
        page[..4].copy_from_slice(&checksum.to_le_bytes());
        cell.resize(cell.len().next_multiple_of(PAGE_BYTES), 0);
        cell.extend(page);
    }
    cell
}

/// The index of a cell.
pub(super) struct Index {
    /// The time of the figures, in milliseconds since 1970.
    pub(super) time_ms: u64,
    first_ids: Vec<u64>,
    checksum: u32,
}

impl Index {
    /// Decodes the first page of a cell; `None` if the cell does not contain the step that begins
    /// then.
    pub(super) fn decode(ring: &Ring, start_ms: u64, page: &[u8]) -> Option<Self> {
        let short = |at: usize| Some(u16::from_le_bytes(page.get(at..at + 2)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(page.get(at..at + 8)?.try_into().ok()?));
        let end = HEAD_BYTES + 8 * usize::from(short(6)?);
        let checksum = u32::from_le_bytes(page.get(..4)?.try_into().ok()?);
        let is_good = checksum == head_checksum(ring, page.get(4..end)?);
        if !is_good || short(4)? != VERSION || long(8)? != start_ms {
            return None;
        }
        let first_ids = (HEAD_BYTES..end).step_by(8).filter_map(long).collect();
        Some(Self { time_ms: long(16)?, first_ids, checksum })
    }

    /// Returns the pages, from 1, that may contain one of these volumes, which are sorted.
    pub(super) fn pages_of(&self, ids: &[u64]) -> Vec<usize> {
        let last = |id: &u64| self.first_ids.partition_point(|first| first <= id);
        let mut pages: Vec<usize> = ids.iter().map(last).filter(|page| *page > 0).collect();
        pages.dedup();
        pages
    }

    /// Adds those of the volumes in a page that are among `ids`, which are sorted. Adds nothing if
    /// the page is damaged.
    pub(super) fn take(&self, page: &[u8], ids: &[u64], volumes: &mut Volumes) {
        let before = volumes.len();
        if self.try_take(page, ids, volumes).is_none() {
            volumes.truncate(before);
        }
    }

    fn try_take(&self, page: &[u8], ids: &[u64], volumes: &mut Volumes) -> Option<()> {
        let word = |at: Range<usize>| Some(u32::from_le_bytes(page.get(at)?.try_into().ok()?));
        let end = PAGE_HEAD_BYTES.checked_add(word(4..8)? as usize)?;
        if page_checksum(self.checksum, page.get(4..end)?) != word(0..4)? {
            return None;
        }
        let mut left = &page[PAGE_HEAD_BYTES..end];
        while !left.is_empty() {
            let id = number(&mut left)?;
            let mut figures = [0; 5];
            for bytes in &mut figures {
                *bytes = number(&mut left)?;
            }
            if ids.binary_search(&id).is_ok() {
                volumes.push((id, VolumeFigures::from_all(figures)));
            }
        }
        Some(())
    }
}

/// Returns a checksum that depends on the ring, so that a cell of one ring is invalid in another.
fn head_checksum(ring: &Ring, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&ring.step_ms.to_le_bytes()), bytes)
}

fn page_checksum(of_head: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&of_head.to_le_bytes()), bytes)
}
