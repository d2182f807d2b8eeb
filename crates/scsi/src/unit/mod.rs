//! Commands that ask what a unit is and how it is, and set what can be set.
//!
//! * [`inquiry`], [`vpd`], [`third_party`], [`capacity`], [`opcodes`]: what it is, and can do,
//! * [`luns`], [`alua`]: how hosts reach it,
//! * [`mode`], [`log`], [`small`], [`attention`]: how it is.

pub(crate) mod alua;
pub(crate) mod attention;
pub(crate) mod capacity;
pub(crate) mod inquiry;
pub(crate) mod log;
pub(crate) mod luns;
pub(crate) mod mode;
pub(crate) mod opcodes;
pub(crate) mod small;
pub(crate) mod third_party;
pub(crate) mod vpd;
