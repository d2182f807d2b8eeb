//! What a host did itself although it was to be offloaded.

use serde::{Deserialize, Serialize};

use crate::host::{Offloads, Primitive};

/// An offload that the array did not do, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InSoftware {
    /// The command: "EXTENDED COPY".
    pub offload: String,
    /// Commands that the array refused, or that failed.
    pub refused: u64,
    /// How often the host did the work itself; for UNMAP, how often it was not done.
    pub by_host: u64,
    /// The bytes that those covered.
    pub by_host_bytes: u64,
    /// Commands that the array did.
    pub by_array: u64,
    /// The bytes that those covered.
    pub by_array_bytes: u64,
}

impl InSoftware {
    /// Returns the offloads that were refused or done by the host.
    pub fn of(offloads: &Offloads) -> Vec<Self> {
        let of = |primitive: &Primitive| {
            let of = offloads.of(*primitive);
            (of.refused + of.by_hand > 0).then(|| Self {
                offload: primitive.command().to_owned(),
                refused: of.refused,
                by_host: of.by_hand,
                by_host_bytes: of.by_hand_bytes,
                by_array: of.done,
                by_array_bytes: of.done_bytes,
            })
        };
        Primitive::ALL.iter().filter_map(of).collect()
    }

    /// Returns the host's fraction of the work, by bytes: 0 to 1.
    pub fn share(&self) -> f64 {
        let all = self.by_host_bytes + self.by_array_bytes;
        if all == 0 { 0.0 } else { self.by_host_bytes as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::InSoftware;
    use crate::host::Offloads;

    fn in_software(by_host_bytes: u64, by_array_bytes: u64) -> InSoftware {
        InSoftware {
            offload: String::from("WRITE SAME"),
            refused: 1,
            by_host: 1,
            by_host_bytes,
            by_array: 1,
            by_array_bytes,
        }
    }

    #[test]
    fn shares_are_relative_to_all_work() {
        assert_eq!(in_software(3, 1).share(), 0.75);
        assert_eq!(in_software(3, 0).share(), 1.0);
        assert_eq!(in_software(0, 0).share(), 0.0);
    }

    #[test]
    fn offloaded_work_is_not_listed() {
        assert_eq!(InSoftware::of(&Offloads::default()), []);
    }
}
