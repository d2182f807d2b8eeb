//! The fields of objects: names, identifiers, credentials, limits, schedules.
//!
//! A value does not depend on objects. Each constructed or decoded value obeys the rules of its
//! type.

pub(crate) mod banner;
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
