//! Values that objects are made of, each checked when it is made: names, identifiers, credentials,
//! limits, schedules. None of them knows an object.

pub mod chap;
pub mod identity;
pub mod limits;
pub mod name;
pub mod personality;
pub(crate) mod reduction;
pub mod retention;
pub mod schedule;
pub mod space;
pub(crate) mod text;
