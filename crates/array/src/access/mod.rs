//! Which hosts may log in, and which volumes they see: hosts, host groups, connections.

mod connections;
mod host_groups;
mod hosts;
mod initiators;
mod several;
mod shared;

pub use connections::ConnectionInfo;
pub use host_groups::HostGroupInfo;
pub use hosts::{HostChange, HostInfo, NewHost};
pub use initiators::Initiator;
pub use shared::SharedConnectionInfo;
#[cfg(test)]
pub(crate) use shared::{SharedLuns, plan_pairs};
