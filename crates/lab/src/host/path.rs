//! One path: a session through one portal, and reconnecting when it is lost.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, RandomState};
use std::rc::Rc;
use std::time::Duration;

use libiscsi::{Cdb, Completion, Config, Data, Status, WireBytes};

use super::HostError;
use crate::engine::{Link, Reactor};

/// The pause before the second attempt to log in again; it then doubles each time.
const RECONNECT_FIRST: Duration = Duration::from_millis(50);
/// The maximum pause between two attempts.
const RECONNECT_MAX: Duration = Duration::from_secs(1);
/// The time limit of a login: that of Linux (`node.conn[0].timeo.login_timeout`).
const LOGIN: Duration = Duration::from_secs(15);

/// A path of a host's.
#[derive(Debug)]
pub struct Path {
    config: Config,
    reactor: Reactor,
    link: RefCell<Option<Rc<Link>>>,
    /// The counters of lost sessions.
    past: Cell<WireBytes>,
    /// The counters of this connection when last read: the kernel reports none for a closed socket.
    seen: Cell<WireBytes>,
    commands: Cell<u64>,
    losses: Cell<u64>,
    logins: Cell<u64>,
    reconnecting: Cell<bool>,
}

impl Path {
    /// Opens a path. Its session keeps its name (ISID) for the life of the path, like ESXi's: so a
    /// new login is the same nexus, and ends what is left of the previous session.
    pub(super) fn open(reactor: &Reactor, config: Config) -> Result<Rc<Self>, HostError> {
        let isid = RandomState::new().hash_one(&config.portal) as u32;
        let config = Config { isid: Some(config.isid.unwrap_or(isid)), ..config };
        let link = reactor.open(&config)?;
        Ok(Rc::new(Self {
            config,
            reactor: reactor.clone(),
            link: RefCell::new(Some(Rc::new(link))),
            past: Cell::default(),
            seen: Cell::default(),
            commands: Cell::new(0),
            losses: Cell::new(0),
            logins: Cell::new(1),
            reconnecting: Cell::new(false),
        }))
    }

    /// `address:port`.
    pub fn portal(&self) -> &str {
        &self.config.portal
    }

    /// Returns whether it can be used now.
    pub fn is_up(&self) -> bool {
        self.link.borrow().as_ref().is_some_and(|link| !link.is_lost())
    }

    /// Returns how often its connection was lost.
    pub fn losses(&self) -> u64 {
        self.losses.get()
    }

    /// Returns how often it has logged in: what was known about it before the last login may be
    /// wrong.
    pub fn logins(&self) -> u64 {
        self.logins.get()
    }

    /// Returns how many commands it has carried.
    pub fn commands(&self) -> u64 {
        self.commands.get()
    }

    /// Returns what it has sent and received; for a lost connection as far as known.
    pub fn wire_bytes(&self) -> WireBytes {
        let link = self.link.borrow().as_ref().map(|link| link.wire_bytes()).unwrap_or_default();
        let (past, seen) = (self.past.get(), self.seen.get());
        let now = WireBytes {
            sent: link.sent.max(seen.sent),
            received: link.received.max(seen.received),
        };
        self.seen.set(now);
        WireBytes { sent: past.sent + now.sent, received: past.received + now.received }
    }

    /// Sends a command, and waits for its completion. A path that was lost is reconnected
    /// meanwhile.
    pub(super) async fn execute(self: &Rc<Self>, lun: u16, cdb: Cdb, data: Data) -> Completion {
        self.commands.set(self.commands.get() + 1);
        let link = self.link.borrow().clone();
        let end = match link {
            Some(link) => link.execute(lun, cdb, data).await,
            None => {
                let buffer = Vec::new();
                Completion { token: 0, status: Status::Cancelled, buffer, residual: 0 }
            }
        };
        if end.status == Status::Cancelled {
            self.get_back();
        }
        end
    }

    /// Closes the connection, as if a cable were pulled; it is reconnected like any other.
    pub fn cut(self: &Rc<Self>) {
        self.let_go();
        self.get_back();
    }

    fn let_go(&self) {
        self.past.set(self.wire_bytes());
        self.seen.set(WireBytes::default());
        // Commands in flight hold the link, too: they are lost with the connection.
        if let Some(link) = self.link.borrow_mut().take() {
            link.close();
        }
        self.losses.set(self.losses.get() + 1);
    }

    /// Makes sure that it is up, or will be: also if it was lost without a command in flight to
    /// notice it.
    pub(super) fn get_back(self: &Rc<Self>) {
        if self.is_up() || self.reconnecting.replace(true) {
            return;
        }
        if self.link.borrow().is_some() {
            self.let_go();
        }
        let (path, reactor, config) = (Rc::downgrade(self), self.reactor.clone(), &self.config);
        let config = config.clone();
        let task = self.reactor.spawn(async move {
            let mut pause = RECONNECT_FIRST;
            // A path without a host does not reconnect.
            while path.strong_count() > 0 {
                if let Ok(link) = reactor.log_in(&config, LOGIN).await {
                    let Some(path) = path.upgrade() else { return };
                    *path.link.borrow_mut() = Some(Rc::new(link));
                    path.logins.set(path.logins.get() + 1);
                    path.reconnecting.set(false);
                    return;
                }
                reactor.sleep(pause).await;
                pause = (pause * 2).min(RECONNECT_MAX);
            }
        });
        task.forget();
    }
}
