//! Which hosts may log in, and which volumes they see: hosts, host groups, connections.
//!
//! An initiator belongs to one host, and a host to one host group at most. A host sees each volume
//! once, and one volume under each LUN, whether by a connection of its own or by one of its group.
//! A host or a group with connections can't be deleted.

mod connections;
mod first;
mod free_luns;
mod host_groups;
mod hosts;
mod initiators;
mod several;
mod shared;

pub use connections::ConnectionInfo;
pub use first::ConnectTo;
pub(crate) use first::FirstLuns;
pub use host_groups::HostGroupInfo;
pub use hosts::{HostChange, HostInfo, NewHost};
pub use initiators::Initiator;
pub use shared::SharedConnectionInfo;
#[cfg(test)]
pub(crate) use shared::{SharedLuns, plan_pairs};
