//! What all logical units of the array share, and what the handler of a command may look at. What
//! is done with commands is in [`crate::server`].

use std::sync::Arc;

use block::{ArrayIdentity, LunMap, Offload, Offloads, VolumeAttributes, VolumeId, VolumeRequest};
use target::{
    Access, AccessState, Attention, HostPort, KeptState, Nonsense, SaveError, Start, Target,
    Unsaved, UnsavedRods,
};

use crate::cdb::Cdb;
use crate::controls::{ControlTable, Controls};
use crate::limits::can_deallocate;
use crate::lun::{Lun, decode};
use crate::nexus::Nexus;
use crate::sense::Sense;
use crate::statistics::Statistics;
use crate::step::{Command, Outcome};
use crate::thresholds::Thresholds;

/// What all logical units of the array share. One for the array, shared by all sessions.
#[derive(Debug)]
pub struct DeviceServer {
    pub(crate) identity: ArrayIdentity,
    /// What is known of hosts.
    pub(crate) target: Target,
    pub(crate) controls: ControlTable,
    pub(crate) statistics: Arc<dyn Statistics>,
    pub(crate) thresholds: Thresholds,
    /// All commands: those of one opcode stand together.
    pub(crate) commands: &'static [Entry],
}

/// What a logical unit number leads to.
#[derive(Clone, Copy)]
pub(crate) enum Unit<'a> {
    /// A volume.
    Volume(&'a Arc<VolumeAttributes>),
    /// The REPORT LUNS well-known logical unit.
    ReportLuns,
    /// LUN 0, where no volume is: it answers, so that hosts can ask for the others.
    Empty,
    /// Nothing.
    Unknown,
}

impl Unit<'_> {
    /// PERIPHERAL QUALIFIER and PERIPHERAL DEVICE TYPE (SPC-4, 6.6.2).
    pub(crate) fn peripheral(&self) -> u8 {
        match self {
            Unit::Volume(_) => 0x00,
            Unit::ReportLuns => 0x1e,
            Unit::Empty => 0x3f,
            Unit::Unknown => 0x7f,
        }
    }
}

/// What a command handler may look at.
pub(crate) struct Context<'a> {
    pub server: &'a DeviceServer,
    pub nexus: &'a Nexus,
    pub luns: &'a Arc<LunMap>,
    pub unit: Unit<'a>,
}

impl<'a> Context<'a> {
    /// The volume of the logical unit.
    #[inline]
    pub(crate) fn volume(&self) -> Result<&'a VolumeAttributes, Sense> {
        match self.unit {
            Unit::Volume(volume) => Ok(volume),
            Unit::ReportLuns => Err(Sense::INVALID_OPCODE),
            Unit::Empty | Unit::Unknown => Err(Sense::NO_SUCH_UNIT),
        }
    }

    /// The offloads that the logical unit takes; where there is no volume, none is asked for.
    #[inline]
    pub(crate) fn offloads(&self) -> Offloads {
        match self.unit {
            Unit::Volume(volume) => volume.offloads,
            _ => Offloads::ALL,
        }
    }
}

/// One command, or one service action of a command.
#[derive(Debug)]
pub(crate) struct Entry {
    /// What it is called, as the standard does.
    pub name: &'static str,
    /// Byte 0.
    pub opcode: u8,
    /// The service action in bits 4..0 of byte 1, if the command has them.
    pub action: Option<u8>,
    /// The CDB usage map (SPC-4, 6.34.3): byte 0 the opcode, then a bit for each that is looked at.
    pub usage: &'static [u8],
    /// What reservations it minds.
    pub access: Access,
    /// The offload that it belongs to: where that is off, the command is not there.
    pub offload: Option<Offload>,
    /// Whether it also works where there is no volume (INQUIRY and its like).
    pub without_volume: bool,
    /// What runs it.
    pub run: fn(&Context<'_>, Command) -> Outcome,
}

impl Entry {
    /// What reservations a CDB of this entry minds: for two commands that depends on what it asks
    /// for (SBC-3, table 13).
    #[inline]
    pub(crate) fn access_of(&self, cdb: &Cdb) -> Access {
        match self.opcode {
            // START STOP UNIT that starts, without a power condition, does no harm.
            0x1b if cdb.u8(4) & 0xf1 == 0x01 => Access::Free,
            // Nor does PREVENT ALLOW MEDIUM REMOVAL that allows it.
            0x1e if cdb.u8(4) & 0x03 == 0 => Access::Free,
            _ => self.access,
        }
    }

    /// Whether no offload that is off has it.
    #[inline]
    pub(crate) fn is_on(&self, offloads: Offloads) -> bool {
        self.offload.is_none_or(|offload| offloads.has(offload))
    }
}

impl DeviceServer {
    /// Sets the time, in milliseconds from any starting point: tokens end when they were not used
    /// for long. A few times a second is often enough.
    pub fn set_time(&self, now_ms: u64) {
        self.target.rods().set_time(now_ms);
    }

    /// Frees what tokens stood for that have ended: `run` runs a request, and says whether it was
    /// done. Once a second is often enough. True when there may be more to do.
    pub fn sweep_tokens(&self, run: impl FnOnce(VolumeRequest) -> bool) -> bool {
        self.target.rods().sweep(run)
    }

    /// A new I_T nexus, for a session that just logged in over the port with this relative id, and
    /// that sees these units. Each of them first reports that the array was started, or that an
    /// earlier session of the nexus was lost.
    pub fn new_nexus(
        &self,
        initiator: impl Into<HostPort>,
        target_port: u16,
        luns: &Arc<LunMap>,
    ) -> Arc<Nexus> {
        Arc::new(Nexus::new(self.target.new_nexus(initiator.into(), target_port, luns)))
    }

