//! `arrays/ntp-test`: asks the time servers for the offset of the clock.

use axum::extract::State;

use super::receivers::RestTestResult;
use super::{Answer, ItemsOf, ListParams, Listing, Named, Query, Refusals, answer};
use crate::{Shared, TimeServer};

/// Asks all time servers now, and returns what came of it. Array admins only, as it has something
/// sent.
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
    let told = asked.offset_s.map(|offset_s| match offset_s < 0.0 {
        true => format!("The clock is {:.3} s ahead.", -offset_s),
        false => format!("The clock is {offset_s:.3} s behind."),
    });
    RestTestResult {
        component_address: String::new(),
        component_name: sender.into(),
        description: "Asks a time server how far the clock is off.".into(),
        destination: asked.server.clone(),
        enabled: true,
        resource: Named { name: asked.server },
        success: told.is_some(),
        result_details: asked.error.or(told).unwrap_or_default(),
        test_type: "ntp".into(),
    }
}
