//! The front end's counters, as the management interface tells them.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::{CommandCounters, PathCounters, Telemetry, WireCounters};

use crate::serve::Counters;
use crate::serve::counters::{Class, ClassSnapshot};

/// The counters of a running front end.
pub struct FrontEnd(pub Arc<Counters>);

impl Telemetry for FrontEnd {
    fn counters(&self) -> api::Counters {
        let wire = self.0.wire();
        let paths = self.0.paths().into_iter().map(|path| PathCounters {
            initiator: path.initiator,
            volume_id: path.volume.map(|id| id.0),
            volume: None,
            commands: by_class(&path.classes, false),
        });
        api::Counters {
            wire: WireCounters {
                received_bytes: wire.received_bytes,
                sent_bytes: wire.sent_bytes,
                connections: wire.connections,
            },
            totals: by_class(&self.0.totals(), true),
            paths: paths.collect(),
            ..api::Counters::default()
        }
    }
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
