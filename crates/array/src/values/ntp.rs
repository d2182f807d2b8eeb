//! The time servers by which the array checks its clock.

use crate::error::Error;
use crate::values::receivers::HostPlace;
use crate::values::text::shown;

/// The maximum number of time servers.
pub const TIME_SERVERS_MAX: usize = 4;
/// The default port of a time server (RFC 5905, 7.2).
const PORT: u16 = 123;

/// Time servers, each `HOST` or `HOST:PORT`, by name or address; no two are the same.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeServers(Vec<String>);

impl TimeServers {
    /// Checks time servers.
    ///
    /// # Errors
    /// `invalid_time_server`.
    pub fn new(servers: Vec<String>) -> Result<Self, Error> {
        let refuse = |text: String| Err(Error::invalid("invalid_time_server", text));
        if servers.len() > TIME_SERVERS_MAX {
            let count = servers.len();
            return refuse(format!(
                "There are up to {TIME_SERVERS_MAX} time servers, not {count}."
            ));
        }
        if let Some(wrong) = servers.iter().find(|one| HostPlace::parse(one).is_none()) {
            let text = shown(wrong);
            return refuse(format!("{text} is not a time server: give HOST or HOST:PORT."));
        }
        let mut each = servers.iter().enumerate();
        if each.any(|(at, one)| servers[..at].iter().any(|other| other.eq_ignore_ascii_case(one))) {
            return refuse("A time server is named twice.".into());
        }
        Ok(Self(servers))
    }

    /// Returns them as they were given.
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Returns the host and the port of a server; `None` if the text is invalid.
    pub fn place(server: &str) -> Option<(String, u16)> {
        let HostPlace { host, port } = HostPlace::parse(server)?;
        Some((host, port.unwrap_or(PORT)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_servers_are_checked_and_have_places() {
        let new =
            |servers: &[&str]| TimeServers::new(servers.iter().map(ToString::to_string).collect());
        let good = ["0.pool.example.com", "192.0.2.1:1123", "2001:db8::1", "[2001:db8::1]:1123"];
        assert_eq!(new(&good).unwrap().names(), good);
        let places = good.map(|one| TimeServers::place(one).unwrap().1);
        assert_eq!(places, [123, 1123, 123, 1123]);
        for bad in [&["a", "b", "c", "d", "e"][..], &["a b"], &["a:0"], &["a", "A"], &[""]] {
            assert_eq!(new(bad).unwrap_err().code(), "invalid_time_server", "{bad:?}");
        }
    }
}