    /// As [`Target::hand_over`].
    pub fn hand_over(&self, nexus: &Nexus) -> target::Untold {
        self.target.hand_over(nexus)
    }

    /// As [`Target::expect`].
    #[must_use]
    pub fn expect(
        &self,
        initiator: impl Into<HostPort>,
        target_port: u16,
        untold: &target::Untold,
    ) -> bool {
        self.target.expect(target::NexusId { host: initiator.into(), target_port }, untold)
    }

    /// The state of the group of the port over which a nexus came.
    #[inline]
    pub(crate) fn access_state(&self, volume: VolumeId, nexus: &Nexus) -> AccessState {
        let target = &self.target;
        if !target.volumes().has_access_states() {
            return AccessState::default();
        }
        let port = target.ports().iter().find(|port| port.relative_id == nexus.target_port());
        port.and_then(|port| target.volumes().access_state(volume, port.group)).unwrap_or_default()
    }

    /// How well all units can be reached over the ports of a group, as far as hosts have not set
    /// it: that has changed if it was another. The ports of another controller are slower, or gone.
    pub fn set_implicit_access(&self, group: u16, state: AccessState) {
        self.target.set_implicit_access(group, state);
    }

    /// How full the pool is, and at which percentages hosts get a unit attention. To be called
    /// whenever that may have changed; cheap if it has not.
    pub fn space(&self, thresholds: &[u8], used_bytes: u64, capacity_bytes: u64) {
        let (changed, crossed) = self.thresholds.update(thresholds, used_bytes, capacity_bytes);
        if changed {
            self.attend_thin(Attention::Settings);
        }
        if crossed {
            self.attend_thin(Attention::SoftThreshold);
        }
    }

    /// Queues a unit attention with each nexus, on each unit that has thresholds.
    fn attend_thin(&self, what: Attention) {
        for nexus in self.target.live_nexuses() {
            nexus.attend_where(what, can_deallocate);
        }
    }

    /// Puts in force what was kept, before any session.
    ///
    /// # Errors
    /// What makes no sense.
    pub fn restore(&self, start: Start, all: KeptState) -> Result<(), Nonsense> {
        self.target.restore(start, all)
    }

    /// What has to be made durable of a volume now; `None` if everything is.
    pub fn unsaved(&self, volume: VolumeId) -> Option<Unsaved> {
        self.target.unsaved(volume)
    }

    /// What [`DeviceServer::unsaved`] gave is durable, or could not be made so.
    pub fn saved(&self, what: Unsaved, result: Result<(), SaveError>) {
        self.target.saved(what, result);
    }

    /// Whether anything has to be made durable of ROD tokens.
    pub fn has_unsaved_tokens(&self) -> bool {
        self.target.rods().has_unsaved()
    }

    /// What has to be made durable of ROD tokens now; `None` if everything is.
    pub fn unsaved_tokens(&self) -> Option<UnsavedRods> {
        self.target.rods().unsaved()
    }

    /// What [`DeviceServer::unsaved_tokens`] gave is durable, or could not be made so.
    pub fn saved_tokens(&self, what: UnsavedRods, result: Result<(), SaveError>) {
        self.target.rods().saved(what, result);
    }

    /// LOGICAL UNIT RESET (SAM-5, 7.7 and 6.3.3): ends SPC-2 reservations of the unit, and leaves
    /// a unit attention with every nexus, that which asked for the reset included. Call it after
    /// the unit's tasks were aborted. Returns the volumes of which there is something to save
    /// ([`DeviceServer::unsaved`]).
    #[must_use]
    pub fn lun_reset(&self, luns: &Arc<LunMap>, lun: [u8; 8]) -> Vec<VolumeId> {
        match decode(lun) {
            Lun::Unit(lun) => match luns.luns.get(&lun) {
                Some(volume) => self.reset_volumes(&[volume.id], Attention::UnitReset),
                None => Vec::new(),
            },
            _ => Vec::new(),
        }
    }

    /// TARGET WARM RESET: a hard reset (SAM-5, 6.3.2) of every unit that the nexus sees. Returns
    /// the volumes of which there is something to save.
    #[must_use]
    pub fn target_reset(&self, luns: &Arc<LunMap>) -> Vec<VolumeId> {
        let mut volumes: Vec<VolumeId> = luns.luns.values().map(|volume| volume.id).collect();
        volumes.sort_unstable();
        self.reset_volumes(&volumes, Attention::TargetReset)
    }

    /// Resets the state of volumes, which are in order.
    fn reset_volumes(&self, volumes: &[VolumeId], what: Attention) -> Vec<VolumeId> {
        for volume in volumes {
            self.controls.set(*volume, Controls::default());
        }
        self.target.reset(volumes, what)
    }

    /// I_T NEXUS LOSS (SAM-5, 6.3.4): the session ended. SPC-2 reservations that it held end;
    /// persistent ones stay. The next session of the nexus gets a unit attention. Returns the
    /// volumes of which there is something to save.
    #[must_use]
    pub fn nexus_loss(&self, nexus: &Nexus) -> Vec<VolumeId> {
        self.target.nexus_loss(nexus)
    }

    /// The volume was destroyed: its reservations and access states go with it, and its tokens end.
    /// Its id is never used again.
    pub fn volume_destroyed(&self, volume: VolumeId) {
        self.target.volume_destroyed(volume);
        self.controls.set(volume, Controls::default());
    }
}
