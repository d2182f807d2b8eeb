//! Chunks: where the content of blocks is, and how it is packed; and the tables that say so.
//!
//! * `table`, `table_name`, `pages`, `cursor`, `visit`: rows of 32 bytes in pages, `rotten`: with
//!   damaged pages, `bad_copies`: with damaged first copies,
//! * `unplaced`: chunks without a place of their own, `data_cache`: data in memory,
//! * `index`, `recent`, `pack`, `unpack`, `groups`: reduction, `verify`: whether a chunk is what
//!   was written, `copies`: where one device has something else than others,
//! * `medium`: reading metadata from the device, `asking`: asking for it instead, `reads`: reads
//!   that go on side by side, `memory`: the one budget of all of it, `shards`: its locks, `plans`:
//!   what stays there until a change is applied.
//!
//! Invariants:
//! 1. A chunk never changes: the same id is the same content, wherever it is.
//! 2. A map names chunks, and only a row names a place.
//! 3. A chunk's references are the entries of live leaves that name it.

pub(crate) mod asking;
pub(crate) mod bad_copies;
pub(crate) mod copies;
pub(crate) mod cursor;
pub(crate) mod data_cache;
pub(crate) mod groups;
pub(crate) mod index;
pub(crate) mod medium;
pub(crate) mod memory;
pub(crate) mod pack;
pub(crate) mod pages;
pub(crate) mod plans;
pub(crate) mod reads;
pub(crate) mod recent;
pub(crate) mod rotten;
pub(crate) mod shards;
pub(crate) mod table;
pub(crate) mod table_name;
pub(crate) mod unpack;
pub(crate) mod unplaced;
pub(crate) mod verify;
pub(crate) mod visit;
