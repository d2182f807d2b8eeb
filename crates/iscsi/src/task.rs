//! A SCSI command on its way, and the data that it brings.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::Duration;

use block::DataOut;

use crate::budget::Grant;
use crate::event::{Cdb, TaskAttribute};
use crate::session::Place;

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TaskState {
    /// Waits for requests before it (CmdSN).
    Held,
    /// Waits for data.
    Collecting,
    /// The layer above has it.
    Delivered,
}

/// SCSI status codes (SAM-5, 5.3.1).
const CHECK_CONDITION: u8 = 0x02;
const TASK_SET_FULL: u8 = 0x28;

/// What SCSI is told of data that came wrong (RFC 7143, 11.4.7.2): ABORTED COMMAND, ASC, ASCQ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataFault {
    /// 47h/05h: protocol service CRC error; a PDU was lost.
    Crc,
    /// 0Ch/0Dh: not as much data as was announced.
    Amount,
    /// 0Ch/0Ch: data that nobody asked for.
    Unexpected,
    /// It came unasked, and there was no memory for it: TASK SET FULL.
    NoMemory,
}

impl DataFault {
    /// The status, and with CHECK CONDITION fixed-format sense data (SPC-4, 4.5.3).
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
    /// What the CDB takes from the initiator, where that is known.
    pub(crate) transfer_out: Option<u64>,
    pub(crate) state: TaskState,
    pub(crate) aborted: bool,
    pub(crate) incoming: Collect,
}

/// The data of a task, which comes in order.
#[derive(Debug, Default)]
pub(crate) struct Collect {
    /// Where it goes. Shorter than `wanted` while there is no memory for all.
    pub(crate) data: DataOut,
    /// How much memory was granted to it, beyond that for data that comes unasked.
    pub(crate) granted: usize,
    /// How much it has of its initiator's share: for its data, in whichever direction.
    pub(crate) taken: Grant,
    /// Whether the layer above waits for more of that.
    pub(crate) waits: bool,
    /// When it was asked for data, or announced it.
    pub(crate) asked_at: Duration,
    /// How much is to come: what was announced, up to a limit.
    pub(crate) wanted: u32,
    /// How much has come.
    pub(crate) received: u32,
    /// Whether unsolicited Data-Out PDUs are to come.
    pub(crate) unsolicited: bool,
    /// How much came before the first R2T.
    pub(crate) unsolicited_end: u32,
    /// DataSN of the next PDU of the current sequence.
    pub(crate) data_sn: u32,
    /// R2Ts that were sent.
    pub(crate) asked: u32,
    /// R2Ts whose data has come.
    pub(crate) answered: u32,
    /// What went wrong, first.
    pub(crate) fault: Option<DataFault>,
}

impl Collect {
    /// What R2T number `index` asks for: its offset and end. They follow each other, each as long
    /// as a burst may be.
    pub(crate) fn solicited(&self, index: u32, burst_bytes: u32) -> (u32, u32) {
        let before = u64::from(index) * u64::from(burst_bytes);
        let start = (u64::from(self.unsolicited_end) + before).min(u64::from(self.wanted));
        let end = (start + u64::from(burst_bytes)).min(u64::from(self.wanted));
        (start as u32, end as u32)
    }

    /// Whether all has come, or nothing more will.
    pub(crate) fn is_done(&self) -> bool {
        let ended = !self.unsolicited && self.asked == self.answered;
        ended && (self.received == self.wanted || self.fault.is_some())
    }
}

/// The Target Transfer Tag of an R2T.
pub(crate) fn transfer_tag(serial: u32, index: u32) -> u32 {
    (serial << 13 | index & 0x1fff) & 0x7fff_ffff
}

/// Spreads initiator task tags over the table. An initiator can only make its own table slow, and
/// that has at most a window of entries.
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
