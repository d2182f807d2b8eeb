//! The records of target ports.

use serde::{Deserialize, Serialize};

use super::row::{VERSION, damaged, encode};
use crate::error::Error;
use crate::objects::ports::PortPlace;

#[derive(Serialize, Deserialize)]
pub(super) struct PortRow {
    v: u8,
    address: String,
    /// Absent in some records of the first port at an address.
    #[serde(default)]
    nth: u16,
}

pub(crate) fn port_key(id: u16) -> Vec<u8> {
    let [high, low] = id.to_be_bytes();
    vec![b'p', high, low]
}

pub(crate) fn port(place: &PortPlace) -> Result<Vec<u8>, Error> {
    encode(&PortRow { v: VERSION, address: place.address.to_string(), nth: place.nth })
}

pub(super) fn decode_port(key: &[u8], id: &[u8], row: &PortRow) -> Result<(PortPlace, u16), Error> {
    let id = id.try_into().map(u16::from_be_bytes).ok().filter(|id| *id > 0);
    let id = id.ok_or_else(|| damaged(key, "the key is damaged"))?;
    let address = row.address.parse().map_err(|_| damaged(key, "it has no address"))?;
    Ok((PortPlace { address, nth: row.nth }, id))
}
