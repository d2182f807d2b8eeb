//! Pools on several devices, from seeds that have found something. The program runs more.

use simulator::devices::{STEPS, With, run};
use simulator::seeds_that_failed_once;

#[test]
fn seeds_that_once_failed_pass() {
    for seed in seeds_that_failed_once("devices") {
        if let Err((step, reason, _)) = run(seed, STEPS, With { follows: false, log: false }) {
            panic!("seed {seed}, step {step}: {reason}");
        }
    }
}
