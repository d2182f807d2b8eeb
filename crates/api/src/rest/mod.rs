//! REST 2.x: `/api/2.0/…` to `/api/2.42/…`, the interface of published clients of FlashArrays, as
//! far as they use it. All minor versions have the same handlers.
//!
//! # How to add a resource
//!
//! 1. A separate file, with a type of its items that is `Serialize` and `ToSchema`, created from
//!    the types of `array`, and [`Listed`] for it.
//! 2. Handlers. Each takes its parameters from the [`Query`], in groups ([`Listing`],
//!    [`Selection`]) or one by one, and ends with `query.end()?`, which refuses the rest.
//!    Work that may wait for the store runs in [`answer`].
//! 3. A line with its handlers in [`routes`]. The description comes from the attributes.
//!
//! ```text
//! #[utoipa::path(get, path = "/api/2.{minor}/things", tag = "things",
//!     params(SelectionParams, ListParams),
//!     responses((status = 200, body = ItemsOf<RestThing>), Refusals))]
//! pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
//!     let (named, listing) = (query.list("names")?, Listing::take(&mut query)?);
//!     query.end()?;
//!     answer(interface, move |interface| {
//!         if !named.is_empty() {
//!             // A name that does not exist refuses the request.
//!             return listing.all(&each(&named, |name| Ok(interface.array.thing(name)?.into()))?);
//!         }
//!         listing.pieces(|after, limit| Ok(things_of(interface, after, limit)))
//!     })
//!     .await
//! }
//!
//! pub(super) async fn create(State(interface): Shared, mut query: Query,
//!     Body(asked): Body<ThingPost>) -> Answer {
//!     let names = query.required("names")?;
//!     query.end()?;
//!     answer(interface, move |interface| Items::of(interface.array.create_things(…)?)).await
//! }
//! ```
//!
//! A request with several names changes all of them in one commit, or none. A refusal is
//! [`Refused`], made of an [`array::Error`] by `?`; what the array can't do is
//! [`Refused::unsupported`], never a success that did nothing.

mod admins;
mod alert_watchers;
mod alerts;
mod arrays;
mod audits;
mod certificate_posts;
mod certificates;
mod connections;
mod container_space;
mod containers;
mod directory_roles;
mod directory_services;
mod dns;
pub mod filter;
mod hardware;
mod host_groups;
mod hosts;
mod ids;
mod interface_performance;
mod joint_space;
mod list;
mod lists;
mod members;
mod ntp_test;
mod order;
mod performance;
mod performance_by_array;
mod performance_groups;
mod performance_lists;
mod pod_parts;
mod pods;
mod port_initiators;
mod project;
mod protected;
mod protection_group_snapshots;
mod protection_groups;
mod protection_members;
mod qos;
mod query;
mod receivers;
mod refused;
mod selection;
mod sessions;
mod smtp;
mod snmp_managers;
mod space;
mod space_history;
mod strict;
mod syslog_servers;
mod tags;
mod versions;
mod volume_groups;
mod volume_parts;
mod volume_places;
mod volume_snapshots;
mod volume_space;
mod volumes;

use std::sync::Arc;

