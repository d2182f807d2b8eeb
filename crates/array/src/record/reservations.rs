//! The records into which earlier versions split the reservations of a volume. They are read, but
//! never written.

use block::VolumeId;
use format::target_state::{NexusName, Registration};
use serde::Deserialize;

use super::row::{damaged, key};
use crate::error::Error;

/// A part of the reservations of a volume.
pub(crate) struct ReservationPart {
    /// The number of parts.
    pub parts: usize,
    pub type_code: Option<u8>,
    pub holder: Option<usize>,
    /// The registrations of this part.
    pub registrations: Vec<Registration>,
}

/// Registrations as (initiator, ISID as a number, target port, key).
#[derive(Deserialize)]
pub(super) struct ReservationRow {
    parts: u64,
    #[serde(default, rename = "type")]
    type_code: Option<u8>,
    #[serde(default)]
    holder: Option<u64>,
    registrations: Vec<(String, u64, u16, u64)>,
}

pub(crate) fn reservation_key(volume: VolumeId, number: usize) -> Vec<u8> {
    key(b'r', &[volume.0, number as u64])
}

pub(super) fn decode_reservation(
    key: &[u8],
    row: ReservationRow,
) -> Result<ReservationPart, Error> {
    let number = |n: u64| usize::try_from(n).map_err(|_| damaged(key, "a number is too big"));
    let decoded = |(initiator, isid, target_port, key_of): (String, u64, u16, u64)| {
        let [0, 0, isid @ ..] = isid.to_be_bytes() else {
            return Err(damaged(key, "an ISID is too big"));
        };
        Ok(registration(initiator, isid, target_port, key_of))
    };
    Ok(ReservationPart {
        parts: number(row.parts)?,
        type_code: row.type_code,
        holder: row.holder.map(number).transpose()?,
        registrations: row.registrations.into_iter().map(decoded).collect::<Result<_, _>>()?,
    })
}

/// Returns a registration that an earlier version stored.
fn registration(host: String, isid: [u8; 6], target_port: u16, key: u64) -> Registration {
    let mut id = [0; 16];
    id[..6].copy_from_slice(&isid);
    Registration { nexus: NexusName { target_port, id, host }, key }
}
