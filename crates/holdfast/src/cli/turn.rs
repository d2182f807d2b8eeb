//! The turn to have the pool: of two controllers, the one that has the claim has the pool. The
//! other one forwards until then.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use management::private;
use serde_json::json;
use store::{Follower, LogEnd, OpenOptions};

use super::args::{Common, FenceKind, ServeArgs};
use super::config::Config;
use super::descriptors::Shares;
use super::discover::user_directory;
use super::failure::Failure;
use super::fencing::{Fence, Fencing};
use super::link;
use super::medium::{Medium, Use};
use super::output::{Form, show};
use super::place::Places;
use super::serve::of_serving;
use crate::serve::controllers::{
    Addresses, AwaitTurn, Claim, Controller, FollowOptions, Followed, HandedOver, Meeting,
    OpenBeside, Standby, follow,
};
use crate::serve::{Kept, ServeError, tell_ready, thread_count};

/// The right of this process to open the pool.
pub struct Turn {
    /// This controller; ct0 if there is only one.
    pub own: Controller,
    /// The claim, if there are two controllers. Held until the process ends.
    pub claim: Option<Claim>,
    /// The meeting point of the two controllers, if there are two.
    pub meeting: Option<Meeting>,
    /// Sockets of its portals that already listen.
    pub kept: Kept,
    /// The incarnation of the other controller that served until now.
    pub takes_over: Option<u64>,
    /// The state of the pool that it has recovered by following.
    pub follower: Option<Follower>,
    /// Where the log ends, if the previous owner has passed that on.
    pub log_end: Option<LogEnd>,
    /// Connections of hosts that the previous owner handed over.
    pub handed: Option<HandedOver>,
    /// The fence, if the devices are reserved for it.
    pub fence: Option<Fence>,
    /// Set when it is to give the pool up to the other controller.
    pub gives_way: Arc<AtomicBool>,
    /// Addresses that move between the machines, if there are any.
    pub addresses: Option<Arc<Addresses>>,
}

impl Turn {
    fn alone(kept: Kept) -> Self {
        let (own, gives_way) = (Controller::Ct0, Arc::default());
        let (claim, meeting, takes_over, follower) = (None, None, None, None);
        let (log_end, handed, fence, addresses) = (None, None, None, None);
        Self {
            own,
            claim,
            meeting,
            kept,
            takes_over,
            follower,
            log_end,
            handed,
            fence,
            gives_way,
            addresses,
        }
    }

    fn of_two(own: Controller, claim: Claim, meeting: Meeting, kept: Kept) -> Self {
        // Another program may have left something else: nothing depends on it.
        let log_end = claim.left().and_then(|line| line.parse().ok());
        Self { own, claim: Some(claim), meeting: Some(meeting), log_end, ..Self::alone(kept) }
    }

    /// Returns the options for opening the store. With two controllers the pool keeps its version
    /// of the format: the other one may still run an earlier version, and must be able to take the
    /// pool over.
    pub fn store_options(&self, config: &Config) -> OpenOptions {
        let options = config.store_options();
        let upgrade = options.upgrade && self.meeting.is_none();
        let (takes_over, log_end) = (self.takes_over, self.log_end);
        OpenOptions { takes_over, upgrade, log_end, ..options }
    }
}

/// Waits for this controller's turn, and forwards meanwhile. Returns `None` if it was asked to end
/// before.
pub fn take(
    common: &Common,
    options: &ServeArgs,
    config: &Config,
    shares: Shares,
    pool: &[PathBuf],
) -> Result<Option<Turn>, Failure> {
    let kept = Kept::of_environment();
    let Some(own) = options.controller else {
        if link::is_wanted(options, config) {
            let text = "--link: each controller is started by itself: add --controller ct0 or ct1";
            return Err(Failure::Usage(text.into()));
        }
        return Ok(Some(Turn::alone(kept)));
    };
    let directory = user_directory();
    let refuse = |error| Failure::of_file("use", &directory, &error);
    private::make_directory(&directory).map_err(refuse)?;
    let meeting = Meeting::new(&directory, pool).over(link::tunnel(options, config, own)?);
    let addresses = link::addresses(options, config, own)?;
    let (turn, fence) = match options.fence {
        FenceKind::Claim => match Claim::try_take(&meeting).map_err(refuse)? {
            Some(claim) => {
                let turn = Turn::of_two(own, claim, meeting, kept);
                return Ok(Some(Turn { addresses, ..turn }));
            }
            None => {
                let meeting = meeting.clone();
                let wait: AwaitTurn = Box::new(move |has_turn| Claim::wait(&meeting, has_turn));
                (wait, Arc::default())
            }
        },
        FenceKind::Reservations => match Fencing::begin(own, pool, &meeting)?.attempt()? {
            Ok((claim, fence)) => {
                let turn = Turn::of_two(own, claim, meeting, kept);
                return Ok(Some(Turn { fence: Some(fence), addresses, ..turn }));
            }
            Err(fencing) => {
                tracing::info!("{} waits: another controller has the pool", own.name());
                fencing.wait()
            }
        },
    };
    let portals = options.portals_of(own);
    let linked = announcement(common.form, own, &portals);
    let threads = thread_count(config.threads);
    let following = FollowOptions {
        own,
        meeting: meeting.clone(),
        portals,
        kept,
        connections: shares.forwarded,
        threads,
        addresses: addresses.clone(),
        turn,
    };
    let standby = standby(options, config, pool)?;
    let followed = follow(following, linked).map_err(of_serving)?;
    let follower = standby.and_then(Standby::end);
    match followed {
        Followed::Stopped => Ok(None),
        Followed::Owner { claim, kept, incarnation: takes_over, handed } => {
            tracing::warn!("{} has the pool now", own.name());
            let turn = Turn::of_two(own, claim, meeting, kept);
            let fence = fence.lock().take();
            Ok(Some(Turn { takes_over, follower, handed, fence, addresses, ..turn }))
        }
    }
}

/// Follows the pool, unless it may be opened on devices with older content than the missing ones.
fn standby(
    options: &ServeArgs,
    config: &Config,
    pool: &[PathBuf],
) -> Result<Option<Standby>, Failure> {
    if options.devices_missing {
        return Ok(None);
    }
    let pool = pool.to_vec();
    let open = move || {
        let (places, _) = Places::of_existing_or_new(&pool)?;
        Medium::open(&places, Use::Follow).map(|medium| medium.segments())
    };
    let open: OpenBeside = Box::new(move || open().map_err(|failure| failure.to_string()));
    let started = Standby::start(open, config.store_options());
    started.map(Some).map_err(|error| of_serving(ServeError::Start(error)))
}

/// Reports that hosts can connect here.
fn announcement(
    form: Form,
    own: Controller,
    portals: &[std::net::SocketAddr],
) -> impl FnOnce() + Send + 'static {
    let portals: Vec<String> = portals.iter().map(ToString::to_string).collect();
    move || {
        let reported = json!({ "controller": own.name(), "forwarding_from": portals });
        let text = || format!("{} forwards from {}\n", own.name(), portals.join(", "));
        // A failure to print does not stop it.
        if let Err(failure) = show(form, &reported, text) {
            tracing::warn!("{failure}");
        }
        if let Err(error) = tell_ready() {
            tracing::warn!("{error}");
        }
    }
}
