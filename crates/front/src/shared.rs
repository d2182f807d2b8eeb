//! What all front ends of an array share; created before the first of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use block::{ArrayIdentity, LunMap};
use parking_lot::Mutex;
use scsi::{DeviceServer, RodVolume, TargetPort};
use store::Store;

use super::command_set::{Asked, CommandSet, Commands, Nexus, Refusal, Step, Traits};
use super::counters::Counters;
use super::handing::{Handed, Untold};
use super::kept::{self, LoadError, TargetRecords};
use super::mailbox::{Mailbox, Message};
use super::managed::LunMaps;
use super::patience::BusyThreads;
use super::repeated::Senders;
use super::saver::SaverQueue;
use super::sessions::{EndedSessions, Refusals, SessionSnapshot, Sessions};
use super::throttle::Throttles;
use super::transport::{self, ConnectionId, PortOptions, Transports};
use super::wires::{Clock, Wake};

/// The configuration of the front ends.
pub struct Options {
    /// The pool.
    pub store: Arc<Store>,
    /// The volume with the data of ROD tokens.
    pub tokens: RodVolume,
    /// The identity that hosts see.
    pub identity: ArrayIdentity,
    /// The portals.
    pub ports: Vec<PortOptions>,
    /// The transport protocol.
    pub transports: Arc<dyn Transports>,
    /// The LUN maps of hosts.
    pub luns: Arc<dyn LunMaps>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The wakers of the front ends, one for each.
    pub wakers: Vec<Box<dyn Wake>>,
    /// Requests calls of [`Shared::save_next`], as long as it returns true.
    pub saver: Box<dyn Wake>,
    /// Requests maintenance of the store ([`Store::maintain`]).
    pub maintenance: Box<dyn Wake>,
}

/// What all front ends of an array share.
pub struct Shared {
    /// The pool.
    pub store: Arc<Store>,
    /// The command set.
    pub scsi: DeviceServer,
    /// The transport protocol.
    pub transports: Arc<dyn Transports>,
    /// The LUN maps of hosts.
    pub luns: Arc<dyn LunMaps>,
    /// The counters.
    pub counters: Arc<Counters>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The mailboxes of the front ends.
    pub mailboxes: Arc<Vec<Arc<Mailbox>>>,
    /// Refused logins.
    pub refusals: Refusals,
    pub(super) senders: Senders,
    pub(super) sessions: Mutex<Sessions>,
    pub(super) ended: EndedSessions,
    /// Held by the one thread that removes the state of eradicated volumes.
    forgetting: Mutex<()>,
    /// The thread that serves each connection.
    pub(super) places: Mutex<HashMap<ConnectionId, usize>>,
    pub(super) maintenance: Box<dyn Wake>,
    pub(super) saver: SaverQueue,
    pub(super) throttles: Throttles,
    pub(super) busy_threads: Arc<BusyThreads>,
    /// Whether connections are handed over to another process when the front ends stop.
    pub(super) hands_over: AtomicBool,
}

impl Shared {
    /// Creates the shared state of an array's front ends.
    pub fn new(options: Options) -> Arc<Self> {
        let Options { store, tokens, identity, ports, transports, luns, .. } = options;
        let Options { clock, wakers, saver, maintenance, .. } = options;
        // The target port group (ALUA) is independent of the portal group: it may contain any
        // ports.
        let target_name = &identity.target_name;
        let target_ports = ports.iter().map(|port| TargetPort {
            relative_id: port.id,
            group: port.group,
            name: format!("{target_name},t,0x{:04x}", port.id),
        });
        let target_ports = target_ports.collect();
        let counters =
            Arc::new(Counters::new(wakers.len(), ports.iter().map(|port| port.id).collect()));
        let scsi = DeviceServer::new(identity, target_ports, tokens, counters.clone());
        let mailboxes = wakers.into_iter().map(|waker| Arc::new(Mailbox::new(waker)));
        Arc::new(Self {
            store,
            scsi,
            transports,
            luns,
            counters,
            senders: Senders::new(clock.wall_ms()),
            clock,
            mailboxes: Arc::new(mailboxes.collect()),
            refusals: Refusals::default(),
            sessions: Mutex::default(),
            ended: EndedSessions::default(),
            forgetting: Mutex::default(),
            places: Mutex::default(),
            maintenance,
            saver: SaverQueue::new(saver),
            throttles: Throttles::default(),
            busy_threads: Arc::default(),
            hands_over: AtomicBool::default(),
        })
    }

