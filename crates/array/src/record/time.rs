//! The record of array time.

use serde::{Deserialize, Serialize};

use super::row::{Row, VERSION, encode};
use crate::error::Error;
use crate::objects::time::TimeRecord;

#[derive(Serialize, Deserialize)]
pub(super) struct TimeRow {
    v: u8,
    array_ms: u64,
    wall_ms: u64,
}

/// Returns the record with its key.
pub(crate) fn time_row(time: TimeRecord) -> Result<Row, Error> {
    let TimeRecord { array_ms, wall_ms } = time;
    Ok((vec![b'k'], Some(encode(&TimeRow { v: VERSION, array_ms, wall_ms })?)))
}

pub(super) fn decode_time(row: &TimeRow) -> TimeRecord {
    TimeRecord { array_ms: row.array_ms, wall_ms: row.wall_ms }
}
