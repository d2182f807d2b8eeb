//! All targets by name, with their seeds.

use crate::{cdb, connection, decode, image, login, parameters, records, requests};

/// A target: its name, what it does with an input, and where the search starts.
pub struct Target {
    /// The name of the program, too.
    pub name: &'static str,
    /// Takes an input; panics where something is wrong.
    pub run: fn(&[u8]),
    /// The inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every target, in the order in which they are run.
pub const TARGETS: [Target; 8] = [
    Target { name: "iscsi_login", run: login::run, seeds: login::seeds },
    Target { name: "iscsi_connection", run: connection::run, seeds: connection::seeds },
    Target { name: "scsi_cdb", run: cdb::run, seeds: cdb::seeds },
    Target { name: "scsi_parameters", run: parameters::run, seeds: parameters::seeds },
    Target { name: "format_decode", run: decode::run, seeds: decode::seeds },
    Target { name: "store_image", run: image::run, seeds: image::seeds },
    Target { name: "array_records", run: records::run, seeds: records::seeds },
    Target { name: "api_requests", run: requests::run, seeds: requests::seeds },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_seed_runs_through() {
        for target in TARGETS {
            let seeds = (target.seeds)();
            assert!(!seeds.is_empty(), "{} has no seeds", target.name);
            for seed in seeds {
                (target.run)(&seed);
            }
        }
    }
}
