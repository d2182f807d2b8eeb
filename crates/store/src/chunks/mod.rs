//! Chunks: where the content of blocks is, how it is compressed, and the tables that record it.
//!
//! * `table`, `table_name`, `pages`, `cursor`, `visit`: rows of 32 bytes in pages; `rotten`:
//!   damaged pages; `bad_copies`: damaged first copies,
//! * `unplaced`: chunks without a location of their own; `data_cache`: cached data,
//! * `index`, `recent`, `pack`, `unpack`, `groups`: reduction; `verify`: verifying chunks on the
//!   device; `copies`: repair from other copies,
//! * `medium`: reading metadata from the device; `asking`: requesting it instead; `reads`: parallel
//!   reads; `memory`: the common budget; `shards`: locks; `plans`: what stays in memory until a
//!   change is applied.
//!
//! Invariants:
//! 1. A chunk never changes: the same id is the same content, wherever it is.
//! 2. A map refers to chunks, and only a row has a location.
//! 3. A chunk's reference count is the number of entries in live leaves that refer to it.

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
