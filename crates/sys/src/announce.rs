//! Announcing that an address is now at this machine, so that neighbors send there at once: an ARP
//! announcement (RFC 5227, 3) or an unsolicited neighbor advertisement (RFC 4861, 7.2.6).
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::{size_of, size_of_val};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;

/// The bytes of an Ethernet address; these announcements are for Ethernet.
const MAC_BYTES: usize = 6;
type Mac = [u8; MAC_BYTES];

const ARP_BYTES: usize = 28;
const ADVERTISEMENT_BYTES: usize = 32;
/// `ff02::1`, all nodes of the link.
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// Announces to the neighbors of `interface` that it has `address`.
///
/// # Errors
/// If there is no such interface, or it is not Ethernet; without `CAP_NET_RAW`; those of the
/// kernel.
pub fn announce(interface: &str, address: IpAddr) -> io::Result<()> {
    let name = CString::new(interface)?;
    // SAFETY: the name ends in a zero, and outlives the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    if index == 0 {
        return Err(io::Error::last_os_error());
    }
    let (packets, mac) = packet_socket(index)?;
    match address {
        IpAddr::V4(address) => {
            let to = link_address(index, [0xff; MAC_BYTES]);
            send(&packets, &arp_announcement(mac, address), &to)
        }
        IpAddr::V6(address) => advertise(index, mac, address),
    }
}

/// Opens a socket for ARP packets; returns it, and the address of its interface.
fn packet_socket(index: libc::c_uint) -> io::Result<(OwnedFd, Mac)> {
    let protocol = i32::from((libc::ETH_P_ARP as u16).to_be());
    let socket = socket(libc::AF_PACKET, libc::SOCK_DGRAM, protocol)?;
    let mut address = link_address(index, [0; MAC_BYTES]);
    bind(&socket, &address)?;
    let mut bytes = size_of_val(&address) as libc::socklen_t;
    // SAFETY: both pointers are to values that outlive the call, and the size is that of the first.
    let told =
        unsafe { libc::getsockname(socket.as_raw_fd(), (&raw mut address).cast(), &raw mut bytes) };
    if told != 0 {
        return Err(io::Error::last_os_error());
    }
    if address.sll_hatype != libc::ARPHRD_ETHER || usize::from(address.sll_halen) != MAC_BYTES {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "it is not an Ethernet interface"));
    }
    let mut mac = [0; MAC_BYTES];
    mac.copy_from_slice(&address.sll_addr[..MAC_BYTES]);
    Ok((socket, mac))
}

fn link_address(index: libc::c_uint, to: Mac) -> libc::sockaddr_ll {
    let mut address = [0; 8];
    address[..MAC_BYTES].copy_from_slice(&to);
    libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: (libc::ETH_P_ARP as u16).to_be(),
        sll_ifindex: index.cast_signed(),
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: MAC_BYTES as u8,
        sll_addr: address,
    }
}

/// Returns an ARP request for the own address, from it.
fn arp_announcement(mac: Mac, address: Ipv4Addr) -> [u8; ARP_BYTES] {
    let mut packet = [0; ARP_BYTES];
    // Ethernet, IPv4, the sizes of their addresses, a request.
    packet[..8].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
    packet[8..14].copy_from_slice(&mac);
    packet[14..18].copy_from_slice(&address.octets());
    packet[24..28].copy_from_slice(&address.octets());
    packet
}

/// Returns a neighbor advertisement. The kernel sets the checksum.
fn advertisement(mac: Mac, address: Ipv6Addr) -> [u8; ADVERTISEMENT_BYTES] {
    let mut packet = [0; ADVERTISEMENT_BYTES];
    packet[0] = 136; // Neighbour advertisement,
    packet[4] = 0x20; // which overrides what was known.
    packet[8..24].copy_from_slice(&address.octets());
    // The option "target link-layer address", of 8 bytes.
    packet[24..26].copy_from_slice(&[2, 1]);
    packet[26..32].copy_from_slice(&mac);
    packet
}

fn advertise(index: libc::c_uint, mac: Mac, address: Ipv6Addr) -> io::Result<()> {
    let socket = socket(libc::AF_INET6, libc::SOCK_RAW, libc::IPPROTO_ICMPV6)?;
    // Neighbors reject packets that may have come from another link (RFC 4861, 7.1.2).
    let hops: libc::c_int = 255;
    set(&socket, libc::IPV6_MULTICAST_HOPS, &hops)?;
    set(&socket, libc::IPV6_MULTICAST_IF, &index.cast_signed())?;
    bind(&socket, &internet_address(address, 0))?;
    send(&socket, &advertisement(mac, address), &internet_address(ALL_NODES, index))
}

fn internet_address(address: Ipv6Addr, scope: u32) -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as u16,
        sin6_port: 0,
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr { s6_addr: address.octets() },
        sin6_scope_id: scope,
    }
}

fn socket(family: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is passed; nothing else owns the returned descriptor.
    unsafe {
        match libc::socket(family, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, protocol) {
            -1 => Err(io::Error::last_os_error()),
            raw => Ok(OwnedFd::from_raw_fd(raw)),
        }
    }
}

fn set(socket: &OwnedFd, option: i32, value: &libc::c_int) -> io::Result<()> {
    let bytes = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the value has the given size, and outlives the call.
    let result = unsafe {
        let value = ptr::from_ref(value).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IPV6, option, value, bytes)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The kernel's types of socket addresses.
trait SocketAddress {}

impl SocketAddress for libc::sockaddr_ll {}
impl SocketAddress for libc::sockaddr_in6 {}

fn bind<A: SocketAddress>(socket: &OwnedFd, address: &A) -> io::Result<()> {
    let bytes = size_of::<A>() as libc::socklen_t;
    // SAFETY: the address has the given size, and outlives the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), ptr::from_ref(address).cast(), bytes) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn send<A: SocketAddress>(socket: &OwnedFd, packet: &[u8], to: &A) -> io::Result<()> {
    let bytes = size_of::<A>() as libc::socklen_t;
    // SAFETY: packet and address have the given sizes, and outlive the call.
    let sent = unsafe {
        let to = ptr::from_ref(to).cast();
        libc::sendto(socket.as_raw_fd(), packet.as_ptr().cast(), packet.len(), 0, to, bytes)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = [2, 0, 0, 0, 0, 9];

    #[test]
    fn an_arp_announcement_requests_its_own_address() {
        let packet = arp_announcement(MAC, Ipv4Addr::new(192, 0, 2, 7));
        assert_eq!(packet[..8], [0, 1, 8, 0, 6, 4, 0, 1], "RFC 826");
        assert_eq!(packet[8..18], [2, 0, 0, 0, 0, 9, 192, 0, 2, 7], "the sender");
        assert_eq!(packet[18..], [0, 0, 0, 0, 0, 0, 192, 0, 2, 7], "RFC 5227, 3");
    }

    #[test]
    fn an_advertisement_is_unsolicited_and_overrides() {
        let packet = advertisement(MAC, "2001:db8::7".parse().unwrap());
        assert_eq!(packet[..8], [136, 0, 0, 0, 0x20, 0, 0, 0], "RFC 4861, 4.4");
        assert_eq!(packet[8..10], [0x20, 1]);
        assert_eq!(packet[23..], [7, 2, 1, 2, 0, 0, 0, 0, 9]);
    }

    #[test]
    fn an_interface_other_than_ethernet_is_refused() {
        let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
        for interface in ["no such interface", "lo", "a\0b"] {
            assert!(announce(interface, address).is_err(), "{interface:?}");
        }
    }
}