use axum::response::IntoResponse;
use axum::routing::any;
use axum::{Json, Router, middleware};
use serde::Serialize;
use utoipa::openapi::path::{ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{ArrayItems, ObjectBuilder, Type};
use utoipa::openapi::{AllOfBuilder, Ref, RefOr, Required, Schema};
use utoipa::{OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::described::operations;
use crate::{Interface, access};

pub use filter::{Filter, FilterError};
pub use list::Items;
pub(crate) use list::{Glance, ListParams, Listed, Listing, Worth};
pub(crate) use query::{Body, Query};
pub(crate) use refused::{Refusals, Refused};
pub use refused::{RestFault, RestRefusal};
pub(crate) use selection::{DestroyedParam, NameParams, Selection, SelectionParams, each};
pub use selection::{MaybeNamed, Named};

/// The replacement of a secret in responses.
const HIDDEN: &str = "****";

/// The last minor version of REST 2.x that is supported; the first is 0.
pub const MINOR_MAX: u32 = 42;

/// The result of a handler.
pub(crate) type Answer = Result<Json<Items>, Refused>;

/// A page of a list, for the description: see [`Items`].
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct ItemsOf<T> {
    /// The items of this page, or those that were created or changed.
    items: Vec<T>,
    /// Whether there are more after the last one.
    more_items_remaining: bool,
    /// Where to continue, if there are more.
    continuation_token: Option<String>,
    /// How many items there are on all pages, if requested.
    total_item_count: Option<u64>,
    /// Sums over all items, if only they were requested: of the fields that can be summed up.
    #[schema(value_type = Option<Vec<Object>>)]
    total: Option<Vec<T>>,
}

/// The field that every item has besides its own.
#[derive(Serialize, ToSchema)]
#[allow(dead_code, reason = "only its description is used")]
struct InContext {
    /// The array that it belongs to: this one.
    context: Named,
}

/// The names that the descriptions of all routes refer to.
#[derive(OpenApi)]
#[openapi(components(schemas(RestRefusal, RestFault, Items, InContext)))]
struct Common;

/// Returns all routes of REST 2.x, with their descriptions.
pub(crate) fn routes() -> OpenApiRouter<Arc<Interface>> {
    OpenApiRouter::with_openapi(Common::openapi())
        .routes(routes!(versions::api_version))
        .routes(routes!(access::login::login))
        .routes(routes!(access::login::logout))
        .routes(routes!(admins::list, admins::create, admins::change, admins::delete))
        .routes(routes!(admins::list_tokens, admins::create_token, admins::delete_tokens))
        .routes(routes!(audits::list))
        .routes(routes!(alerts::list, alerts::change))
        .routes(routes!(sessions::list))
        .routes(routes!(arrays::list, arrays::change))
        .routes(routes!(arrays::space))
        .routes(routes!(ntp_test::try_out))
        .routes(routes!(performance_lists::of_arrays))
        .routes(routes!(performance_lists::of_volumes))
        .routes(routes!(performance_lists::of_hosts))
        .routes(routes!(performance_groups::of_host_groups))
        .routes(routes!(performance_groups::of_volume_groups))
        .routes(routes!(interface_performance::of_interfaces))
        .routes(routes!(performance_groups::of_pods))
        .routes(routes!(performance_by_array::of_volumes))
        .routes(routes!(performance_by_array::of_hosts))
        .routes(routes!(performance_by_array::of_host_groups))
        .routes(routes!(performance_by_array::of_pods))
        .routes(routes!(hardware::controllers))
        .routes(routes!(hardware::drives, hardware::change_drives))
        .routes(routes!(hardware::hardware, hardware::change_hardware))
        .routes(routes!(hardware::ports))
        .routes(routes!(port_initiators::list))
        .routes(routes!(hardware::network_interfaces, hardware::change_interfaces))
        .routes(routes!(volumes::list, volumes::create, volumes::change, volumes::eradicate))
        .routes(routes!(volume_space::list))
        .routes(routes!(joint_space::list_of_hosts))
        .routes(routes!(joint_space::list_of_host_groups))
        .routes(routes!(joint_space::list_of_groups))
        .routes(routes!(
            volume_snapshots::list,
            volume_snapshots::create,
            volume_snapshots::change,
            volume_snapshots::eradicate
        ))
        .routes(routes!(connections::list, connections::connect, connections::disconnect))
        .routes(routes!(hosts::list, hosts::create, hosts::change, hosts::delete))
        .routes(routes!(
            protection_groups::list,
            protection_groups::create,
            protection_groups::change,
            protection_groups::eradicate
        ))
        .routes(routes!(
            protection_group_snapshots::list,
            protection_group_snapshots::create,
            protection_group_snapshots::change,
            protection_group_snapshots::eradicate
        ))
        .merge(notification_routes())
        .merge(container_routes())
        .merge(group_routes())
        .merge(lists::routes())
}

/// Returns the routes of external servers: receivers of alerts, name servers, directory services.
fn notification_routes() -> OpenApiRouter<Arc<Interface>> {
    use {alert_watchers as watchers, directory_roles as roles};
    use {snmp_managers as snmp, syslog_servers as servers};
    OpenApiRouter::new()
        .routes(routes!(smtp::list, smtp::change))
        .routes(routes!(
            certificates::list,
            certificates::create,
            certificates::change,
            certificates::delete
        ))
        .routes(routes!(certificates::sign))
        .routes(routes!(directory_services::list, directory_services::change))
        .routes(routes!(directory_services::try_out))
        .routes(routes!(roles::list, roles::create, roles::change, roles::delete))
        .routes(routes!(dns::list, dns::create, dns::change, dns::delete))
        .routes(routes!(watchers::list, watchers::create, watchers::change, watchers::delete))
        .routes(routes!(watchers::try_out))
        .routes(routes!(servers::list, servers::create, servers::change, servers::delete))
        .routes(routes!(servers::try_out))
        .routes(routes!(snmp::list, snmp::create, snmp::change, snmp::delete))
        .routes(routes!(snmp::try_out))
        .routes(routes!(snmp::list_agents, snmp::change_agents))
}

/// Returns the routes of volume groups and pods.
fn container_routes() -> OpenApiRouter<Arc<Interface>> {
    use {pod_parts as parts, volume_groups as groups};
    OpenApiRouter::new()
        .routes(routes!(pods::list, pods::create, pods::change, pods::eradicate))
        .routes(routes!(container_space::of_pods))
        .routes(routes!(parts::list_arrays, parts::stretch_arrays, parts::unstretch_arrays))
        .routes(routes!(parts::list_members, parts::stretch_members, parts::unstretch_members))
        .routes(routes!(parts::list_protections, parts::change_protections))
        .routes(routes!(groups::list, groups::create, groups::change, groups::eradicate))
        .routes(routes!(groups::list_volumes))
        .routes(routes!(groups::list_of_volumes))
        .routes(routes!(container_space::of_volume_groups))
}

/// Returns the routes of host groups, tags, and members of groups.
fn group_routes() -> OpenApiRouter<Arc<Interface>> {
    use protection_members as members;
    OpenApiRouter::new()
        .routes(routes!(
            host_groups::list,
            host_groups::create,
            host_groups::change,
            host_groups::delete
        ))
        .routes(routes!(host_groups::list_hosts, host_groups::add_hosts, host_groups::remove_hosts))
        .routes(routes!(
            host_groups::list_of_hosts,
            host_groups::add_to_groups,
            host_groups::remove_from_groups
        ))
        .routes(routes!(members::list_volumes, members::add_volumes, members::remove_volumes))
        .routes(routes!(members::list_hosts, members::add_hosts, members::remove_hosts))
        .routes(routes!(
            members::list_host_groups,
            members::add_host_groups,
            members::remove_host_groups
        ))
        .routes(routes!(
            protected::list_of_volumes,
            protected::add_volumes,
            protected::remove_volumes
        ))
        .routes(routes!(protected::list_of_hosts, protected::add_hosts, protected::remove_hosts))
        .routes(routes!(
            protected::list_of_host_groups,
            protected::add_host_groups,
            protected::remove_host_groups
        ))
        .routes(routes!(tags::list, tags::remove))
        .routes(routes!(tags::set))
        .routes(routes!(tags::list_of_snapshots, tags::remove_of_snapshots))
        .routes(routes!(tags::set_of_snapshots))
}

/// Adds the common parts of the paths of REST 2.x to a description.
pub(crate) fn described(mut description: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let minor = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0))
        .maximum(Some(MINOR_MAX))
        .description(Some("The minor version: all of them are the same."));
    let minor = ParameterBuilder::new()
        .name("minor")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .schema(Some(minor))
        .build();
    for (path, item) in &mut description.paths.paths {
        if path.contains("{minor}") {
            item.parameters.get_or_insert_default().push(minor.clone());
            for operation in operations(item) {
                // An absent body means an object without fields; an absent list is not permitted.
                if let Some(body) = &mut operation.request_body
                    && !path.ends_with("/batch")
                {
                    body.required = Some(Required::False);
                }
            }
        }
    }
    let schemas = description.components.iter_mut().flat_map(|parts| &mut parts.schemas);
    for (_, schema) in schemas.filter(|(name, _)| name.starts_with("ItemsOf_")) {
        if let RefOr::T(Schema::Object(page)) = schema
            && let Some(RefOr::T(Schema::Array(items))) = page.properties.get_mut("items")
        {
            items.items = in_context(&items.items);
        }
    }
    description
}

