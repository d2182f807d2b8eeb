//! `serve`: opens the pool, and starts the front end and management.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use api::{Access, Facts, Interface, Sources, Token};
use management::alerts::{self, Certificate, Watcher};
use management::certificate::{Credentials, Keeper, Renewer, ServerIdentity};
use management::history::Sampler;
use management::http::{Bound, Server};
use management::notify::{Notifier, Source};
use management::{health, web};
use network::{Directories, Names, Timekeeper};
use serde_json::json;
use sys::attendant::Attendant;
use sys::wall::now_ms;

use super::args::{Common, ServeArgs};
use super::config::Config;
use super::descriptors::{self, Needs};
use super::discover::{Registered, RunFile};
use super::door::{api_address, bind, bind_after_another};
use super::failure::Failure;
use super::fencing::Fence;
use super::first::First;
use super::identity;
use super::link;
use super::log;
use super::opening::{Opened, open};
use super::output::show;
use super::place::Places;
use super::supervised::GIVES_WAY;
use super::telemetry::{FrontEnd, InForce, Watched};
use super::turn;
use crate::serve::controllers::{Claim, Controller};
use crate::serve::{
    Holding, Running, ServeError, check_portal_count, tell_ready, thread_count, was_asked_to_end,
};

/// Serves until SIGTERM or SIGINT. Of two controllers the one that finds the pool taken forwards to
/// the other until it can take the pool.
pub fn run(common: &Common, options: &ServeArgs) -> Result<ExitCode, Failure> {
    let config = Config::load(options.config.as_deref())?;
    let pool = named([&options.places, &common.pool, &config.pool])?;
    let plain = config.http || options.api_http || common.api.as_ref().is_some_and(|api| api.plain);
    let api = api_address(common.api.as_ref(), config.allow_remote_api, plain)?;
    check_portal_count(options.iscsi.len()).map_err(of_serving)?;
    log::start(config.log_level);
    let (places, _) = Places::of_existing_or_new(pool)?;
    let shares = descriptors::take(Needs {
        threads: thread_count(config.threads),
        portals: options.iscsi.len(),
        devices: places.all.len() + places.missing.len(),
        has_link: link::is_wanted(options, &config),
    });
    let Some(mut turn) = turn::take(common, options, &config, shares, pool)? else {
        return Ok(ExitCode::SUCCESS);
    };
    let (places, is_first) = Places::of_existing_or_new(pool)?;
    let bind = if turn.takes_over.is_some() { bind_after_another } else { bind };
    let fence = turn.fence.clone();
    let places = fence.as_ref().map_or(places.clone(), |fence| fence.of(places));
    let bound = bind(api, common.api.is_none())?;
    let first = match is_first {
        true => Some(First::make(&places, options)?),
        false => None,
    };
    let (claim, gives_way) = (turn.claim.take(), turn.gives_way.clone());
    let (opened, serving) = open(&places, &config, options, shares, turn)?;
    let place = places.first();
    let pool_id = opened.array.pool().pool_id;
    let identity = match plain {
        true => None,
        false => Some(identity::in_force(&config, place, &opened.array, bound.address.ip())?),
    };
    let bound = Some(bound);
    let directory = identity::directory(&config, place, pool_id)
        .inspect_err(|failure| tracing::warn!("there is no history of performance: {failure}"))
        .ok();
    let running = None;
    let connections = shares.management;
    let mut manager = Manager {
        common,
        places: &places,
        directory,
        bound,
        connections,
        identity,
        opened,
        first,
        running,
        holding: Holding::of_environment(),
    };
    let mut failed = None;
    fence.iter().for_each(Fence::wait);
    let served = crate::serve::run(serving, |running| {
        let shutdown = running.shutdown.clone();
        if let Err(failure) = manager.start(running) {
            shutdown.trigger();
            failed = Some(failure);
        }
    });
    let ended = failed.map_or_else(|| served.map_err(of_serving), Err);
    if ended.is_ok() && gives_way.load(Ordering::Acquire) {
        manager.give_way(fence.as_ref(), claim.as_ref());
    }
    drop(manager);
    fence.iter().for_each(Fence::end);
    drop(claim);
    ended.map(|()| ExitCode::SUCCESS)
}

/// Returns the first of these that names a pool.
fn named(places: [&Vec<PathBuf>; 3]) -> Result<&Vec<PathBuf>, Failure> {
    let text = "serve needs a pool: holdfast serve DIR, or --pool (an empty directory will do)";
    let mut places = places.into_iter();
    places.find(|paths| !paths.is_empty()).ok_or_else(|| Failure::Usage(text.into()))
}

