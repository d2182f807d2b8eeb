//! A safe wrapper of libiscsi, the initiator of the lab.
//!
//! The lab and the tests use an initiator from another project, so that an error of Holdfast on the
//! wire can't be hidden by the same error at the other end. The bindings (`ffi`) are handwritten
//! for libiscsi 1.19 as shipped by Debian, and cover only what is used: CDBs are built here
//! ([`Cdb`]), and everything goes through one generic submission.
//!
//! - [`Session`] is one connection to one logical unit. [`Session::submit`] puts a command in
//!   flight and owns its buffer until the command's [`Completion`] returns it.
//! - [`Session::begin`] logs in without blocking; [`Session::connect`] waits for the login.
//! - [`Poller`] drives any number of sessions in one thread.
//! - The methods of `commands.rs` (`Session::inquiry`, `Session::capacity`…) wait for their
//!   response.
//! - [`WireBytes`] is the kernel's count for the socket: TCP payload, in both directions.

#![allow(unsafe_code)] // The bindings are here so that nothing else needs it.

mod cdb;
mod commands;
mod context;
mod discover;
mod ffi;
mod in_flight;
mod login;
mod poller;
mod session;
#[cfg(test)]
mod tests;
mod types;
mod wire;

pub use cdb::{Cdb, CopySegment, Direction, Naa, copy_parameters, unmap_parameters};
pub use commands::{Capacity, LbaStatus, find_naa};
pub use discover::{Target, discover};
pub use poller::Poller;
pub use session::Session;
pub use types::{Completion, Config, Data, Digest, Error, Login, Sense, Status};
pub use wire::WireBytes;
