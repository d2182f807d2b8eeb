//! The power fails at every single I/O of small histories.

use simulator::disk::Survival;
use simulator::{Plan, run};
use store::Durability;

fn small(seed: u64, durability: Durability) -> Plan {
    Plan { steps: 90, random_crashes: false, ..Plan::new(seed, durability) }
}

fn at_every_io(seed: u64, durability: Durability) {
    let plan = small(seed, durability);
    let io_count = run(&plan).unwrap_or_else(|failure| panic!("{failure}")).io_count;
    assert!(io_count > 20, "a history of {io_count} I/Os shows little");
    let survivals =
        [Survival::Nothing, Survival::All, Survival::Writes, Survival::Sectors, Survival::Torn];
    for fuse in 1..=io_count {
        for survival in survivals {
            // In three of four cases recovery is struck too, at each of its own I/Os.
            let open_fuse = Some(fuse % 4).filter(|io| *io > 0);
            let (survival_seed, survival) = (seed ^ fuse, Some(survival));
            let plan = Plan { fuse: Some(fuse), open_fuse, survival, survival_seed, ..plan };
            if let Err(failure) = run(&plan) {
                panic!("power failure at I/O {fuse}, {survival:?}: {failure}");
            }
        }
    }
}

#[test]
fn at_every_io_with_answers_from_the_medium() {
    at_every_io(0, Durability::Commit);
}

#[test]
fn at_every_io_with_answers_from_memory() {
    at_every_io(1, Durability::Flush);
}
