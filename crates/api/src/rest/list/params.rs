//! What every list is asked with.

use utoipa::IntoParams;

/// The parameters that every list takes, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct ListParams {
    /// Which items: a condition on their fields, such as `name='db*' and provisioned>=1048576`.
    filter: Option<String>,
    /// By which fields they are ordered, comma-separated; `-` before or behind one turns it round.
    sort: Option<String>,
    /// The most items of a page: up to 1000, which is the default; 0 only counts.
    limit: Option<u64>,
    /// How many items to skip: up to 100000; without a meaning beside a token.
    offset: Option<u64>,
    /// Where to go on: from the last page.
    continuation_token: Option<String>,
    /// Whether to count the items of all pages.
    total_item_count: Option<bool>,
    /// Whether to answer sums over all items instead of the items.
    total_only: Option<bool>,
}
