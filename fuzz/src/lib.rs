//! Fuzz targets for code with untrusted input: from the network and from devices. `docs/testing.md`
//! shows how to run them.
//!
//! A target is a function of bytes that panics on a defect. Most targets interpret the bytes as a
//! list of choices ([`input`]), and build nearly valid structures from them, so that these pass the
//! first checks. The search starts from [`seeds`].

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
