//! The tables and streams of a checkpoint, read past what is damaged.

use std::collections::BTreeMap;
use std::ops::Range;

use block::VolumeId;
use format::codec::Reader;
use format::page::{PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE, StreamRef, TableRoot};
use format::row::ROW_BYTES;
use format::{FormatError, Superblock, VolumeRow};

use super::held::Volumes;
use crate::chunks::medium::{Copied, Medium};

/// A row in use, or a range of rows that can't be read.
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

/// The volumes of a checkpoint.
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
                losses.push(format!("the row of volume {id} is impossible: it is lost"));
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

/// The key-value space of a checkpoint.
pub(super) fn config(
    medium: &Medium,
    first: StreamRef,
    losses: &mut Vec<String>,
) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut bytes = Vec::new();
    let mut next = first;
    while next.length_bytes > 0 {
        let Ok(Copied { content: (behind, part), .. }) = medium.read_piece(next) else {
            let text =
                "the key-value space can't be read to its end: names, hosts and settings are lost";
            losses.push(text.to_string());
            break;
        };
        bytes.extend(part);
        next = behind;
    }
    let mut config = BTreeMap::new();
    // The last one may be cut.
    while_decoded(&bytes, |key, value| drop(config.insert(key.to_vec(), value.to_vec())));
    config
}

fn while_decoded(bytes: &[u8], mut each: impl FnMut(&[u8], &[u8])) {
    let mut reader = Reader::new(bytes);
    let mut one = || -> Result<(), FormatError> {
        let key_bytes = usize::from(reader.u8()?);
        let value_bytes = reader.u32()? as usize;
        let key = reader.bytes(key_bytes)?;
        each(key, reader.bytes(value_bytes)?);
        Ok(())
    };
    while one().is_ok() {}
}