pub(super) fn of_serving(error: ServeError) -> Failure {
    match error {
        ServeError::Listen { .. } => Failure::Machine(format!("{error} (--iscsi)")),
        ServeError::PortalCount(_) => Failure::Usage(error.to_string()),
        ServeError::Start(_) | ServeError::Reservations(_) | ServeError::Checkpoint(_) => {
            Failure::Machine(error.to_string())
        }
    }
}

/// The parts of management, dropped in order: first the renewer, which writes run files, then the
/// run files, so that no verb finds an interface that is about to end.
type Parts = (Option<Renewer>, Arc<Registered>, Server, Sampler, Watcher, Attendant);

/// The management of a running array.
struct Manager<'a> {
    common: &'a Common,
    places: &'a Places,
    /// The directory of the history; `None` if there is none.
    directory: Option<PathBuf>,
    bound: Option<Bound>,
    /// The maximum number of connections.
    connections: usize,
    /// `None` for plain HTTP.
    identity: Option<ServerIdentity>,
    opened: Opened,
    /// The first start's messages, if the pool was just made.
    first: Option<First>,
    running: Option<Parts>,
    /// Keeps the other controller stopped on request.
    holding: Holding,
}

/// The watcher for problems, and the receivers of notifications.
struct Watching {
    notifier: Arc<Notifier>,
    time: Arc<Timekeeper>,
    directories: Arc<Directories>,
    watcher: Watcher,
    health: Attendant,
}

