//! Chunks: where the content of blocks is, and how it is packed.
//!
//! * `table`, `pages`, `cursor`, `visit`: rows of 32 bytes in pages, `ids`: the next of them,
//!   `rotten`: with damaged pages,
//! * `bring`: entries that bring chunks, `weightless`, `unplaced`: chunks without a place of their
//!   own,
//! * `data_cache`: data in memory,
//! * `dedup`, `index`, `pack`, `unpack`, `groups`: reduction, `verify`: whether a chunk is what was
//!   written,
//! * `medium`: reading metadata from the device, `memory`: the one budget of all of it.
//!
//! Invariants:
//! 1. A chunk never changes: the same id is the same content, wherever it is.
//! 2. A map names chunks, and only a row names a place.
//! 3. A chunk's references are the entries of live leaves that name it.

pub(crate) mod asking;
pub(crate) mod bad_copies;
pub(crate) mod cursor;
pub(crate) mod data_cache;
pub(crate) mod groups;
pub(crate) mod index;
pub(crate) mod medium;
pub(crate) mod memory;
pub(crate) mod pack;
pub(crate) mod pages;
pub(crate) mod plans;
pub(crate) mod recent;
pub(crate) mod rotten;
pub(crate) mod table;
pub(crate) mod table_name;
pub(crate) mod unpack;
pub(crate) mod unplaced;
pub(crate) mod verify;
pub(crate) mod visit;
