//! What objects are made of: names, identifiers, credentials, limits, schedules.
//!
//! A value knows no object. One that was made or decoded obeys the rules of its type.

pub mod chap;
pub mod container;
pub(crate) mod dns;
pub mod identity;
pub mod limits;
pub mod name;
pub(crate) mod naming;
pub(crate) mod ntp;
pub(crate) mod password;
pub mod personality;
pub mod receivers;
pub(crate) mod reduction;
pub mod retention;
pub mod schedule;
pub mod space;
pub(crate) mod text;
