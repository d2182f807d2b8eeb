//! The parameters of every list.

use utoipa::IntoParams;

/// The parameters that every list takes, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct ListParams {
    /// A condition on the fields of the items, such as `name='db*' and provisioned>=1048576`.
    filter: Option<String>,
    /// The fields to sort by, comma-separated; `-` before or after one reverses it.
    sort: Option<String>,
    /// The most items of a page: up to 1000 (the default); 0 only counts.
    limit: Option<u64>,
    /// How many items to skip: up to 100000; ignored beside a token.
    offset: Option<u64>,
    /// Where to continue: the token of the last page.
    continuation_token: Option<String>,
    /// Whether to count the items of all pages.
    total_item_count: Option<bool>,
    /// Whether to return sums over all items instead of the items.
    total_only: Option<bool>,
}