impl Manager<'_> {
    fn start(&mut self, running: Running) -> Result<(), Failure> {
        let Some(bound) = self.bound.take() else { return Ok(()) };
        let failed =
            |error: io::Error| Failure::Machine(format!("can't start management: {error}"));
        let mut entropy = [0; 32];
        sys::entropy(&mut entropy).map_err(|error| Failure::Machine(error.to_string()))?;
        let token = Token::from_entropy(&entropy);
        let run = RunFile {
            v: 1,
            api: bound.address,
            token: token.expose().to_owned(),
            fingerprint: self.fingerprint(),
            pid: std::process::id(),
            pool: self.places.first().pool.clone(),
            places: self.places.others(),
        };
        let facts = Facts {
            version: env!("CARGO_PKG_VERSION").into(),
            portals: running.portals.iter().map(ToString::to_string).collect(),
            port_ids: running.port_ids.clone(),
            durability: self.opened.durability.name().into(),
            started_ms: now_ms(),
            pid: std::process::id(),
            is_second: self.opened.own == Controller::Ct1,
            elsewhere: self.opened.elsewhere,
        };
        let Watching { notifier, time, directories, watcher, health } = self.watch(&running)?;
        let (array, counters) = (self.opened.array.clone(), running.counters.clone());
        let sampler = Sampler::start(self.directory.as_deref(), array, counters).map_err(failed)?;
        let interface = Arc::new(Interface {
            array: self.opened.array.clone(),
            access: Access::new(token, sources()),
            telemetry: Arc::new(FrontEnd {
                counters: running.counters.clone(),
                store: self.opened.store.clone(),
                observer: running.observer.clone(),
                members: self.opened.members.clone(),
                portals: facts.portals.clone(),
            }),
            changes: self.opened.members.clone(),
            watch: Arc::new(Watched {
                observer: running.observer.clone(),
                notifier,
                time,
                directories,
                certificates: Keeper::new(self.credentials(), bound.address.ip()),
                array: self.opened.array.clone(),
                shutdown: running.shutdown.clone(),
                gives_way: self.opened.gives_way.clone(),
                holding: self.holding.clone(),
                other: self.opened.own.other(),
            }),
            history: sampler.history().clone(),
            facts,
            now_ms,
        });
        let api = bound.address;
        let tls = self.identity.as_ref().map(|identity| identity.tls.clone());
        let router = move || web::before(api::router(interface));
        let server = bound.start(tls, self.connections, router).map_err(failed)?;
        let registered = Arc::new(Registered::new(&run));
        let renewer = self.credentials().map(|shown| renew(shown, registered.clone(), run));
        let renewer = renewer.transpose().map_err(failed)?;
        self.running = Some((renewer, registered, server, sampler, watcher, health));
        self.announce(&running.portals, api, &self.places.first().pool)?;
        tell_ready().map_err(|error| Failure::Machine(error.to_string()))
    }

    /// Ends the process, because the other controller is to have the pool, unless the process was
    /// asked to end: then it must not be restarted.
    fn give_way(&mut self, fence: Option<&Fence>, claim: Option<&Claim>) {
        if was_asked_to_end() {
            return;
        }
        // This management interface must end before the one of the next owner starts.
        drop(self.running.take());
        // Nothing writes any more.
        let end = claim.zip(self.opened.store.log_end());
        let left = end.map_or(Ok(()), |(claim, end)| claim.leave(&end.to_string()));
        left.unwrap_or_else(|error| {
            tracing::debug!("the end of the log is not passed on: {error}")
        });
        fence.into_iter().for_each(Fence::end);
        // Hosts wait: the system releases the rest faster than the process could.
        std::process::exit(GIVES_WAY.into());
    }

    /// Returns the certificate and its key; `None` if management is not encrypted.
    fn credentials(&self) -> Option<Arc<Credentials>> {
        self.identity.as_ref().map(|identity| identity.credentials.clone())
    }

    /// Returns the fingerprint of the certificate.
    fn fingerprint(&self) -> Option<String> {
        self.credentials().map(|credentials| credentials.fingerprint().to_string())
    }

    /// Starts to watch for problems, and to send notifications.
    fn watch(&mut self, running: &Running) -> Result<Watching, Failure> {
        let failed = |error: std::io::Error| Failure::Machine(format!("can't watch: {error}"));
        let destinations = std::mem::take(&mut self.opened.destinations);
        let array = self.opened.array.clone();
        let names = Names::of(&array);
        let time = Timekeeper::start(&array, names.clone()).map_err(failed)?;
        let directories = Directories::start(&array, names.clone()).map_err(failed)?;
        let notifier = Notifier::start(destinations, Source::of(&array), names).map_err(failed)?;
        let notifier = Arc::new(notifier);
        let credentials = self.credentials();
        let certificate = move || {
            let credentials = credentials.as_ref()?;
            let path = credentials.place();
            Some(Certificate { path, ends_ms: credentials.ends_ms()? })
        };
        let members = self.opened.members.clone();
        let sources = alerts::Sources {
            array: self.opened.array.clone(),
            counters: running.counters.clone(),
            observed: Box::new(InForce {
                observer: running.observer.clone(),
                holding: self.holding.clone(),
            }),
            portals: running.portals.len(),
            store: self.opened.store.clone(),
            device: self.opened.members.name(),
            members: Box::new(move || members.statuses_of_several()),
            health: self.opened.members.health().clone(),
            certificate: Box::new(certificate),
            time: time.clone(),
            directories: directories.clone(),
        };
        let watcher = Watcher::start(sources, notifier.clone()).map_err(failed)?;
        let members = self.opened.members.clone();
        let names = move || members.statuses().into_iter().map(|device| device.name).collect();
        let health = health::start(self.opened.members.health().clone(), names).map_err(failed)?;
        Ok(Watching { notifier, time, directories, watcher, health })
    }

    /// Prints one line when hosts and verbs can connect. A failure to print (a full file system)
    /// does not stop the array.
    fn announce(
        &self,
        portals: &[SocketAddr],
        api: SocketAddr,
        pool: &Path,
    ) -> Result<(), Failure> {
        let target = self.opened.settings.target_name.to_string();
        let fingerprint = self.fingerprint();
        let scheme = if fingerprint.is_some() { "https" } else { "http" };
        let first = self.first.as_ref();
        let beginning = first.map(|first| first.beginning(&self.opened.array, portals, &target));
        let beginning = beginning.transpose()?;
        let mut reported = json!({
            "serving": pool,
            "target_name": target,
            "portals": portals,
            "api": api,
            "url": format!("{scheme}://{api}"),
            "fingerprint": fingerprint,
        });
        if let Some(beginning) = &beginning {
            reported["first_start"] = json!(beginning);
        }
        let shown = show(self.common.form, &reported, || {
            let portals = portals.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let pool = pool.display();
            let made = beginning.as_ref().map(|beginning| beginning.made());
            let mut text = made.unwrap_or_default();
            text.push_str(&format!(
                "Serving {pool} as {target} on {portals}; management on {scheme}://{api}\n"
            ));
            if let Some(fingerprint) = fingerprint {
                text.push_str(&format!("Fingerprint of its certificate: {fingerprint}\n"));
            }
            if let Some(beginning) = &beginning {
                text.push_str(&beginning.next(&format!("{scheme}://{api}")));
            }
            text
        });
        if let Err(failure) = shown {
            tracing::warn!("{failure}");
        }
        Ok(())
    }
}

/// Keeps the certificate in use, and its fingerprint in run files, up to date.
fn renew(
    shown: Arc<Credentials>,
    registered: Arc<Registered>,
    mut run: RunFile,
) -> io::Result<Renewer> {
    Renewer::start(shown, move |fingerprint| {
        run.fingerprint = Some(fingerprint.to_string());
        registered.write_again(&run);
    })
}

/// Returns the time and the random bytes that sessions need.
fn sources() -> Sources {
    let clock = sys::Clock::start();
    let entropy = || {
        let mut bytes = [0; 32];
        match sys::entropy(&mut bytes) {
            Ok(()) => Some(bytes),
            Err(error) => {
                tracing::error!("{error}");
                None
            }
        }
    };
    Sources { uptime_ms: Box::new(move || clock.now_ms()), entropy: Box::new(entropy) }
}
