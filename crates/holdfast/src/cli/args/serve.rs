//! `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use front::PortOptions;

use crate::cli::size;
use crate::serve::controllers::Controller;

/// `serve`. The management address is in `Common`, and the pool may be.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// The pool, instead of --pool and HOLDFAST_POOL. In an empty directory a pool is created
    /// first. For a pool on several devices, all of them, in any order.
    #[arg(value_name = "DIR-OR-DEVICE")]
    pub places: Vec<PathBuf>,
    /// Start although missing devices of the pool may hold newer data than the present ones: that
    /// data is then lost. Use this only if the missing devices are gone for good.
    #[arg(long)]
    pub devices_missing: bool,
    /// The usable capacity of a newly created pool, at least 1G; an existing pool does not change.
    /// Default: a quarter of the free space, 64G at most.
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub capacity: Option<u64>,
    /// The iSCSI portals. Each address is a port of the target, in the target port group (ALUA)
    /// with the number after `@`. Default: group 1 for controller ct0, 2 for ct1. An address keeps
    /// the port that it got when it was first served, regardless of order. At most 256. With
    /// addresses of ct1 there are two controllers, each a separate process: one has the pool, and
    /// the other takes over when it ends.
    #[arg(long, value_delimiter = ',', value_name = "[ct0=|ct1=]ADDR:PORT[@GROUP][,…]")]
    #[arg(value_parser = parse_portal, default_value = "127.0.0.1:3260")]
    pub iscsi: Vec<PortalArg>,
    /// The configuration file.
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// Serve management without encryption; on a loopback address only.
    #[arg(long)]
    pub api_http: bool,
    /// Run only one of two controllers, for your own supervisor: start both with otherwise the
    /// same arguments. Default: both, supervised.
    #[arg(long, value_name = "ct0|ct1", value_parser = parse_controller)]
    pub controller: Option<Controller>,
    /// How the controller without the pool is prevented from writing to it: on one machine by a
    /// lock (claim); on two machines that share all devices of the pool by persistent reservations
    /// of these (reservations), with --controller.
    #[arg(long, value_name = "claim|reservations", value_parser = parse_fence)]
    #[arg(default_value = "claim")]
    pub fence: FenceKind,
    /// Where this controller listens for the other one, over the network, while it has the pool;
    /// for controllers that are started separately (--controller). Both ends prove that they have
    /// the same secret, and all traffic is encrypted. Default: a socket on this machine, or, with
    /// reservations, none.
    #[arg(long, value_name = "ADDR:PORT")]
    pub link: Option<SocketAddr>,
    /// Where the other controller listens (its --link).
    #[arg(long, value_name = "ADDR:PORT")]
    pub link_peer: Option<SocketAddr>,
    /// The file with the shared secret, which `controller secret` creates.
    #[arg(long, value_name = "FILE")]
    pub link_secret: Option<PathBuf>,
    /// Portal addresses of both controllers that can move between the machines, each with its
    /// interface on this one. Each controller adds its own while it is in contact with the other
    /// one; if that fails, its addresses move to the controller that has the pool. Nothing else
    /// may add them. Needs a link, CAP_NET_ADMIN and CAP_NET_RAW.
    #[arg(long, value_delimiter = ',', value_name = "ADDR@INTERFACE[,…]")]
    pub link_addresses: Vec<String>,
    /// Serve in a separate process, which is restarted when it ends without being asked to, or
    /// hangs. Its sockets stay open meanwhile, so that no host is refused. (systemd does the
    /// same.)
    #[arg(long)]
    pub supervised: bool,
    /// For tests and benchmarks: delay each device request by this number of milliseconds, 1000 at
    /// most. The log reports it.
    #[arg(long, hide = true, value_name = "MS", value_parser = parse_latency)]
    pub slow_device_for_tests: Option<Duration>,
}

/// How the controller without the pool is kept from writing to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FenceKind {
    /// A lock, on one machine.
    Claim,
    /// Persistent reservations of all devices.
    Reservations,
}

fn parse_fence(text: &str) -> Result<FenceKind, String> {
    match text {
        "claim" => Ok(FenceKind::Claim),
        "reservations" => Ok(FenceKind::Reservations),
        _ => Err(format!("{text:?} is neither claim nor reservations")),
    }
}

/// The maximum delay of a device request, in milliseconds.
const SLOW_MS_MAX: f64 = 1000.0;

fn parse_latency(text: &str) -> Result<Duration, String> {
    let ms = text.parse().ok().filter(|ms: &f64| *ms > 0.0 && *ms <= SLOW_MS_MAX);
    let ms = ms.ok_or_else(|| format!("{text:?} is not a number of milliseconds up to 1000"))?;
    Ok(Duration::from_secs_f64(ms / 1e3))
}

fn parse_controller(text: &str) -> Result<Controller, String> {
    Controller::from_name(text).ok_or_else(|| format!("{text:?} is neither ct0 nor ct1"))
}

impl ServeArgs {
    /// The addresses of a controller's portals.
    pub fn portals_of(&self, controller: Controller) -> Vec<SocketAddr> {
        let own = self.iscsi.iter().filter(|portal| portal.controller == controller);
        own.map(|portal| portal.address).collect()
    }

