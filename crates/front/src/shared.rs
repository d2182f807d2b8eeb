//! What all front ends of an array share, made before the first of them.

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

/// What to serve, and to whom.
pub struct Options {
    /// The pool.
    pub store: Arc<Store>,
    /// What ROD tokens stand for.
    pub tokens: RodVolume,
    /// What hosts are told of the array.
    pub identity: ArrayIdentity,
    /// Where hosts come in.
    pub ports: Vec<PortOptions>,
    /// The protocol that they speak.
    pub transports: Arc<dyn Transports>,
    /// What they see then.
    pub luns: Arc<dyn LunMaps>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// What wakes each of the front ends: as many as there are.
    pub wakers: Vec<Box<dyn Wake>>,
    /// Has [`Shared::save_next`] called, as often as it returns true.
    pub saver: Box<dyn Wake>,
    /// Has the store's maintenance called, as it is due ([`Store::maintain`]).
    pub maintenance: Box<dyn Wake>,
}

/// What all front ends of an array share.
pub struct Shared {
    /// The pool.
    pub store: Arc<Store>,
    /// What commands do.
    pub scsi: DeviceServer,
    /// The protocol that hosts speak.
    pub transports: Arc<dyn Transports>,
    /// What they see then.
    pub luns: Arc<dyn LunMaps>,
    /// What was done.
    pub counters: Arc<Counters>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Where each front end hears of the others.
    pub mailboxes: Arc<Vec<Arc<Mailbox>>>,
    /// Who was refused at login.
    pub refusals: Refusals,
    pub(super) senders: Senders,
    pub(super) sessions: Mutex<Sessions>,
    pub(super) ended: EndedSessions,
    /// Only one thread at a time removes the state of eradicated volumes.
    forgetting: Mutex<()>,
    /// Which thread serves a connection.
    pub(super) places: Mutex<HashMap<ConnectionId, usize>>,
    pub(super) maintenance: Box<dyn Wake>,
    pub(super) saver: SaverQueue,
    pub(super) throttles: Throttles,
    pub(super) busy_threads: Arc<BusyThreads>,
    /// Whether connections go on in another process when the front ends end.
    pub(super) hands_over: AtomicBool,
}

impl Shared {
    /// What the front ends of an array share that serves this.
    pub fn new(options: Options) -> Arc<Self> {
        let Options { store, tokens, identity, ports, transports, luns, .. } = options;
        let Options { clock, wakers, saver, maintenance, .. } = options;
        // The target port group (ALUA) is another thing than the portal group: any ports.
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

    /// Puts in force what was kept, before any session.
    ///
    /// # Errors
    /// See [`TargetRecords::load`].
    pub fn restore(&self, records: &dyn TargetRecords) -> Result<(), LoadError> {
        self.set_time(); // that of tokens begins anew
        kept::put_in_force(&self.scsi, records)
    }

    /// The first step of a command, whose host has announced so many bytes of data. What is gone is
    /// forgotten before one that may come with a token: a token ends with the volume that it was
    /// made of, and not some time later.
    pub fn begin(
        &self,
        nexus: &Arc<Nexus>,
        luns: &Arc<LunMap>,
        traits: Traits,
        asked: Asked,
    ) -> Step {
        // How much data was asked for depends on what was at the LUN when the command came. If that
        // has changed since, the rest was not asked for, and must not count as written: the host
        // sends the command again.
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
    /// commands go on that waited for that. Waits for commits. Returns false if there was nothing
    /// to save.
    pub fn save_next(&self, records: &dyn TargetRecords) -> bool {
        self.saver.save_next(&self.scsi, &self.mailboxes, records)
    }

    /// From the next end of front ends on connections go on in another process, where they can
    /// ([`crate::Wires::hand_over`]).
    pub fn hand_over_at_the_end(&self) {
        self.hands_over.store(true, Ordering::Release);
    }

    /// What the host of such a connection has still to be told, once all front ends have ended:
    /// till then commands may add to that.
    pub fn untold(&self, handed: &Handed) -> Untold {
        self.scsi.hand_over(&handed.nexus)
    }

    /// These connections of another process go on here, with what their hosts are to be told. To be
    /// told before anything is served. `None` in the place of one that can't.
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

    /// Forgets what SCSI keeps of volumes that are gone for ever: when it returns, of all that were
    /// eradicated before it was called.
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

    /// Tells the target what time it is, and frees what ROD tokens stood for that have ended. Waits
    /// for commits: not for a front end.
    pub fn sweep_tokens(&self) {
        self.set_time();
        let run = |request| match self.store.execute(request) {
            Ok(_) => true,
            Err(error) => {
                tracing::warn!("the space of tokens that have ended is freed later: {error}");
                false
            }
        };
        while self.scsi.sweep_tokens(run) {}
        // What has ended is freed when that is durable.
        if self.scsi.has_unsaved_tokens() {
            self.saver.save_tokens();
        }
    }

    /// All sessions that carry commands, in the order of initiators and portals.
    pub fn sessions(&self) -> Vec<SessionSnapshot> {
        let all: Vec<_> = self.sessions.lock().by_id.values().cloned().collect();
        let mut all: Vec<_> = all.iter().map(|session| session.snapshot()).collect();
        all.sort_by(|a, b| (&a.initiator, a.portal, a.isid).cmp(&(&b.initiator, b.portal, b.isid)));
        all
    }

    /// The last sessions that have ended of each initiator and portal, and when, in milliseconds
    /// since 1970.
    pub fn ended_sessions(&self) -> Vec<(u64, SessionSnapshot)> {
        self.ended.all()
    }

    /// Tells the thread that serves a connection to look at it.
    pub(super) fn wake_connection(&self, id: ConnectionId) {
        let place = self.places.lock().get(&id).copied();
        if let Some(thread) = place {
            self.mailboxes[thread].post(Message::Wake(id));
        }
    }
}
