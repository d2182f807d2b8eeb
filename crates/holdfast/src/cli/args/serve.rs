//! `serve`.

use front::PortOptions;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::size;

/// `serve`; the management address stands in `Common`, and the pool can.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The pool, instead of --pool, and of what HOLDFAST_POOL says. In an empty directory one is
    /// made first. Of a pool on several devices, all of them, in any order.
    #[arg(value_name = "DIR-OR-DEVICE")]
    pub places: Vec<PathBuf>,
    /// Start although devices of the pool are missing that may know more than those that are there:
    /// what they took without these is lost then. Only for when they are gone for good.
    #[arg(long)]
    pub devices_missing: bool,
    /// What a pool that is made now shall hold, at least 1G; one that is there stays as it is.
    /// Default: a quarter of the free space, 64G at most.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub capacity: Option<u64>,
    /// Where to serve iSCSI. Each address is a port of the target, in the target port group (ALUA)
    /// with the number behind `@`: those of one controller, say. Default: group 1. An address stays
    /// the port that it was when it was first served, whatever the order. At most 256.
    #[arg(long, value_delimiter = ',', value_name = "ADDR:PORT[@GROUP][,…]")]
    #[arg(value_parser = parse_portal, default_value = "127.0.0.1:3260")]
    pub iscsi: Vec<PortalArg>,
    /// The configuration.
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// Manage without encryption; on a loopback address only.
    #[arg(long)]
    pub api_http: bool,
    /// Serve in a process of its own, which is started again when it ends without having been asked
    /// to, or hangs. Its sockets stay open meanwhile, so that no host is refused. (systemd does the
    /// same.)
    #[arg(long)]
    pub supervised: bool,
    /// For tests and benchmarks: each request to the device takes so many milliseconds more, 1000
    /// at most. Told of in the log.
    #[arg(long, hide = true, value_name = "MS", value_parser = parse_latency)]
    pub slow_device_for_tests: Option<Duration>,
}

/// The most milliseconds that a device may be slowed by.
const SLOW_MS_MAX: f64 = 1000.0;

fn parse_latency(text: &str) -> Result<Duration, String> {
    let ms = text.parse().ok().filter(|ms: &f64| *ms > 0.0 && *ms <= SLOW_MS_MAX);
    let ms = ms.ok_or_else(|| format!("{text:?} is no number of milliseconds up to 1000"))?;
    Ok(Duration::from_secs_f64(ms / 1e3))
}

/// A portal on the command line.
#[derive(Clone, Copy, Debug)]
pub struct PortalArg {
    /// The address to listen on.
    pub address: SocketAddr,
    /// Its target port group.
    pub group: u16,
}

impl PortalArg {
    /// The portal, with the id that the array keeps for its address.
    pub fn options(&self, id: u16) -> PortOptions {
        PortOptions { address: self.address, group: self.group, id }
    }
}

fn parse_portal(text: &str) -> Result<PortalArg, String> {
    let (address, group) = text.rsplit_once('@').unwrap_or((text, "1"));
    match (address.parse(), group.parse()) {
        (Ok(address), Ok(group @ 1..)) => Ok(PortalArg { address, group }),
        (Ok(_), _) => Err(format!("{text:?}: a group is a number from 1 to 65535")),
        (Err(_), _) => Err(format!("{text:?} is not ADDR:PORT or ADDR:PORT@GROUP")),
    }
}