    /// Whether there are two controllers.
    pub fn are_two(&self) -> bool {
        self.iscsi.iter().any(|portal| portal.controller == Controller::Ct1)
    }

    /// Refuses options that conflict with reservations.
    fn check_fence(&self) -> Result<(), String> {
        let why = match self.fence {
            FenceKind::Claim => return Ok(()),
            _ if self.controller.is_none() => {
                "each controller is started on its own machine: add --controller ct0 or ct1"
            }
            _ if self.devices_missing => {
                "--devices-missing could let both have the pool: stop the other controller, and \
                 serve without --fence until the devices are back"
            }
            FenceKind::Reservations => return Ok(()),
        };
        Err(format!("--fence reservations: {why}"))
    }

    /// Refuses options that conflict with the number of controllers.
    pub fn check_controllers(&self) -> Result<(), String> {
        let of = |controller| self.iscsi.iter().filter(move |at| at.controller == controller);
        self.check_fence()?;
        if !self.are_two() {
            let one = "there is only one controller; give ct1 an address: --iscsi …,ct1=ADDR:PORT";
            return self.controller.map_or(Ok(()), |_| Err(format!("--controller: {one}")));
        }
        if of(Controller::Ct0).next().is_none() {
            return Err("--iscsi: ct1 has addresses, and ct0 has none".into());
        }
        if let Some(portal) = self.iscsi.iter().find(|portal| portal.address.port() == 0) {
            let address = portal.address;
            return Err(format!("--iscsi {address}: two controllers need a fixed port"));
        }
        let is_shared = |one: &&PortalArg| of(Controller::Ct1).any(|it| it.group == one.group);
        match of(Controller::Ct0).find(is_shared) {
            Some(PortalArg { group, .. }) => {
                Err(format!("--iscsi: group {group} has addresses of both controllers"))
            }
            None => Ok(()),
        }
    }
}

/// A portal on the command line.
#[derive(Clone, Copy, Debug)]
pub struct PortalArg {
    /// Which controller listens there.
    pub controller: Controller,
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
    let (controller, place) = match text.split_once('=') {
        Some((name, place)) => (parse_controller(name)?, place),
        None => (Controller::Ct0, text),
    };
    let default = if controller == Controller::Ct0 { "1" } else { "2" };
    let (address, group) = place.rsplit_once('@').unwrap_or((place, default));
    match (address.parse(), group.parse()) {
        (Ok(address), Ok(group @ 1..)) => Ok(PortalArg { controller, address, group }),
        (Ok(_), _) => Err(format!("{text:?}: a group is a number from 1 to 65535")),
        (Err(_), _) => Err(format!("{text:?} is not ADDR:PORT or ADDR:PORT@GROUP")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        serve: ServeArgs,
    }

    fn checked(words: &str) -> Result<ServeArgs, String> {
        let words = ["serve"].into_iter().chain(words.split_whitespace());
        let line = Line::try_parse_from(words).map_err(|error| error.to_string())?;
        line.serve.check_controllers().map(|()| line.serve)
    }

    #[test]
    fn portals_belong_to_ct0_unless_marked_for_ct1() {
        let both = checked("--iscsi 10.0.0.1:1,ct0=10.0.0.1:2@7,ct1=10.0.0.2:1,ct1=[::1]:2@9");
        let both = both.unwrap();
        let of = |at: &PortalArg| (at.controller.name(), at.address.port(), at.group);
        let all: Vec<_> = both.iscsi.iter().map(of).collect();
        assert_eq!(all, [("ct0", 1, 1), ("ct0", 2, 7), ("ct1", 1, 2), ("ct1", 2, 9)]);
        assert!(both.are_two() && !checked("").unwrap().are_two());
    }

    #[test]
    fn options_that_conflict_with_two_controllers_are_refused() {
        for (words, why) in [
            ("--controller ct0", "there is only one controller"),
            ("--iscsi ct1=10.0.0.1:1", "ct0 has none"),
            ("--iscsi 10.0.0.1:1,ct1=10.0.0.1:0", "need a fixed port"),
            ("--iscsi 10.0.0.1:0,ct1=10.0.0.1:1", "need a fixed port"),
            ("--iscsi 10.0.0.1:1@2,ct1=10.0.0.1:2", "group 2 has addresses of both"),
            ("--iscsi ct2=10.0.0.1:1", "neither ct0 nor ct1"),
            ("--iscsi 10.0.0.1:1,ct1=10.0.0.1:2 --controller ct2", "neither ct0 nor ct1"),
            ("--iscsi 10.0.0.1:1,ct1=10.0.0.1:2 --fence reservations", "add --controller"),
            ("--controller ct0 --fence reservations --devices-missing", "could let both"),
            ("--fence scsi", "neither claim nor reservations"),
        ] {
            let error = checked(words).unwrap_err();
            assert!(error.contains(why), "{words}: {error}");
        }
        assert!(checked("--iscsi 10.0.0.1:1,ct1=10.0.0.1:2 --controller ct1").is_ok());
    }
}
