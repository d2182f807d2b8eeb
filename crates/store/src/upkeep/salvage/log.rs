//! Following the log after the checkpoint, as far as it can be read.

use block::FrameMut;
use format::log::LogPosition;
use format::{Entry, Place, RecordHeader};

use super::{LogCut, Salvage};
use crate::chunks::medium::Medium;
use crate::log::log_reader::{LogReader, ReadRecord};
use crate::log::plausible::payload_is_intact;
use crate::log::replay::{Found, may_not_fit, next_record};

impl Salvage {
    /// Follows the log, and returns where it had to stop before its end.
    pub(super) fn follow_log(&mut self) -> Option<LogCut> {
        let mut position = self.superblock.log;
        let mut epoch = 0;
        loop {
            let (found, end) = self.chain(&position, epoch);
            if found.iter().any(|record| record.header.epoch > self.superblock.epoch) {
                self.note_of_epoch();
            }
            if let Some(last_lsn) = last_flushed_behind(&self.world.medium, &end) {
                // So all records before the damage were flushed.
                found.iter().for_each(|record| self.apply(record));
                return Some(self.cut_at(&end, Some(last_lsn)));
            }
            let flushed = found.iter().map(|record| record.header.flushed_lsn).max().unwrap_or(0);
            let torn =
                found.iter().find(|record| record.header.lsn > flushed && self.is_torn(record));
            let torn = torn.map(|record| (record.header.lsn, record.header.epoch));
            for record in &found {
                if torn.is_none_or(|(lsn, _)| record.header.lsn < lsn) {
                    position = record.behind();
                    self.apply(record);
                }
            }
            // An earlier recovery may have ended here, and the log continued in the next segment.
            match torn {
                Some((_, torn_epoch)) => epoch = torn_epoch + 1,
                None => return self.may_go_on(&end).then(|| self.cut_at(&end, None)),
            }
        }
    }

    fn cut_at(&self, end: &LogPosition, last_lsn: Option<u64>) -> LogCut {
        let LogPosition { lsn, segment, block, .. } = *end;
        LogCut { lsn, segment, block, last_lsn, followed: self.followed }
    }

    /// Returns whether the location of the next record can't be read from any device, so that there
    /// may be one. Recovery refuses such a log ([`next_record`]).
    fn may_go_on(&self, end: &LogPosition) -> bool {
        let medium = &self.world.medium;
        let is_in_segment = end.block < medium.geometry().rows();
        let here = is_in_segment.then_some((end.segment, end.block));
        let next = may_not_fit(medium, end).then_some((end.next_segment, 0));
        let mut places = here.into_iter().chain(next);
        places.any(|(segment, row)| !self.can_be_read(Place::of_block(segment, row)))
    }

    /// Returns whether this block can be read from any device or reconstructed.
    fn can_be_read(&self, place: Place) -> bool {
        let disk = &self.world.medium.disk;
        (0..disk.copies()).any(|copy| disk.read_copy(place, copy, &mut [FrameMut::stale()]).is_ok())
    }

    /// Returns the records from a position on, and where the one after them must be.
    fn chain(&mut self, from: &LogPosition, mut epoch: u64) -> (Vec<Found>, LogPosition) {
        let mut reader = LogReader::new(&self.world.medium);
        let mut position = *from;
        let mut found = Vec::new();
        loop {
            match next_record(&mut reader, &position, epoch) {
                Ok(Some(record)) => {
                    epoch = record.header.epoch;
                    position = record.behind();
                    found.push(record);
                }
                Ok(None) => break,
                Err(error) => {
                    let lsn = position.lsn;
                    self.losses.push(format!("record {lsn} of the log: {error}"));
                    break;
                }
            }
        }
        (found, position)
    }

    fn note_of_epoch(&mut self) {
        let text =
            "the log continues after a newer superblock, which can't be read; it is followed";
        if !self.notes.iter().any(|note| note == text) {
            self.notes.push(text.to_string());
        }
    }

    /// Returns whether a record is torn: all of it can be read, and some of it is not what was
    /// written.
    fn is_torn(&self, record: &Found) -> bool {
        let medium = &self.world.medium;
        let RecordHeader { header_blocks, payload_blocks, .. } = record.header;
        let first = u32::from(header_blocks);
        let mut blocks = first..first + payload_blocks;
        !payload_is_intact(medium, record.places, &record.entries).unwrap_or(false)
            && blocks.all(|block| self.can_be_read(record.places.block(block)))
    }

    fn apply(&mut self, record: &Found) {
        for entry in &record.entries {
            self.chunks.apply(entry, record.places);
            self.volumes.apply(entry);
            if let Entry::Config { key, value } | Entry::TargetState { key, value } = entry {
                match value {
                    Some(value) => drop(self.config.insert(key.clone(), value.clone())),
                    None => drop(self.config.remove(key)),
                }
            }
        }
        self.followed += 1;
    }
}

/// Searches after the log's end for records that prove that a missing one was flushed: in the rest
/// of its segment, in all of the next one, and at the beginning of every other one. Returns the LSN
/// of the last record found, if one proves the damage.
fn last_flushed_behind(medium: &Medium, end: &LogPosition) -> Option<u64> {
    let mut search = Search { medium, reader: LogReader::new(medium), end, proven: false, last: 0 };
    let rows = medium.geometry().rows();
    search.segment(end.segment, end.block..rows);
    search.segment(end.next_segment, 0..rows);
    let mut newest = (0, 0);
    for segment in 1..medium.geometry().segment_count {
        if search.is_record(segment)
            && let Some(header) = search.record(segment, 0)
        {
            newest = newest.max((header.lsn, segment));
        }
    }
    if search.proven && newest.0 > end.lsn {
        search.segment(newest.1, 0..rows);
    }
    search.proven.then_some(search.last)
}

struct Search<'a> {
    medium: &'a Medium,
    reader: LogReader<'a>,
    end: &'a LogPosition,
    proven: bool,
    last: u64,
}

impl Search<'_> {
    fn segment(&mut self, segment: u32, rows: std::ops::Range<u32>) {
        let geometry = self.medium.geometry_of(segment);
        let mut row = rows.start;
        while row < rows.end {
            // An older record may be where a write was lost, and extend over what follows.
            let found = self.record(segment, row).filter(|header| header.lsn > self.end.lsn);
            row += found.map_or(1, |header| geometry.rows_for(header.total_blocks()) as u32).max(1);
        }
    }

    fn record(&mut self, segment: u32, block: u32) -> Option<RecordHeader> {
        let ReadRecord { header, .. } = self.reader.record_at(segment, block).ok()??;
        if header.lsn > self.end.lsn {
            self.last = self.last.max(header.lsn);
            self.proven |= header.flushed_lsn >= self.end.lsn;
        }
        Some(header)
    }

    /// Returns whether a record may begin at the start of a segment: reads one block, and nothing
    /// ahead.
    fn is_record(&self, segment: u32) -> bool {
        let mut frames = [FrameMut::stale()];
        let at = Place::of_block(segment, 0);
        let read = self.medium.disk.read_patiently(at, &mut frames);
        read.is_ok() && RecordHeader::decode(&frames[0][..]).is_ok()
    }
}
