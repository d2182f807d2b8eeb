//! The initiator against the target crate with a small disk, and against handmade PDUs.

mod data;
mod ends;
mod liar;
mod login;
mod login_violations;
mod numbers;
mod violations;
mod wire;

use crate::*;

pub(super) const NAME: &str = "iqn.2026-01.example:initiator";
pub(super) const TARGET: &str = "iqn.2026-01.example:target";
pub(super) const LUN: [u8; 8] = [0, 1, 0, 0, 0, 0, 0, 0];

pub(super) fn options() -> Options {
    Options {
        initiator_name: NAME.to_owned(),
        target_name: TARGET.to_owned(),
        ..Options::default()
    }
}
