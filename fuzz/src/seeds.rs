//! All targets, with their names and seeds.

use std::path::Path;

use crate::{cdb, connection, decode, filter, image, login, parameters, records, requests};

/// A target: its name, its function, and its seeds.
pub struct Target {
    /// The name, also that of the program.
    pub name: &'static str,
    /// Runs an input; panics on a defect.
    pub run: fn(&[u8]),
    /// Returns the first inputs of the search.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets, in the order of running.
pub const TARGETS: [Target; 9] = [
    Target { name: "iscsi_login", run: login::run, seeds: login::seeds },
    Target { name: "iscsi_connection", run: connection::run, seeds: connection::seeds },
    Target { name: "scsi_cdb", run: cdb::run, seeds: cdb::seeds },
    Target { name: "scsi_parameters", run: parameters::run, seeds: parameters::seeds },
    Target { name: "format_decode", run: decode::run, seeds: decode::seeds },
    Target { name: "store_image", run: image::run, seeds: image::seeds },
    Target { name: "array_records", run: records::run, seeds: records::seeds },
    Target { name: "api_filter", run: filter::run, seeds: filter::seeds },
    Target { name: "api_requests", run: requests::run, seeds: requests::seeds },
];

/// The environment variable with the directory for seeds. If set, a target writes its seeds there
/// instead of running.
const DIRECTORY: &str = "FUZZ_SEEDS";

/// Writes the seeds of a target and exits, if `FUZZ_SEEDS` is set.
pub fn write_if_asked(name: &str) {
    let Some(directory) = std::env::var_os(DIRECTORY) else { return };
    match write(Path::new(&directory), name) {
        Ok(()) => std::process::exit(0),
        Err(error) => {
            eprintln!("can't write seeds to {}: {error}", directory.display());
            std::process::exit(1);
        }
    }
}

fn write(directory: &Path, name: &str) -> std::io::Result<()> {
    std::fs::create_dir_all(directory)?;
    for target in TARGETS.iter().filter(|target| target.name == name) {
        for (index, seed) in (target.seeds)().iter().enumerate() {
            std::fs::write(directory.join(format!("seed-{index:03}")), seed)?;
        }
    }
    Ok(())
}

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
