//! `alerts`: alerts, in the terms of REST 2.x.

use std::collections::BTreeSet;

use array::Error;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ids::{Ids, Kind};
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, Listing, Query, Refusals, Refused, Selection,
    SelectionParams, answer, each,
};
use crate::{Interface, Shared};

/// An alert.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestAlert {
    /// Its id, which is never used again.
    pub id: String,
    /// Its number, from 1.
    pub name: String,
    /// The observed value.
    pub actual: String,
    /// `array`, `hardware` or `software`.
    pub category: String,
    /// When it was closed, in milliseconds since 1970; `null` until then.
    #[schema(required = true)]
    pub closed: Option<u64>,
    /// What kind of alert it is: a number that does not change.
    pub code: u32,
    /// The name of the affected host, group, and so on.
    pub component_name: String,
    /// The type of that object.
    pub component_type: String,
    /// When it was opened, in milliseconds since 1970.
    pub created: u64,
    /// What to do about it.
    pub description: String,
    /// The expected value.
    pub expected: String,
    /// Whether it still needs attention.
    pub flagged: bool,
    /// What is wrong, in a few words.
    pub issue: String,
    /// The document of the program that describes it.
    pub knowledge_base_url: String,
    /// When a notification of it was last sent, in milliseconds since 1970; `null` until then.
    #[schema(required = true)]
    pub notified: Option<u64>,
    /// `info`, `warning` or `critical`.
    #[schema(value_type = crate::words::AlertSeverity)]
    pub severity: String,
    /// `open`, `closing` or `closed`.
    #[schema(value_type = crate::words::AlertState)]
    pub state: String,
    /// What is wrong, on one line.
    pub summary: String,
    /// When it last changed, in milliseconds since 1970.
    pub updated: u64,
}

impl RestAlert {
    fn of(alert: array::Alert, ids: Ids) -> Self {
        let alert = crate::Alert::from(alert);
        Self {
            id: ids.id(Kind::Alert, alert.number),
            name: alert.number.to_string(),
            actual: alert.actual,
            category: alert.category,
            closed: alert.closed_ms,
            code: alert.code,
            component_name: alert.component,
            component_type: alert.component_type,
            created: alert.created_ms,
            description: alert.advice,
            expected: alert.expected,
            flagged: alert.flagged,
            issue: alert.name.replace('-', " "),
            knowledge_base_url: alert.document,
            notified: alert.told_ms,
            severity: alert.severity,
            state: alert.state,
            summary: alert.summary,
            updated: alert.updated_ms,
        }
    }
}

impl Listed for RestAlert {
    /// Returns a key that sorts by number.
    fn key(&self) -> String {
        format!("{:>20}", self.name)
    }
}

/// The changes of alerts.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AlertPatch {
    /// Whether they still need attention.
    flagged: bool,
}

/// The parameter that selects flagged alerts, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct FlaggedParam {
    /// Only flagged ones, or only the others; if left out, both.
    flagged: Option<bool>,
}

/// Returns the numbers of the selected alerts.
fn numbers(interface: &Interface, selection: &Selection) -> Result<Vec<u64>, Refused> {
    let ids = Ids::of(&interface.array);
    let names = selection.names(|id| Some(ids.number(Kind::Alert, id)?.to_string()))?;
    each(&names, |name| {
        let number: Result<u64, _> = name.parse();
        // Accepts only the canonical form: an alert has one name.
        let number = number.ok().filter(|number| number.to_string() == name);
        let number = number.ok_or_else(|| Error::NoSuchAlert(array::shown(name)))?;
        Ok(interface.array.alert(number)?.number)
    })
}

/// Lists all alerts that are kept, or some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/alerts",
    tag = "alerts",
    params(SelectionParams, FlaggedParam, ListParams),
    responses((status = 200, body = ItemsOf<RestAlert>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let (selection, flagged) = (Selection::take(&mut query)?, query.flag("flagged")?);
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let ids = Ids::of(&interface.array);
        let mut found = match selection.is_empty() {
            true => interface.array.alerts(0, usize::MAX),
            false => {
                let numbers: BTreeSet<u64> = numbers(interface, &selection)?.into_iter().collect();
                let found: Result<Vec<_>, Error> =
                    numbers.into_iter().map(|number| interface.array.alert(number)).collect();
                found?
            }
        };
        found.retain(|alert| flagged.is_none_or(|flagged| alert.flagged == flagged));
        let items: Vec<_> = found.into_iter().map(|alert| RestAlert::of(alert, ids)).collect();
        listing.all(&items)
    })
    .await
}

/// Sets whether alerts still need attention.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/alerts",
    tag = "alerts",
    params(SelectionParams),
    request_body = AlertPatch,
    responses((status = 200, body = ItemsOf<RestAlert>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<AlertPatch>,
) -> Answer {
    let selection = Selection::required(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let ids = Ids::of(&interface.array);
        let numbers = numbers(interface, &selection)?;
        let changed = interface.array.flag_alerts(&numbers, asked.flagged)?;
        Items::of(changed.into_iter().map(|alert| RestAlert::of(alert, ids)))
    })
    .await
}
