//! The front end's counters in the form of the management interface.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use api::{
    Certificates, CommandCounters, Copied, Device, DeviceTransfers, Devices, DirectoryLogin,
    DirectoryServer, HostSession, LatencyBucket, MemoryCounters, NotificationTest, OtherController,
    PathCounters, PortCounters, RefusedLogin, SessionTerms, Telemetry, TellLogin, TimeServer,
    Watch, WireCounters,
};
use array::Array;
use front::counters::{
    COMMAND_LATENCY_BOUNDS_US, Class, ClassSnapshot, CommandLatencies, CopySnapshot,
};
use front::sessions::{Refused, SessionSnapshot};
use front::{Counters, DeviceSnapshot, LATENCY_BOUNDS_US, TransferSnapshot};
use management::alerts::Observed;
use management::certificate::Keeper;
use management::notify::{Event, News, Notifier};
use network::{Directories, DirectoryTest, TimeAnswer, Timekeeper};
use store::Store;
use sys::wall::now_ms;

use super::members::Members;
use crate::serve::controllers::{Controller, Other};
use crate::serve::{Holding, Observer, Shutdown};

/// The name of all devices of a pool together, if there are several.
pub const TOGETHER: &str = "pool";

/// The counters of a running front end, and of its store.
pub struct FrontEnd {
    pub counters: Arc<Counters>,
    pub store: Arc<Store>,
    pub observer: Observer,
    /// The address of each port.
    pub portals: Vec<String>,
    /// The devices of the pool.
    pub members: Arc<Members>,
}

impl Telemetry for FrontEnd {
    fn counters(&self) -> api::Counters {
        let paths = self.counters.paths_with(|path, counted| PathCounters {
            initiator: path.initiator,
            volume_id: path.volume.map(|id| id.0),
            volume: None,
            commands: by_class(&path.classes, |class| counted.latencies(class)),
            reserves: path.reserves,
            zeros_written_bytes: path.zeros_bytes,
            copied_from: copied(path.copied_from),
            copied_to: copied(path.copied_to),
        });
        api::Counters { paths, ..self.totals() }
    }

    fn totals(&self) -> api::Counters {
        let wire = self.counters.wire();
        let ids = self.counters.port_ids().iter();
        let ports = self.portals.iter().zip(ids).zip(self.counters.ports()).enumerate();
        let ports = ports.map(|(port, ((portal, id), classes))| PortCounters {
            id: *id,
            portal: portal.clone(),
            commands: by_class(&classes, |class| {
                Some(self.counters.port_latencies(class, Some(port)))
            }),
        });
        let totals = Class::ALL.into_iter().zip(self.counters.totals()).map(|(class, counts)| {
            let latencies = self.counters.port_latencies(class, None);
            (class.name().to_owned(), converted(&counts, buckets(&latencies).collect()))
        });
        api::Counters {
            wire: WireCounters {
                received_bytes: wire.received_bytes,
                sent_bytes: wire.sent_bytes,
                connections: wire.connections,
            },
            memory: memory_of(&self.store),
            written: self.store.written().into(),
            totals: totals.collect(),
            ports: ports.collect(),
            ..api::Counters::default()
        }
    }

    fn devices(&self) -> Devices {
        let DeviceSnapshot { reads, writes } = self.counters.device();
        let counted = |device: Device| Device {
            takes_writes: !self.observer.has_failed(),
            retries: self.store.device_retries(),
            moved_writes: self.store.moved_writes(),
            failed_flushes: self.store.failed_flushes(),
            unflushed_bytes: self.store.unflushed_bytes(),
            reads: transfers(reads),
            commits: transfers(writes),
            ..device
        };
        let devices = self.members.devices();
        match self.members.are_several() {
            false => {
                Devices { devices: devices.into_iter().map(counted).collect(), together: None }
            }
            true => {
                let all = Device { name: TOGETHER.into(), ..Device::default() };
                Devices { devices, together: Some(counted(all)) }
            }
        }
    }
}

