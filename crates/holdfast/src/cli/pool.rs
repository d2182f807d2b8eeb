//! `pool …`: the verbs of pools.

use std::path::PathBuf;

use api::{Pool, PoolChange};
use serde_json::json;
use store::{OpenOptions, Store};

use super::args::{Common, PoolVerb};
use super::client::Client;
use super::creation::{self, Asked};
use super::failure::Failure;
use super::integrity;
use super::medium::{Medium, Use};
use super::optimize;
use super::output::show;
use super::place::Places;
use super::size::human;
use super::space;

/// A capacity is a multiple of this; the rest is left unused.
pub const CAPACITY_STEP_BYTES: u64 = 1 << 20;

/// Runs a verb.
pub fn run(common: &Common, verb: &PoolVerb) -> Result<(), Failure> {
    match verb {
        PoolVerb::Create { places, capacity, devices, spares, force } => {
            let (capacity, devices, force) = (*capacity, *devices, *force);
            let spares = usize::from(*spares);
            creation::make(common, &Asked { places, capacity, devices, spares, force })
        }
        PoolVerb::Grow { places, capacity } if places.is_empty() => grow(common, *capacity),
        PoolVerb::Grow { places, capacity } => grow_stopped(common, places, *capacity),
        PoolVerb::Upgrade => upgrade(common),
        PoolVerb::Scrub { verb } => integrity::scrub(common, *verb),
        PoolVerb::Optimize { verb, wait } => optimize::run(common, *verb, *wait),
        PoolVerb::Space { refresh } => space::run(common, *refresh),
        PoolVerb::Damage => integrity::damage(common),
    }
}

/// Makes the running array upgrade its pool.
fn upgrade(common: &Common) -> Result<(), Failure> {
    let pool: Pool = Client::find(common)?.post("/v1/pool/upgrade", &json!({}))?;
    show(common.form, &pool, || {
        let version = pool.format_version;
        let left = match pool.upgrade_left_bytes {
            0 => String::new(),
            bytes => {
                format!(" {} of metadata are being rewritten in the background.", human(bytes))
            }
        };
        format!("The pool has version {version} of the format, with all its features.{left}\n")
    })
}

/// Makes the running array grow its pool.
fn grow(common: &Common, capacity: u64) -> Result<(), Failure> {
    let change =
        PoolChange { capacity_bytes: capacity / CAPACITY_STEP_BYTES * CAPACITY_STEP_BYTES };
    let pool: Pool = Client::find(common)?.patch("/v1/pool", &change)?;
    show(common.form, &pool, || {
        format!("The pool now has a capacity of {}.\n", human(pool.capacity_bytes))
    })
}

/// Grows a pool that is not in use.
fn grow_stopped(common: &Common, places: &[PathBuf], capacity: u64) -> Result<(), Failure> {
    let places = Places::of_existing(places)?;
    let medium = Medium::open(&places, Use::Write { may_miss: false })?;
    let wanted = capacity / CAPACITY_STEP_BYTES * CAPACITY_STEP_BYTES;
    // An upgrade of the format is the decision of the next start.
    let options = OpenOptions { upgrade: false, ..OpenOptions::default() };
    let store = Store::open_grown(medium.segments(), options, wanted)?;
    let capacity_bytes = store.pool_status().capacity_bytes;
    let reported = json!({ "pool": places.first().pool, "capacity_bytes": capacity_bytes });
    show(common.form, &reported, || {
        format!("The pool now has a capacity of {}.\n", human(capacity_bytes))
    })
}
