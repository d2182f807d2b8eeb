//! The record of array time.

use serde::{Deserialize, Serialize};

use super::{Stored, VERSION, encode};
use crate::Error;
use crate::time::TimeRecord;

#[derive(Serialize, Deserialize)]
pub(super) struct TimeRow {
    v: u8,
    array_ms: u64,
    wall_ms: u64,
}

/// The row with its key.
pub(crate) fn time_row(time: TimeRecord) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
    let TimeRecord { array_ms, wall_ms } = time;
    Ok((vec![b'k'], Some(encode(&TimeRow { v: VERSION, array_ms, wall_ms })?)))
}

pub(super) fn decode_time(row: &TimeRow) -> Stored {
    Stored::Time(TimeRecord { array_ms: row.array_ms, wall_ms: row.wall_ms })
}