/// Counters of a device in the form of interfaces.
pub fn transfers(transfers: TransferSnapshot) -> DeviceTransfers {
    let ok = transfers.ok();
    let TransferSnapshot { under_way, latencies, failed, bytes, .. } = transfers;
    let TransferSnapshot { ok_latency_us, ok_latency_us_max, .. } = transfers;
    let bounds_us = LATENCY_BOUNDS_US.into_iter().map(Some).chain([None]);
    let buckets =
        bounds_us.zip(latencies).map(|(up_to_us, count)| LatencyBucket { up_to_us, count });
    DeviceTransfers {
        under_way,
        ok,
        failed,
        bytes,
        ok_latency_us,
        ok_latency_us_max,
        latencies: buckets.collect(),
    }
}

/// The sessions of a running front end, and the destinations of its notifications.
pub struct Watched {
    pub observer: Observer,
    pub notifier: Arc<Notifier>,
    pub time: Arc<Timekeeper>,
    pub directories: Arc<Directories>,
    pub certificates: Keeper,
    pub array: Arc<Array>,
    /// Ends the process.
    pub shutdown: Shutdown,
    /// Whether it ends to give the pool up to the other controller.
    pub gives_way: Arc<AtomicBool>,
    /// Keeps the other controller stopped.
    pub holding: Holding,
    /// The other controller.
    pub other: Controller,
}

impl Watch for Watched {
    fn is_other_stopped(&self) -> bool {
        self.holding.is_held()
    }

    fn keep_other_down(&self, down: bool) -> Result<(), String> {
        if down {
            self.observer.end_guests();
        }
        self.holding.hold(self.other.name(), down).map_err(|error| error.to_string())
    }

    fn other_controller(&self) -> Option<OtherController> {
        let Other { pid, version, since_ms } = self.observer.other_controller()?;
        Some(OtherController { pid, version, since_ms })
    }

    fn switch(&self) {
        self.observer.hand_over();
        self.gives_way.store(true, Ordering::Release);
        self.shutdown.trigger();
    }

    fn sessions(&self) -> Vec<HostSession> {
        self.observer.sessions().into_iter().map(session_of).collect()
    }

    fn ended_sessions(&self) -> Vec<(u64, HostSession)> {
        let ended = self.observer.ended_sessions().into_iter();
        ended.map(|(ended_ms, session)| (ended_ms, session_of(session))).collect()
    }

    fn refused_logins(&self) -> Vec<(String, RefusedLogin)> {
        let refused_login = |refused: Refused| RefusedLogin {
            count: refused.count,
            time_ms: refused.time_ms,
            address: refused.address.to_string(),
            why: refused.why().into(),
            status: u16::from_be_bytes([refused.status.0, refused.status.1]),
        };
        self.observer
            .refused()
            .into_iter()
            .map(|(name, refused)| (name, refused_login(refused)))
            .collect()
    }

    fn certificates(&self) -> Option<&dyn Certificates> {
        Some(&self.certificates)
    }

    fn time_servers(&self) -> Vec<TimeServer> {
        self.time.answers().into_iter().map(time_server).collect()
    }

    fn test_time_servers(&self) -> Vec<TimeServer> {
        self.time.ask().into_iter().map(time_server).collect()
    }

    fn log_in_by_directory(&self, user: String, password: String, tell: TellLogin) {
        self.directories.log_in(user, password, |login| {
            tell(match login {
                network::DirectoryLogin::Known { name, role } => {
                    DirectoryLogin::Known { name, role }
                }
                network::DirectoryLogin::Refused(why) => {
                    tracing::info!("no user can log in by the directory service: {why}");
                    DirectoryLogin::Refused
                }
                network::DirectoryLogin::Unreachable(why) => {
                    tracing::warn!("the directory service can't be queried: {why}");
                    DirectoryLogin::Unreachable
                }
            });
        });
    }

    fn test_directory(&self) -> Vec<DirectoryServer> {
        self.directories.test().into_iter().map(directory_server).collect()
    }

