//! The tables and streams of a checkpoint, read past damage.

use std::collections::BTreeMap;
use std::ops::Range;

use block::VolumeId;
use format::key_space::{LEAF_NUMBERS_MAX, decode_pairs};
use format::page::{PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE, StreamRef, TableRoot};
use format::row::ROW_BYTES;
use format::{LeafRow, Superblock, VolumeRow};

use super::held::Volumes;
use crate::chunks::medium::{Copied, Medium};

/// A used row, or a range of rows that can't be read.
pub(super) enum Row<'a> {
    Found(u64, &'a [u8]),
    Lost(Range<u64>),
}

/// Calls `visit` for all rows of a table below `end`, in order.
pub(super) fn rows(medium: &Medium, root: TableRoot, end: u64, visit: &mut dyn FnMut(Row<'_>)) {
    below(medium, root.page, (root.height, 0), end, visit);
}

fn below(
    medium: &Medium,
    page: PageRef,
    (level, number): (u8, u64),
    end: u64,
    visit: &mut dyn FnMut(Row<'_>),
) {
    let span = ROWS_PER_PAGE.saturating_mul(REFS_PER_DIRECTORY.saturating_pow(u32::from(level)));
    let first = number.saturating_mul(span);
    if page.is_none() || first >= end {
        return;
    }
    let Ok(Copied { content: frame, .. }) = medium.read_page(page) else {
        return visit(Row::Lost(first..first.saturating_add(span).min(end)));
    };
    if level == 0 {
        for (at, raw) in (first..end).zip(frame.chunks_exact(ROW_BYTES)) {
            if raw.iter().any(|byte| *byte != 0) {
                visit(Row::Found(at, raw));
            }
        }
        return;
    }
    for index in 0..REFS_PER_DIRECTORY {
        let child = PageRef::in_directory(&frame[..], index as usize);
        below(medium, child, (level - 1, number * REFS_PER_DIRECTORY + index), end, visit);
    }
}

/// Reads the volumes of a checkpoint.
pub(super) fn volumes(
    medium: &Medium,
    superblock: &Superblock,
    losses: &mut Vec<String>,
) -> Volumes {
    let mut volumes = Volumes::default();
    rows(medium, superblock.volumes, superblock.next_volume.0, &mut |row| match row {
        Row::Found(id, raw) => match VolumeRow::decode(raw, medium.tuning.fanout) {
            Some(VolumeRow::LOST) => volumes.lose(id..id + 1),
            Some(row) => volumes.add(VolumeId(id), row),
            None => {
                losses.push(format!("the row of volume {id} is invalid: the volume is lost"));
                volumes.lose(id..id + 1);
            }
        },
        Row::Lost(ids) => {
            let text = "a page of the volume table can't be read: volumes of ids";
            losses.push(format!("{text} {} to {} are lost", ids.start.max(1), ids.end - 1));
            volumes.lose(ids.start.max(1)..ids.end);
        }
    });
    volumes
}

/// Reads the key-value space of a checkpoint.
pub(super) fn config(
    medium: &Medium,
    superblock: &Superblock,
    losses: &mut Vec<String>,
) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut config = BTreeMap::new();
    if !stream(medium, superblock.config, &mut config) {
        let text =
            "the key-value space can't be read to its end: names, hosts and settings are lost";
        losses.push(text.to_string());
    }
    let mut lost = 0;
    rows(medium, superblock.leaves, LEAF_NUMBERS_MAX, &mut |row| match row {
        Row::Found(_, raw) => {
            let row = LeafRow::decode(raw);
            let is_read = row.is_some_and(|row| stream(medium, row.first, &mut config));
            lost += u64::from(!is_read);
        }
        Row::Lost(numbers) => lost += numbers.end - numbers.start,
    });
    if lost > 0 {
        let text = "leaves of the key-value space can't be read: names, hosts or settings in them";
        losses.push(format!("up to {lost} {text} are lost"));
    }
    config
}

/// Adds the pairs of a stream or a leaf, as far as it can be read; returns whether all of it can.
fn stream(medium: &Medium, first: StreamRef, config: &mut BTreeMap<Vec<u8>, Vec<u8>>) -> bool {
    let (mut bytes, mut next) = (Vec::new(), first);
    while next.length_bytes > 0 {
        let Ok(Copied { content: (behind, part), .. }) = medium.read_piece(next) else { break };
        bytes.extend(part);
        next = behind;
    }
    // The last pair may be incomplete.
    for (key, value) in decode_pairs(&bytes).filter_map(Result::ok) {
        config.insert(key.to_vec(), value.to_vec());
    }
    next.length_bytes == 0
}
