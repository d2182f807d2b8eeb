//! Fuzz targets: what a stranger can send, and what a device may hold, to code that must survive
//! all of it. `docs/testing.md` says how they are run.
//!
//! A target is a function of bytes that panics where something is wrong. Most take the bytes for
//! a list of choices ([`input`]) and build from them what nearly makes sense, so that what lies
//! behind the first checks is reached. [`seeds`] are where the search starts.

pub mod backing;
pub mod cdb;
pub mod connection;
pub mod decode;
pub mod disk;
pub mod filter;
pub mod hosts;
pub mod image;
pub mod input;
pub mod login;
pub mod parameters;
pub mod peer;
pub mod pool;
pub mod records;
pub mod requests;
pub mod seeds;
pub mod volumes;
