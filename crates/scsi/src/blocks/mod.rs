//! Block commands.
//!
//! * [`read_write`]: READ, WRITE, PRE-FETCH, SYNCHRONIZE CACHE, and the parts common to all
//!   commands,
//! * [`long`]: transfers that are longer than one request,
//! * [`verify`], [`or_write`], [`compare_write`], [`write_same`], [`atomic`], [`unmap`],
//!   [`sanitize`], [`provisioning`]: one command each.

pub(crate) mod atomic;
pub(crate) mod compare_write;
pub(crate) mod long;
pub(crate) mod or_write;
pub(crate) mod provisioning;
pub(crate) mod read_write;
pub(crate) mod sanitize;
pub(crate) mod unmap;
pub(crate) mod verify;
pub(crate) mod write_same;
