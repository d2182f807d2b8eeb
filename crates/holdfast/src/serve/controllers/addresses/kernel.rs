//! Manages addresses with a limited lifetime in the kernel, by rtnetlink.

use std::io;
use std::net::IpAddr;

use rtnetlink::packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, CacheInfo};
use rtnetlink::{AddressAddRequest, Error, Handle};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType};
use rustix::thread::{CapabilitySet, capabilities};
use tokio::runtime::{Builder, Runtime};

use super::Moving;
use super::keeper::Kernel;
use super::plan::VALID_S;

/// Addresses of this machine.
pub(super) struct Netlink {
    runtime: Runtime,
    handle: Handle,
    moving: Vec<Moving>,
}

impl Netlink {
    /// Opens a socket for these addresses.
    ///
    /// # Errors
    /// If this process may not change addresses, or an interface does not exist.
    pub(super) fn open(moving: &[Moving]) -> io::Result<Self> {
        let needed = CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
        if !capabilities(None)?.effective.contains(needed) {
            let text = "moving addresses needs CAP_NET_ADMIN and CAP_NET_RAW";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
        for it in moving {
            let Moving { address, interface, .. } = it;
            let io_error = |error| io::Error::other(format!("{address}@{interface}: {error}"));
            index_of(interface).map_err(io_error)?;
        }
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let handle = runtime.block_on(async {
            let (connection, handle, _) = rtnetlink::new_connection()?;
            tokio::spawn(connection);
            io::Result::Ok(handle)
        })?;
        Ok(Self { runtime, handle, moving: moving.to_vec() })
    }
}

/// Looked up each time, because an interface that was removed and created again has another index.
fn index_of(interface: &str) -> io::Result<u32> {
    let any = rustix::net::socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    Ok(name_to_index(any, interface)?)
}

/// A host address without a network, which is part of the interface's own configuration.
fn prefix_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn io_error(error: Error) -> io::Error {
    match error {
        Error::NetlinkError(message) => message.to_io(),
        error => io::Error::other(error),
    }
}

impl Kernel for Netlink {
    fn put(&mut self, at: usize) -> io::Result<()> {
        let Moving { address, interface, .. } = &self.moving[at];
        let index = index_of(interface)?;
        let added = self.handle.address().add(index, *address, prefix_bits(*address)).replace();
        let request = with_an_end(added);
        self.runtime.block_on(request.execute()).map_err(io_error)
    }

    fn remove(&mut self, at: usize) -> io::Result<bool> {
        let Moving { address, interface, .. } = &self.moving[at];
        let index = index_of(interface)?;
        let mut added = self.handle.address().add(index, *address, prefix_bits(*address));
        let message: AddressMessage = added.message_mut().clone();
        let request = self.handle.address().del(message);
        match self.runtime.block_on(request.execute()).map_err(io_error) {
            // It was never added, or the kernel has already removed it.
            Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => Ok(false),
            result => result.map(|()| true),
        }
    }

    fn announce(&mut self, at: usize) -> io::Result<()> {
        let Moving { address, interface, .. } = &self.moving[at];
        sys::announce(interface, *address)
    }
}

/// Adds a lifetime, so that the address expires if it is not renewed. Duplicate address detection
/// is off, because the plan ensures that no other machine has it.
fn with_an_end(mut request: AddressAddRequest) -> AddressAddRequest {
    let mut life = CacheInfo::default();
    (life.ifa_valid, life.ifa_preferred) = (VALID_S, VALID_S);
    let attributes = &mut request.message_mut().attributes;
    attributes.push(AddressAttribute::CacheInfo(life));
    attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
    request
}
