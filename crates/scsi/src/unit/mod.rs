//! Commands that report and set properties of a unit.
//!
//! * [`inquiry`], [`vpd`], [`third_party`], [`capacity`], [`opcodes`]: identity and capabilities,
//! * [`luns`], [`alua`]: access paths,
//! * [`mode`], [`log`], [`small`], [`attention`]: current state.

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