    /// Restores the stored state, before any session.
    ///
    /// # Errors
    /// See [`TargetRecords::load`].
    pub fn restore(&self, records: &dyn TargetRecords) -> Result<(), LoadError> {
        self.set_time(); // the clock of tokens starts again
        kept::put_in_force(&self.scsi, records)
    }

    /// Runs the first step of a command whose host has announced this much data. Forgets eradicated
    /// volumes before a command that may contain a token: a token ends together with the volume
    /// that it was created from, not some time later.
    pub fn begin(
        &self,
        nexus: &Arc<Nexus>,
        luns: &Arc<LunMap>,
        traits: Traits,
        asked: Asked,
    ) -> Step {
        // How much data was solicited depends on the volume at the LUN when the command arrived. If
        // that has changed since, the rest was not solicited and must not count as written: the
        // host retries the command.
        let most = u64::from(asked.expected_out_bytes.min(self.transports.data_out_bytes_max()));
        if (asked.data_out.len() as u64) < traits.data_out_bytes.min(most) {
            return Step::Done(Commands::refuse(Refusal::Busy));
        }
        if traits.may_have_token {
            self.forget_gone();
        }
        self.scsi.start(nexus, luns, asked)
    }

    /// Makes durable what hosts have changed on the next volume, or of ROD tokens, and lets the
    /// commands that waited for that continue. Blocks on commits. Returns false if there was
    /// nothing to save.
    pub fn save_next(&self, records: &dyn TargetRecords) -> bool {
        self.saver.save_next(&self.scsi, &self.mailboxes, records)
    }

    /// Hands connections that can be handed over to another process when the front ends stop
    /// ([`crate::Wires::hand_over`]).
    pub fn hand_over_at_the_end(&self) {
        self.hands_over.store(true, Ordering::Release);
    }

    /// Returns the pending notifications of such a connection's host. Call it after all front ends
    /// have stopped, because commands may add to them until then.
    pub fn untold(&self, handed: &Handed) -> Untold {
        self.scsi.hand_over(&handed.nexus)
    }

    /// Prepares for these connections of another process, with their hosts' pending notifications.
    /// Must be called before anything is served. Returns `None` in place of a connection that can't
    /// continue.
    pub fn expect(
        &self,
        handed: Vec<(transport::Handed, Untold)>,
    ) -> Vec<Option<transport::Handed>> {
        let connections: Vec<_> = handed.iter().map(|(connection, _)| connection).collect();
        self.transports.expect(&connections);
        let expected = handed.into_iter().map(|(connection, untold)| {
            CommandSet::expect(&self.scsi, &connection, &untold).then_some(connection)
        });
        expected.collect()
    }

    /// Drops the SCSI state of all volumes that were eradicated before this call.
    pub fn forget_gone(&self) {
        let _forgetting = self.forgetting.lock();
        for volume in self.luns.take_gone() {
            self.scsi.volume_destroyed(volume);
        }
    }

    fn set_time(&self) {
        let now_ms = self.clock.now().as_millis();
        self.scsi.set_time(u64::try_from(now_ms).unwrap_or(u64::MAX));
    }

    /// Sets the target's time, and frees the data of ended ROD tokens. Blocks on commits, so a
    /// front end must not call it.
    pub fn sweep_tokens(&self) {
        self.set_time();
        let run = |request| match self.store.execute(request) {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!("the space of ended tokens is freed later: {error}");
                false
            }
        };
        while self.scsi.sweep_tokens(run) {}
        // The data of ended tokens is freed once their end is durable.
        if self.scsi.has_unsaved_tokens() {
            self.saver.save_tokens();
        }
    }

    /// Returns all sessions that carry commands, sorted by initiator and portal.
    pub fn sessions(&self) -> Vec<SessionSnapshot> {
        let all: Vec<_> = self.sessions.lock().by_id.values().cloned().collect();
        let mut all: Vec<_> = all.iter().map(|session| session.snapshot()).collect();
        all.sort_by(|a, b| (&a.initiator, a.portal, a.isid).cmp(&(&b.initiator, b.portal, b.isid)));
        all
    }

    /// Returns the last ended session of each initiator and portal, with its end in milliseconds
    /// since 1970.
    pub fn ended_sessions(&self) -> Vec<(u64, SessionSnapshot)> {
        self.ended.all()
    }

    /// Wakes the thread that serves a connection to process it.
    pub(super) fn wake_connection(&self, id: ConnectionId) {
        let place = self.places.lock().get(&id).copied();
        if let Some(thread) = place {
            self.mailboxes[thread].post(Message::Wake(id));
        }
    }
}