/// What an item is, and in which context.
fn in_context(item: &ArrayItems) -> ArrayItems {
    let ArrayItems::RefOrSchema(item) = item else { return item.clone() };
    let context = Ref::from_schema_name("InContext");
    let both = AllOfBuilder::new().item((**item).clone()).item(context).build();
    ArrayItems::RefOrSchema(Box::new(RefOr::T(Schema::AllOf(both))))
}

/// Returns the routes; unknown paths are refused in the format of REST 2.x.
pub(crate) fn router(routes: Router<Arc<Interface>>, interface: Arc<Interface>) -> Router {
    routes
        .method_not_allowed_fallback(|| async { Refused::no_such_method().into_response() })
        .route("/api/{*path}", any(|| async { Refused::no_such_path().into_response() }))
        .layer(middleware::from_fn(versions::check))
        .layer(middleware::from_fn(versions::name))
        .with_state(interface)
}

/// Runs work that may wait for the store on a blocking thread, and returns its result, each item
/// with its context. A change is entered into the audit log.
pub(crate) async fn answer(
    interface: Arc<Interface>,
    work: impl FnOnce(&Interface) -> Result<Items, Refused> + Send + 'static,
) -> Answer {
    let work =
        move |interface: &Interface| Ok(work(interface)?.in_context(&interface.array.name()));
    let done = access::run(interface, work, Refused::code).await;
    done.unwrap_or_else(|| Err(Refused::broken())).map(Json)
}
