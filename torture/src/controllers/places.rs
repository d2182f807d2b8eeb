//! The places of hosts.

use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use libiscsi::Session;
use tests_peer::linear::seen::Field;
use tests_peer::linear::zone::{VOLUMES, Values};
use tests_peer::target::{INITIATOR, Target, second};

/// The number of hosts with a path to the first controller, to the second one, and to both.
const HOSTS: [usize; 3] = [3, 3, 2];
/// All of them.
pub const HOST_COUNT: usize = HOSTS[0] + HOSTS[1] + HOSTS[2];

/// Returns the class of a host: its index in [`HOSTS`].
pub fn class(number: usize) -> usize {
    let mut end = 0;
    let within = |count: &usize| {
        end += count;
        number < end
    };
    HOSTS.iter().position(within).unwrap_or(HOSTS.len() - 1)
}

/// Returns the paths of a host to a volume.
pub fn paths_of(number: usize, target: &Target, portals: &[String]) -> Vec<Target> {
    let initiators = [INITIATOR.to_owned(), second(INITIATOR)];
    let initiator = initiators[number / VOLUMES % 2].clone();
    let at = |portal: &String| Target {
        portal: portal.clone(),
        initiator: initiator.clone(),
        ..target.clone()
    };
    match class(number) {
        2 => portals.iter().map(at).collect(),
        of => vec![at(&portals[of])],
    }
}

/// Returns what all hosts share of these volumes.
///
/// # Errors
/// If their names can't be read.
pub fn field(targets: &[Target; VOLUMES]) -> Result<Field> {
    let mut names = Vec::new();
    for target in targets {
        let name = Session::connect(&target.config())?.naa()?;
        names.push(name.context("a volume has no NAA name")?);
    }
    let names = names.try_into().map_err(|_| anyhow!("the number of volumes is fixed"))?;
    Ok(Field { clock: Instant::now(), values: Values::default(), names })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_of_three_classes() {
        let classes: Vec<usize> = (0..8).map(class).collect();
        assert_eq!(classes, [0, 0, 0, 1, 1, 1, 2, 2]);
    }
}
