//! `arrays/ntp-test`: queries the time servers for the clock offset.

use axum::extract::State;

use super::receivers::RestTestResult;
use super::{Answer, ItemsOf, ListParams, Listing, Named, Query, Refusals, answer};
use crate::{Shared, TimeServer};

/// Queries all time servers now, and returns the results. Only for array admins, because it sends
/// messages.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/arrays/ntp-test",
    tag = "arrays",
    params(ListParams),
    responses((status = 200, body = ItemsOf<RestTestResult>), Refusals)
)]
pub(super) async fn try_out(State(interface): Shared, mut query: Query) -> Answer {
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let sender = interface.facts.controller();
        let asked = interface.watch.test_time_servers().into_iter();
        listing.all(&asked.map(|server| result(sender, server)).collect::<Vec<_>>())
    })
    .await
}

fn result(sender: &str, asked: TimeServer) -> RestTestResult {
    let reported = asked.offset_s.map(|offset_s| match offset_s < 0.0 {
        true => format!("The clock is {:.3} s ahead.", -offset_s),
        false => format!("The clock is {offset_s:.3} s behind."),
    });
    RestTestResult {
        component_address: String::new(),
        component_name: sender.into(),
        description: "Queries a time server for the clock offset.".into(),
        destination: asked.server.clone(),
        enabled: true,
        resource: Named { name: asked.server },
        success: reported.is_some(),
        result_details: asked.error.or(reported).unwrap_or_default(),
        test_type: "ntp".into(),
    }
}
