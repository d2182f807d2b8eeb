//! Name resolution, by the DNS servers that are set in the pool, or by the system.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use array::{Array, Dns};
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::{Resolver, TokioResolver};
use tokio::time::timeout;

/// How long one DNS server may take before the next one is asked. The system's resolver takes as
/// long as its configuration says.
const SERVER_TIMEOUT: Duration = Duration::from_secs(2);
/// The most addresses of a name that are used.
const ADDRESSES_MAX: usize = 4;

/// Resolves names, each time by the current settings.
pub struct Names(Box<dyn Fn() -> Dns + Send + Sync>);

impl Names {
    /// Creates a resolver with the settings that `dns` returns at each look-up.
    pub fn new(dns: impl Fn() -> Dns + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self(Box::new(dns)))
    }

    /// Creates a resolver with the settings of an array, without a reference to the array, so that
    /// the end of the array does not wait for senders.
    pub fn of(array: &Arc<Array>) -> Arc<Self> {
        let array = Arc::downgrade(array);
        Self::new(move || array.upgrade().map(|array| array.dns()).unwrap_or_default())
    }

    /// Returns the current settings.
    pub fn dns(&self) -> Dns {
        (self.0)()
    }

    /// Returns the addresses of a host, which may itself be an address: at least one. Nothing is
    /// cached: look-ups are rare, and a change at the DNS server takes effect at once.
    ///
    /// # Errors
    /// If it has none, or no server that knows responds in time.
    pub fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let dns = self.dns();
        let found: Vec<SocketAddr> = match dns.servers().is_empty() {
            true => (host, port).to_socket_addrs()?.take(ADDRESSES_MAX).collect(),
            false => {
                let found = look_up(&dns, host)?.into_iter();
                found.map(|address| SocketAddr::new(address, port)).collect()
            }
        };
        match found.is_empty() {
            true => Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address")),
            false => Ok(found),
        }
    }
}

/// Asks the DNS servers in order, until one knows the name, or says that it does not exist.
fn look_up(dns: &Dns, host: &str) -> io::Result<Vec<IpAddr>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "there is no name server");
    for server in dns.servers() {
        let found = runtime.block_on(async {
            let resolver = resolver(server.address(), dns.domain())?;
            timeout(SERVER_TIMEOUT, resolver.lookup_ip(host))
                .await
                .map_err(|_| NetError::Timeout)?
        });
        match found {
            Ok(found) => return Ok(found.iter().take(ADDRESSES_MAX).collect()),
            Err(error) if error.is_nx_domain() || error.is_no_records_found() => {
                let text = format!("name server {server} does not know the name {host}");
                return Err(io::Error::new(io::ErrorKind::NotFound, text));
            }
            Err(error) => {
                let text = format!("name server {server}: {error}");
                last = io::Error::new(io::ErrorKind::TimedOut, text);
            }
        }
    }
    Err(last)
}

/// Creates a resolver for one server. The system's `hosts` file is not read: only the settings
/// count.
fn resolver(server: SocketAddr, domain: &str) -> Result<TokioResolver, NetError> {
    let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
    let at_port = connections.map(|mut connection| {
        connection.port = server.port();
        connection
    });
    let server = NameServerConfig::new(server.ip(), true, at_port.into());
    let search = match domain {
        "" => Vec::new(),
        domain => vec![Name::from_utf8(format!("{domain}.")).map_err(NetError::from)?],
    };
    let mut options = ResolverOpts::default();
    options.timeout = SERVER_TIMEOUT;
    options.attempts = 0;
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
    let config = ResolverConfig::from_parts(None, search, vec![server]);
    Resolver::builder_with_config(config, TokioRuntimeProvider::default())
        .with_options(options)
        .build()
}