    fn test_notifications(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<NotificationTest> {
        let array = self.array.name();
        let event = Event { news: News::Test, time_ms: now_ms(), array };
        let tested = self.notifier.test(&event, is_wanted).into_iter();
        tested
            .map(|(destination, sent)| NotificationTest { destination, error: sent.err() })
            .collect()
    }
}

fn directory_server(tested: DirectoryTest) -> DirectoryServer {
    let (found, error) = match tested.result {
        Ok(found) => (Some(found), None),
        Err(error) => (None, Some(error)),
    };
    DirectoryServer { uri: tested.uri, found, error }
}

fn time_server(answer: TimeAnswer) -> TimeServer {
    let (offset_s, error) = match answer.offset_s {
        Ok(offset_s) => (Some(offset_s), None),
        Err(error) => (None, Some(error)),
    };
    TimeServer { server: answer.server, offset_s, error }
}

fn session_of(session: SessionSnapshot) -> HostSession {
    let terms = session.terms;
    HostSession {
        initiator: session.initiator,
        host: None,
        isid: session.isid.iter().map(|byte| format!("{byte:02x}")).collect(),
        portal: session.portal,
        portal_address: String::new(),
        peer: session.peer.to_string(),
        terms: SessionTerms {
            header_digest: terms.header_digest,
            data_digest: terms.data_digest,
            initial_r2t: terms.initial_r2t,
            immediate_data: terms.immediate_data,
            burst_bytes: terms.burst_bytes,
            first_burst_bytes: terms.first_burst_bytes,
            send_segment_bytes: terms.send_segment_bytes,
            commands: terms.commands,
        },
        commands: session.commands,
        queue_most: session.queue_most,
    }
}

fn memory_of(store: &Store) -> MemoryCounters {
    let memory = store.memory_status();
    MemoryCounters {
        data_cache_limit_bytes: memory.data_cache_limit_bytes,
        data_cache_bytes: memory.data_cache_bytes,
        metadata_limit_bytes: memory.metadata_limit_bytes,
        metadata_bytes: memory.metadata_bytes,
        dirty_bytes: memory.dirty_bytes,
        writing_bytes: memory.writing_bytes,
        index_limit_bytes: memory.index_limit_bytes,
        pages: memory.page_count,
        nodes: memory.node_count,
        hits: memory.hits,
        misses: memory.misses,
        evictions: memory.evictions,
    }
}

fn copied(CopySnapshot { commands, bytes }: CopySnapshot) -> Copied {
    Copied { commands, bytes }
}

/// Returns the classes that occurred, with the buckets of latencies that are not empty.
fn by_class(
    classes: &[ClassSnapshot],
    latencies: impl Fn(Class) -> Option<CommandLatencies>,
) -> BTreeMap<String, CommandCounters> {
    let named = Class::ALL.into_iter().zip(classes);
    let occurred = named.filter(|(_, counts)| counts.ok + counts.failed > 0);
    let each = occurred.map(|(class, counts)| {
        let latencies = latencies(class).unwrap_or_default();
        let filled = buckets(&latencies).filter(|bucket| bucket.count > 0).collect();
        (class.name().to_owned(), converted(counts, filled))
    });
    each.collect()
}

fn buckets(latencies: &CommandLatencies) -> impl Iterator<Item = LatencyBucket> {
    let ends = COMMAND_LATENCY_BOUNDS_US.into_iter().map(Some).chain([None]);
    ends.zip(latencies).map(|(up_to_us, count)| LatencyBucket { up_to_us, count: *count })
}

fn converted(counts: &ClassSnapshot, latencies: Vec<LatencyBucket>) -> CommandCounters {
    CommandCounters {
        ok: counts.ok,
        failed: counts.failed,
        bytes: counts.bytes,
        ok_latency_us: counts.ok_latency_us,
        failed_latency_us: counts.failed_latency_us,
        largest_bytes: counts.largest_bytes,
        latencies,
    }
}

/// The observable state of a running front end, and of the other controller.
pub struct InForce {
    pub observer: Observer,
    pub holding: Holding,
}

impl Observed for InForce {
    fn sessions(&self) -> Vec<SessionSnapshot> {
        self.observer.sessions()
    }

    fn ended_sessions(&self) -> Vec<(u64, SessionSnapshot)> {
        self.observer.ended_sessions()
    }

    fn refused(&self) -> BTreeMap<String, Refused> {
        self.observer.refused()
    }

    fn troubles(&self) -> BTreeMap<&'static str, String> {
        self.observer.troubles()
    }

    fn has_failed(&self) -> bool {
        self.observer.has_failed()
    }

    fn missing_controller(&self) -> Option<&'static str> {
        self.observer.missing_controller()
    }

    fn is_other_held(&self) -> bool {
        self.holding.is_held()
    }
}
