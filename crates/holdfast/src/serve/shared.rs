//! What all front-end threads share, made before the first of them starts.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use iscsi::{ConnectionId, Portal, Target, TargetConfig};
use mio::{Poll, Waker};
use parking_lot::Mutex;
use scsi::{DeviceServer, TargetPort};
use segments::Local;
use store::Store;
use sys::Clock;

use super::background::{Bell, Shutdown};
use super::counters::Counters;
use super::front::WAKER;
use super::listen::{Addresses, ConnectionLimits};
use super::mailbox::{Mailbox, Message};
use super::management::Sessions;
use super::repeated::Senders;
use super::saver::SaverQueue;
use super::sessions::{EndedSessions, Refusals, Troubles};
use super::throttle::Throttles;
use super::{LunMaps, ServeOptions};

/// What all threads share.
pub(super) struct Shared {
    pub store: Arc<Store>,
    pub scsi: DeviceServer,
    pub target: Arc<Target>,
    pub luns: Arc<dyn LunMaps>,
    pub counters: Arc<Counters>,
    pub clock: Clock,
    pub senders: Senders,
    pub mailboxes: Arc<Vec<Arc<Mailbox>>>,
    pub shutdown: Shutdown,
    pub addresses: Addresses,
    pub connections: ConnectionLimits,
    pub sessions: Mutex<Sessions>,
    pub ended: EndedSessions,
    pub refusals: Refusals,
    pub troubles: Troubles,
    /// Held while it is told to SCSI that volumes are gone.
    forgetting: Mutex<()>,
    /// Which thread serves a connection.
    pub places: Mutex<HashMap<ConnectionId, usize>>,
    pub checkpoint_bell: Arc<Bell>,
    pub saver: SaverQueue,
    pub throttles: Throttles,
    pub medium: Arc<Local>,
    /// The pollers, until their threads take them.
    pub polls: Mutex<Vec<Option<Poll>>>,
}

impl Shared {
    pub(super) fn new(options: &ServeOptions, portals: &[SocketAddr]) -> io::Result<Arc<Self>> {
        let count = super::thread_count(options.threads);
        let mut mailboxes = Vec::new();
        let mut polls = Vec::new();
        for _ in 0..count {
            let poll = Poll::new()?;
            mailboxes.push(Arc::new(Mailbox::new(Waker::new(poll.registry(), WAKER)?)));
            polls.push(Some(poll));
        }
        let mailboxes = Arc::new(mailboxes);
        // A portal is a SCSI target port of its own, in a portal group of its own: the relative
        // port identifier is its tag, too. The tag is in the port's name (RFC 7143, 4.4.3), so
        // portals with one tag would be one port, and hosts had a path less. The target port group
        // (ALUA) is another thing: any ports.
        let ids = options.portals.iter().map(|portal| portal.id);
        let target_name = &options.identity.target_name;
        let ports = options.portals.iter().map(|portal| TargetPort {
            relative_id: portal.id,
            group: portal.group,
            name: format!("{target_name},t,0x{:04x}", portal.id),
        });
        let rods = super::tokens::volume(options)?;
        let counters = Arc::new(Counters::new(count, ids.clone().collect()));
        let identity = options.identity.clone();
        let scsi = DeviceServer::new(identity, ports.collect(), rods, counters.clone());
        let tagged = portals.iter().zip(ids).map(|(a, id)| Portal { address: *a, tag: id });
        let target = Target::new(TargetConfig {
            target_name: target_name.clone(),
            target_alias: options.target_alias.clone(),
            portals: tagged.collect(),
            limits: options.limits.clone(),
            access: options.access.clone(),
            data_out_phase: scsi::data_out_phase,
            data_out_bytes: super::luns::data_out_bytes,
        });
        Ok(Arc::new(Self {
            store: options.store.clone(),
            scsi,
            target,
            luns: options.luns.clone(),
            counters,
            clock: Clock::start(),
            senders: Senders::new(),
            shutdown: Shutdown::new(mailboxes.clone()),
            mailboxes,
            addresses: Addresses::default(),
            connections: options.connections,
            sessions: Mutex::default(),
            ended: EndedSessions::default(),
            refusals: Refusals::default(),
            troubles: Troubles::default(),
            forgetting: Mutex::default(),
            places: Mutex::default(),
            checkpoint_bell: Arc::default(),
            saver: Default::default(),
            throttles: Throttles::default(),
            medium: options.medium.clone(),
            polls: Mutex::new(polls),
        }))
    }

    /// Forgets what SCSI keeps of volumes that are gone for ever: when it returns, of all that were
    /// eradicated before it was called.
    pub(super) fn forget_gone(&self) {
        let _forgetting = self.forgetting.lock();
        for volume in self.luns.take_gone() {
            self.scsi.volume_destroyed(volume);
        }
    }

    /// Tells the thread that serves a connection to look at it.
    pub(super) fn wake_connection(&self, id: ConnectionId) {
        let place = self.places.lock().get(&id).copied();
        if let Some(thread) = place {
            self.mailboxes[thread].post(Message::Wake(id));
        }
    }
}
