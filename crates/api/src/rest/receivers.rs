//! The common parts of `alert-watchers`, `syslog-servers` and `snmp-managers`.

use std::sync::Arc;

use array::Array;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Answer, Items, Listed, Listing, Named, Query, Refused, answer};
use crate::{Interface, NotificationTest};

/// The result of a test of one receiver.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestTestResult {
    /// The address of the component that sends: empty, as the system chooses it.
    pub component_address: String,
    /// The component that sends: the controller that has the pool.
    pub component_name: String,
    /// What the test does.
    pub description: String,
    /// Where it was sent.
    pub destination: String,
    /// Whether alerts are sent to the receiver.
    pub enabled: bool,
    /// The receiver.
    pub resource: Named,
    /// Why it failed, or the clock offset; otherwise empty.
    pub result_details: String,
    /// Whether it was sent.
    pub success: bool,
    /// `sending`, or `ntp` for time servers.
    pub test_type: String,
}

impl Listed for RestTestResult {
    fn key(&self) -> String {
        // A directory service has several servers.
        format!("{} {}", self.resource.name, self.destination)
    }
}

/// A receiver to be tested.
pub(super) struct Tested {
    /// Its name in its list.
    pub(super) name: String,
    /// Its name among all destinations.
    pub(super) notified_as: String,
    /// Where messages to it are sent.
    pub(super) destination: String,
    /// Whether alerts are sent to it.
    pub(super) is_enabled: bool,
}

/// Sends a test event to each receiver of a list that the query names, or to all, and returns the
/// results.
pub(super) async fn tested(
    interface: Arc<Interface>,
    mut query: Query,
    all: impl Fn(&Interface) -> Vec<Tested> + Send + 'static,
) -> Answer {
    let (names, listing) = (query.list("names")?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let mut all = all(interface);
        let is_there = |name: &&String| all.iter().any(|one| one.name.eq_ignore_ascii_case(name));
        if let Some(missing) = names.iter().find(|name| !is_there(name)) {
            return Err(Refused::missing(missing));
        }
        let is_named = |one: &Tested| names.iter().any(|name| one.name.eq_ignore_ascii_case(name));
        all.retain(|one| names.is_empty() || is_named(one));
        let is_wanted = |name: &str| all.iter().any(|one| one.notified_as == name);
        let results = interface.watch.test_notifications(&is_wanted);
        let sender = interface.facts.controller();
        let shown = all.into_iter().map(|tested| result(sender, tested, &results));
        listing.all(&shown.collect::<Vec<_>>())
    })
    .await
}

fn result(sender: &str, tested: Tested, results: &[NotificationTest]) -> RestTestResult {
    let sent = results.iter().find(|result| result.destination == tested.notified_as);
    let error = match (sent, tested.is_enabled) {
        (Some(sent), _) => sent.error.clone(),
        (None, false) => Some("It is not enabled.".into()),
        (None, true) => Some("No mail can be sent: no relay is configured (smtp-servers).".into()),
    };
    RestTestResult {
        component_address: String::new(),
        component_name: sender.into(),
        description: "Sends a test notification.".into(),
        destination: tested.destination,
        enabled: tested.is_enabled,
        resource: Named { name: tested.name },
        success: error.is_none(),
        result_details: error.unwrap_or_default(),
        test_type: "sending".into(),
    }
}

/// Removes the receivers that the query names, all or none.
pub(super) async fn removed(
    interface: Arc<Interface>,
    mut query: Query,
    remove: impl FnOnce(&Array, &[String]) -> Result<(), array::Error> + Send + 'static,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    answer(interface, move |interface| {
        remove(&interface.array, &names)?;
        Items::of::<RestTestResult>([])
    })
    .await
}

/// Returns the named items of a list, as the response to a change.
pub(super) fn named<T: Listed + Clone>(all: &[T], names: &[String]) -> Result<Items, Refused> {
    let is_named = |one: &&T| names.iter().any(|name| one.key().eq_ignore_ascii_case(name));
    Items::of(all.iter().filter(is_named).cloned())
}