/// Connects to the first address that accepts a connection; the limit is for all of them together.
///
/// # Errors
/// The error of the last one.
pub fn connect(addresses: &[SocketAddr], limit: Duration) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "there is no address");
    let each = limit / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
    for address in addresses {
        match TcpStream::connect_timeout(address, each) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, UdpSocket};
    use std::thread;
    use std::time::Instant;

    use array::NameServer;

    use super::*;

    /// Starts a DNS server that knows one IPv4 address of one name. Returns its address, and the
    /// names it was asked for.
    fn knowing(name: &'static str) -> (String, std::sync::mpsc::Receiver<String>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let place = socket.local_addr().unwrap().to_string();
        let (asked, names) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let mut query = [0; 512];
            while let Ok((_, from)) = socket.recv_from(&mut query) {
                // The name (RFC 1035, 4.1.2) as labels, each with its length, then type and class.
                let (mut at, mut labels) = (12, Vec::new());
                while query[at] != 0 {
                    let end = at + 1 + usize::from(query[at]);
                    labels.push(String::from_utf8_lossy(&query[at + 1..end]).into_owned());
                    at = end;
                }
                let name_asked = labels.join(".");
                let is_known = name_asked == name && query[at + 2] == 1;
                let mut answer = query[..at + 5].to_vec();
                let code = if name_asked == name { 0 } else { 3 };
                answer[2..12].copy_from_slice(&[
                    0x81,
                    0x80 | code,
                    0,
                    1,
                    0,
                    u8::from(is_known),
                    0,
                    0,
                    0,
                    0,
                ]);
                if is_known {
                    answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 7]);
                }
                if asked.send(name_asked).is_err() || socket.send_to(&answer, from).is_err() {
                    return;
                }
            }
        });
        (place, names)
    }

    fn names(servers: &[&str], domain: &str) -> Arc<Names> {
        let servers = servers.iter().map(|text| NameServer::new(text).unwrap()).collect();
        let dns = Dns::new(servers, domain.into()).unwrap();
        Names::new(move || dns.clone())
    }

    #[test]
    fn names_are_looked_up_at_the_servers_and_in_the_domain() {
        let (server, asked) = knowing("log.example.com");
        let of_server = names(&[&server], "example.com");
        let expected: Vec<SocketAddr> = vec!["127.0.0.7:514".parse().unwrap()];
        assert_eq!(of_server.addresses("log.example.com", 514).unwrap(), expected);
        assert_eq!(of_server.addresses("log", 514).unwrap(), expected);
        let unknown = of_server.addresses("other.example.com", 514).unwrap_err();
        assert!(unknown.to_string().contains("does not know the name other.example"), "{unknown}");
        let seen: Vec<String> = asked.try_iter().collect();
        assert!(seen.contains(&"log.example.com".to_owned()), "{seen:?}");
        // An address needs no server.
        let address = of_server.addresses("2001:db8::1", 25).unwrap();
        assert_eq!(address, ["[2001:db8::1]:25".parse().unwrap()]);
        assert_eq!(asked.try_iter().count(), 0);
    }

    #[test]
    fn the_next_server_is_asked_and_silent_ones_end_in_time() {
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let silent = silent.local_addr().unwrap().to_string();
        let (server, _asked) = knowing("log.example.com");
        let found = names(&[&silent, &server], "").addresses("log.example.com", 514).unwrap();
        assert_eq!(found, ["127.0.0.7:514".parse().unwrap()]);
        let began = Instant::now();
        let error = names(&[&silent], "example.com").addresses("log", 514).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut, "{error}");
        assert!(began.elapsed() < SERVER_TIMEOUT * 3, "{:?}", began.elapsed());
    }

    #[test]
    fn the_system_looks_up_while_no_server_is_named() {
        let found = names(&[], "").addresses("localhost", 514).unwrap();
        assert!(found.iter().all(|one| one.ip().is_loopback() && one.port() == 514), "{found:?}");
    }

    #[test]
    fn the_first_address_that_takes_a_connection_is_used() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let addresses = [nobody, listener.local_addr().unwrap()];
        let stream = connect(&addresses, Duration::from_secs(5)).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), addresses[1]);
        assert!(connect(&addresses[..1], Duration::from_secs(5)).is_err());
    }
}
