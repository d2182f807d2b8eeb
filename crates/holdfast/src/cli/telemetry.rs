//! The front end's counters, as the management interface tells them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{
    CommandCounters, Copied, MemoryCounters, PathCounters, PortCounters, Telemetry, WireCounters,
};
use store::Store;

use crate::serve::Counters;
use crate::serve::counters::{Class, ClassSnapshot, CopySnapshot};

/// The counters of a running front end, and of the store behind it.
pub struct FrontEnd {
    pub counters: Arc<Counters>,
    pub store: Arc<Store>,
    /// Where each port listens.
    pub portals: Vec<String>,
}

impl Telemetry for FrontEnd {
    fn counters(&self) -> api::Counters {
        let wire = self.counters.wire();
        let paths = self.counters.paths().into_iter().map(|path| PathCounters {
            initiator: path.initiator,
            volume_id: path.volume.map(|id| id.0),
            volume: None,
            commands: by_class(&path.classes, false),
            copied_from: copied(path.copied_from),
            copied_to: copied(path.copied_to),
        });
        let ports = self.portals.iter().zip(self.counters.ports());
        let ports = ports.map(|(portal, classes)| PortCounters {
            portal: portal.clone(),
            commands: by_class(&classes, false),
        });
        api::Counters {
            wire: WireCounters {
                received_bytes: wire.received_bytes,
                sent_bytes: wire.sent_bytes,
                connections: wire.connections,
            },
            memory: memory_of(&self.store),
            written: self.store.written().into(),
            totals: by_class(&self.counters.totals(), true),
            paths: paths.collect(),
            ports: ports.collect(),
            ..api::Counters::default()
        }
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

fn by_class(classes: &[ClassSnapshot], with_idle: bool) -> BTreeMap<String, CommandCounters> {
    let named = Class::ALL.iter().zip(classes);
    let wanted = named.filter(|(_, counts)| with_idle || counts.ok + counts.failed > 0);
    wanted.map(|(class, counts)| (class.name().to_owned(), converted(counts))).collect()
}

fn converted(counts: &ClassSnapshot) -> CommandCounters {
    CommandCounters {
        ok: counts.ok,
        failed: counts.failed,
        bytes: counts.bytes,
        ok_latency_us: counts.ok_latency_us,
        failed_latency_us: counts.failed_latency_us,
    }
}
