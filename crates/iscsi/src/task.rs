//! A SCSI command in progress, and its data-out.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use block::DataOut;

use crate::budget::Grant;
use crate::event::{Cdb, TaskAttribute};
use crate::session::Place;

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// Waits for earlier requests (CmdSN).
    Held,
    /// Waits for data.
    Collecting,
    /// Passed to the layer above.
    Delivered,
}

/// SCSI status codes (SAM-5, 5.3.1).
const CHECK_CONDITION: u8 = 0x02;
const TASK_SET_FULL: u8 = 0x28;

/// A fault in received data, reported to SCSI (RFC 7143, 11.4.7.2): ABORTED COMMAND, ASC, ASCQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataFault {
    /// 47h/05h: protocol service CRC error; a PDU was lost.
    Crc,
    /// 0Ch/0Dh: less data than was announced.
    Amount,
    /// 0Ch/0Ch: data that was not solicited.
    Unexpected,
    /// It was unsolicited, and there was no memory for it: TASK SET FULL.
    NoMemory,
}

impl DataFault {
    /// Returns the status, and with CHECK CONDITION fixed-format sense data (SPC-4, 4.5.3).
    pub(crate) fn status(self) -> (u8, Vec<u8>) {
        let (asc, ascq) = match self {
            Self::NoMemory => return (TASK_SET_FULL, Vec::new()),
            Self::Crc => (0x47, 0x05),
            Self::Amount => (0x0c, 0x0d),
            Self::Unexpected => (0x0c, 0x0c),
        };
        let mut sense = vec![0; 18];
        sense[0] = 0x70;
        sense[2] = 0x0b;
        sense[7] = 10;
        sense[12] = asc;
        sense[13] = ascq;
        (CHECK_CONDITION, sense)
    }
}

/// A task.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) serial: u32,
    pub(crate) lun: [u8; 8],
    pub(crate) cdb: Cdb,
    pub(crate) attribute: TaskAttribute,
    pub(crate) immediate: bool,
    pub(crate) place: Place,
    pub(crate) expected_out: u32,
    pub(crate) expected_in: u32,
    /// The number of bytes that the CDB takes from the initiator, if known.
    pub(crate) transfer_out: Option<u64>,
    pub(crate) state: TaskState,
    pub(crate) aborted: bool,
    pub(crate) incoming: Collect,
}

/// The data of a task, which arrives in order.
#[derive(Debug, Default)]
pub(crate) struct Collect {
    /// Its destination. Shorter than `wanted` while there is no memory for all of it.
    pub(crate) data: DataOut,
    /// The memory granted to it, beyond that for unsolicited data.
    pub(crate) granted: usize,
    /// Its part of the initiator's share, for its data in either direction.
    pub(crate) taken: Grant,
    /// Whether the layer above waits for more of the share.
    pub(crate) waits: bool,
    /// When data was solicited or announced.
    pub(crate) asked_at: Duration,
    /// The length to receive: what was announced, up to a limit.
    pub(crate) wanted: u32,
    /// The length received.
    pub(crate) received: u32,
    /// Whether unsolicited Data-Out PDUs are expected.
    pub(crate) unsolicited: bool,
    /// The length received before the first R2T.
    pub(crate) unsolicited_end: u32,
    /// DataSN of the next PDU of the current sequence.
    pub(crate) data_sn: u32,
    /// R2Ts sent.
    pub(crate) asked: u32,
    /// R2Ts whose data has arrived.
    pub(crate) answered: u32,
    /// The first fault.
    pub(crate) fault: Option<DataFault>,
}

impl Collect {
    /// Returns the range that R2T number `index` solicits: its offset and end. Consecutive R2Ts are
    /// adjacent, each as long as a burst may be.
    pub(crate) fn solicited(&self, index: u32, burst_bytes: u32) -> (u32, u32) {
        let before = u64::from(index) * u64::from(burst_bytes);
        let start = (u64::from(self.unsolicited_end) + before).min(u64::from(self.wanted));
        let end = (start + u64::from(burst_bytes)).min(u64::from(self.wanted));
        (start as u32, end as u32)
    }

    /// Returns whether everything has arrived, or nothing more will.
    pub(crate) fn is_done(&self) -> bool {
        let ended = !self.unsolicited && self.asked == self.answered;
        ended && (self.received == self.wanted || self.fault.is_some())
    }
}

/// Returns the Target Transfer Tag of an R2T.
pub(crate) fn transfer_tag(serial: u32, index: u32) -> u32 {
    (serial << 13 | index & 0x1fff) & 0x7fff_ffff
}

/// Hashes initiator task tags. An initiator can slow down only its own table, which has at most a
/// window of entries.
#[derive(Default)]
pub(crate) struct TagHasher(u64);

impl Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, tag: u32) {
        self.0 = (self.0 ^ u64::from(tag)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(26);
    }
}

/// Tasks by initiator task tag.
pub(crate) type Tasks = HashMap<u32, Task, BuildHasherDefault<TagHasher>>;
