//! Opening a pool in order to serve it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use array::{Array, Settings};
use block::ArrayIdentity;
use front::PortOptions;
use management::notify::Destination;
use management::notify::config::destinations;
use store::{Follower, OpenOptions, Store, StoreError};
use sys::wall::now_ms;

use super::access::HostAccess;
use super::args::ServeArgs;
use super::config::{Config, Durability};
use super::descriptors::Shares;
use super::failure::Failure;
use super::medium::{Medium, Use};
use super::members::Members;
use super::place::{Place, Places};
use super::turn::Turn;
use crate::serve::controllers::Controller;
use crate::serve::{Pair, ScrubOptions, ServeOptions};

/// The parts of an open pool that management needs.
pub struct Opened {
    pub array: Arc<Array>,
    pub store: Arc<Store>,
    pub members: Arc<Members>,
    pub settings: Settings,
    pub durability: Durability,
    pub destinations: Vec<Destination>,
    /// Which controller this is.
    pub own: Controller,
    /// The number of portals of the other controller.
    pub elsewhere: usize,
    /// Whether it is to give the pool up to the other controller.
    pub gives_way: Arc<AtomicBool>,
}

/// Opens the pool: returns the parts for management, and the options for serving.
pub fn open(
    places: &Places,
    config: &Config,
    options: &ServeArgs,
    shares: Shares,
    turn: Turn,
) -> Result<(Opened, ServeOptions), Failure> {
    let chap = config.chap_defaults()?;
    let destinations = destinations(&config.notify)?;
    let purpose = Use::Write { may_miss: options.devices_missing };
    let medium = Medium::open_slowed(places, purpose, options.slow_device_for_tests)?;
    turn.fence.iter().try_for_each(|fence| fence.look_at(&medium))?;
    if let Some(devices) = medium.several() {
        devices.set_lost_after(config.rebuild_after.unwrap_or(Duration::MAX));
    }
    let options_of_store = turn.store_options(config);
    let opened = match turn.follower {
        None => Store::open(medium.segments(), options_of_store),
        Some(follower) => take_over(&medium, options_of_store, follower),
    };
    let store = Arc::new(opened.map_err(|error| of_opening(error, places.first()))?);
    let array = Arc::new(Array::open(store.clone(), config.durability == Durability::Flush)?);
    let settings = array.change_settings(config.settings()?)?;
    let (portals, elsewhere) = ports(&array, options, turn.own)?;
    let serving = ServeOptions {
        medium: medium.segments(),
        files: medium.files().into_iter().map(|(_, file)| file).collect(),
        notices: medium.notices(),
        store: store.clone(),
        token_volume: array.token_volume(),
        identity: identity(&settings),
        target_alias: settings.name.to_string(),
        portals,
        pair: turn.meeting.map(|meeting| Pair {
            own: turn.own,
            meeting,
            portals: elsewhere.clone(),
            is_symmetric: config.symmetric_access,
            gives_way: turn.gives_way.clone(),
            addresses: turn.addresses,
        }),
        kept: turn.kept,
        handed: turn.handed,
        lease: turn.fence.as_ref().map(|fence| fence.guard().lease()),
        access: Arc::new(HostAccess::new(array.clone(), chap)),
        luns: array.clone(),
        duties: array.clone(),
        reservations: array.clone(),
        limits: config.iscsi.limits(),
        connections: shares.hosts,
        threads: config.threads,
        prepare_ahead_bytes: config.prepare_ahead,
        scrub: ScrubOptions { interval: config.scrub, rate_bytes: config.scrub_rate, now_ms },
        optimize_interval: config.optimize,
    };
    let (own, gives_way, durability) = (turn.own, turn.gives_way, config.durability);
    let members = Arc::new(Members::new(medium, store.clone(), turn.fence));
    let opened = Opened {
        array,
        store,
        members,
        settings,
        durability,
        destinations,
        own,
        elsewhere: elsewhere.len(),
        gives_way,
    };
    Ok((opened, serving))
}

/// Takes the pool over from the state of a follower, if that is usable.
fn take_over(
    medium: &Medium,
    options: OpenOptions,
    follower: Follower,
) -> Result<Store, StoreError> {
    let (records, began) = (follower.records(), Instant::now());
    let (store, was_followed) = Store::take_over(medium.segments(), options, follower)?;
    let took_ms = began.elapsed().as_millis();
    match was_followed {
        true => {
            tracing::info!("the log was followed by {records} records; the rest took {took_ms} ms")
        }
        false => tracing::info!("the pool was recovered from its checkpoint, in {took_ms} ms"),
    }
    Ok(store)
}

/// Returns the ports of this controller, and those of the other one. The order of all is the same
/// on both, so that each port keeps its id whichever controller has the pool.
fn ports(
    array: &Array,
    options: &ServeArgs,
    own: Controller,
) -> Result<(Vec<PortOptions>, Vec<PortOptions>), Failure> {
    let addresses: Vec<SocketAddr> = options.iscsi.iter().map(|arg| arg.address).collect();
    let ids = array.port_ids(&addresses)?;
    let all = options.iscsi.iter().zip(ids).map(|(arg, id)| (arg.controller, arg.options(id)));
    let (of_own, of_other): (Vec<_>, Vec<_>) = all.partition(|(controller, _)| *controller == own);
    let ports = |of: Vec<(Controller, PortOptions)>| of.into_iter().map(|(_, port)| port).collect();
    Ok((ports(of_own), ports(of_other)))
}

/// Returns the failure for a pool that does not open, with what to do.
fn of_opening(error: StoreError, place: &Place) -> Failure {
    let StoreError::Damaged(_) = &error else { return error.into() };
    let pool = place.pool.display();
    Failure::Refused(format!(
        "{error}; holdfast inspect {pool} shows details, and holdfast salvage {pool} --to DIR \
         copies what can still be read"
    ))
}

/// Returns the identity of the array for hosts. ESXi copies only between volumes of one product.
fn identity(settings: &Settings) -> ArrayIdentity {
    ArrayIdentity {
        vendor: "HOLDFAST".into(),
        product: "Holdfast".into(),
        revision: revision(env!("CARGO_PKG_VERSION")),
        target_name: settings.target_name.to_string(),
    }
}

/// Returns the PRODUCT REVISION LEVEL of a version: four characters, which hold `major.minor`,
/// without the dot if that is too long.
fn revision(version: &str) -> String {
    let mut parts = version.split(['.', '-', '+']);
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let with_dot = format!("{major}.{minor}");
    if with_dot.len() <= 4 { with_dot } else { format!("{major}{minor}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_revision_is_never_truncated_within_a_number() {
        for (version, reported) in [("0.1.0", "0.1"), ("1.12.3", "1.12"), ("10.12.0-rc1", "1012")] {
            assert_eq!(revision(version), reported);
        }
        assert!((1..=4).contains(&revision(env!("CARGO_PKG_VERSION")).len()));
    }
}
