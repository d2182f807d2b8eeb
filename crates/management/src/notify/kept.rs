//! The destinations that are set in the pool: alert watchers, which receive mail through its relay,
//! syslog servers and SNMP managers. The settings are read before each use, so that a change takes
//! effect at once; events that wait for an unchanged destination are kept.

use std::sync::Arc;
use std::time::Duration;

use array::{
    Array, Encryption, MailAddress, Notifications, Relay, Severity, SnmpManager, SyslogProtocol,
    SyslogServer,
};
use lettre::address::Address;
use network::Names;
use parking_lot::Mutex;

use super::snmp::{self, Engine};
use super::{
    Destination, Event, Mail, MailSecurity, Sender, Syslog, Transport, Worker, client_config,
};

/// The settings of notifications in the pool.
pub struct Source {
    /// Returns the current settings. The same allocation as long as nothing has changed.
    pub named: Box<dyn Fn() -> Arc<Notifications> + Send + Sync>,
    /// The array's identity for SNMP managers.
    pub engine: Arc<Engine>,
}

impl Source {
    /// Returns the settings of an array's pool.
    pub fn of(array: &Arc<Array>) -> Self {
        let (named, counting) = (array.clone(), Arc::downgrade(array));
        let boots = move || {
            let array = counting.upgrade().ok_or("the array has ended")?;
            array.next_snmp_boots().map_err(|error| error.to_string())
        };
        let engine = Engine::new(array.snmp_engine_id(), Box::new(boots));
        Self { named: Box::new(move || named.notifications()), engine }
    }
}

/// A destination of the pool. Two that are equal send in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Receiver {
    /// A recipient of mail.
    Watcher(Relay, MailAddress),
    /// A syslog server.
    Server(SyslogServer),
    /// An SNMP manager, and the array's identity for it.
    Manager(SnmpManager, Arc<Engine>),
}

impl Receiver {
    /// Returns all recipients.
    fn all(named: &Notifications, engine: &Arc<Engine>) -> Vec<Self> {
        let has_relay = named.relay.place().is_some();
        let watchers = named.watchers().filter(|watcher| has_relay && watcher.is_enabled);
        let watchers = watchers.map(|it| Self::Watcher(named.relay.clone(), it.address.clone()));
        let managers = named.managers().cloned();
        let managers = managers.map(|it| Self::Manager(it, engine.clone()));
        watchers.chain(named.servers().cloned().map(Self::Server)).chain(managers).collect()
    }

    /// Returns its name, which begins with the path of its list.
    fn name(&self) -> String {
        match self {
            Self::Watcher(_, address) => api::watcher_destination(address.as_str()),
            Self::Server(server) => api::syslog_destination(server.name.as_str()),
            Self::Manager(manager, _) => api::snmp_destination(manager.name.as_str()),
        }
    }

    fn destination(&self) -> Destination {
        let (severity, audit) = match self {
            Self::Watcher(..) => (Severity::Warning, false),
            Self::Server(_) => (Severity::Info, true),
            Self::Manager(..) => (Severity::Info, false),
        };
        Destination { name: self.name(), severity, audit, sender: Arc::new(self.clone()) }
    }
}

impl Sender for Receiver {
    fn send(&self, event: &Event, names: &Names) -> Result<(), String> {
        match self {
            Self::Watcher(relay, address) => mail(relay, address, &event.array)?.send(event, names),
            Self::Server(server) => syslog(server)?.send(event, names),
            Self::Manager(manager, engine) => snmp::send(manager, engine, event, names),
        }
    }
}

/// Returns how to send mail to a recipient.
fn mail(relay: &Relay, to: &MailAddress, array: &str) -> Result<Mail, String> {
    let (host, port) = relay.place().ok_or("there is no relay")?;
    let sender = match relay.sender_username.as_str() {
        "" => array,
        name => name,
    };
    let refused = |error: lettre::address::AddressError| format!("an address: {error}");
    let credentials = (relay.user.clone(), relay.password.expose().to_owned());
    Ok(Mail {
        host,
        port,
        security: match relay.encryption {
            Encryption::None => MailSecurity::None,
            Encryption::StartTls => MailSecurity::StartTls,
            Encryption::Tls => MailSecurity::Tls,
        },
        ca_file: None,
        credentials: Some(credentials).filter(|(user, _)| !user.is_empty()),
        from: Address::new(sender, &relay.sender_domain).map_err(refused)?,
        to: vec![to.as_str().parse().map_err(refused)?],
        subject_prefix: relay.subject_prefix.clone(),
        body_prefix: relay.body_prefix.clone(),
    })
}

/// Returns how to send to a syslog server.
fn syslog(server: &SyslogServer) -> Result<Syslog, String> {
    let transport = match server.uri.protocol {
        SyslogProtocol::Udp => Transport::Udp,
        SyslogProtocol::Tcp => Transport::Tcp,
        SyslogProtocol::Tls => {
            Transport::Tls(client_config(None).map_err(|error| error.to_string())?)
        }
    };
    Ok(Syslog { address: server.uri.address(), transport, hostname: super::hostname() })
}

/// The destinations of the pool, each with its thread.
pub(super) struct Kept {
    source: Source,
    names: Arc<Names>,
    pause: Duration,
    state: Mutex<Started>,
}

#[derive(Default)]
struct Started {
    /// The settings when they were started; `None` before the first check, and if some could not be
    /// started.
    of: Option<Arc<Notifications>>,
    workers: Vec<(Receiver, Arc<Worker>)>,
}

impl Kept {
    pub(super) fn new(source: Source, names: Arc<Names>, pause: Duration) -> Self {
        Self { source, names, pause, state: Mutex::default() }
    }

    /// Returns those that are set now.
    pub(super) fn workers(&self) -> Vec<Arc<Worker>> {
        let (named, mut state) = ((self.source.named)(), self.state.lock());
        if !state.of.as_ref().is_some_and(|of| Arc::ptr_eq(of, &named)) {
            let is_whole = state.follow(&named, self);
            state.of = is_whole.then_some(named);
        }
        state.all()
    }

    /// Returns those that are started, without reading the settings.
    pub(super) fn started(&self) -> Vec<Arc<Worker>> {
        self.state.lock().all()
    }
}

impl Started {
    fn all(&self) -> Vec<Arc<Worker>> {
        self.workers.iter().map(|(_, worker)| worker.clone()).collect()
    }

    /// Starts, changes and stops threads. Returns whether all could be started.
    fn follow(&mut self, named: &Notifications, kept: &Kept) -> bool {
        let mut old = std::mem::take(&mut self.workers);
        let mut is_whole = true;
        for receiver in Receiver::all(named, &kept.source.engine) {
            let name = receiver.name();
            let found = old.iter().position(|(before, _)| before.name() == name);
            let worker = match found.map(|at| old.swap_remove(at)) {
                Some((before, worker)) => {
                    if before != receiver {
                        worker.renew(receiver.destination());
                    }
                    worker
                }
                None => match Worker::start(receiver.destination(), &kept.names, kept.pause) {
                    Ok(worker) => worker,
                    Err(error) => {
                        tracing::error!("notifications to {name} can't be sent: {error}");
                        is_whole = false;
                        continue;
                    }
                },
            };
            self.workers.push((receiver, worker));
        }
        old.iter().for_each(|(_, worker)| worker.stop());
        is_whole
    }
}
