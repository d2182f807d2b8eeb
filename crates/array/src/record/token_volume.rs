//! The record of the array's own volume.

use block::VolumeId;
use serde::{Deserialize, Serialize};

use super::row::{VERSION, encode};
use crate::error::Error;

#[derive(Serialize, Deserialize)]
pub(super) struct TokenVolumeRow {
    v: u8,
    id: u64,
}

pub(crate) fn token_volume_key() -> Vec<u8> {
    b"t".to_vec()
}

pub(crate) fn token_volume(id: VolumeId) -> Result<Vec<u8>, Error> {
    encode(&TokenVolumeRow { v: VERSION, id: id.0 })
}

pub(super) fn decode_token_volume(row: &TokenVolumeRow) -> VolumeId {
    VolumeId(row.id)
}
