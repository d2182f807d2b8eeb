//! The state that all logical units of the array share, and the context of command handlers.
//! [`crate::server`] executes the commands.

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

/// The state that all logical units share. One for the array, used by all sessions.
#[derive(Debug)]
pub struct DeviceServer {
    pub(crate) identity: ArrayIdentity,
    /// The state of hosts.
    pub(crate) target: Target,
    pub(crate) controls: ControlTable,
    pub(crate) statistics: Arc<dyn Statistics>,
    pub(crate) thresholds: Thresholds,
    /// All commands; the entries of one opcode are consecutive.
    pub(crate) commands: &'static [Entry],
}

/// The unit at a logical unit number.
#[derive(Clone, Copy)]
pub(crate) enum Unit<'a> {
    /// A volume.
    Volume(&'a Arc<VolumeAttributes>),
    /// The REPORT LUNS well-known logical unit.
    ReportLuns,
    /// LUN 0 without a volume: it responds, so that hosts can discover the other units.
    Empty,
    /// Nothing.
    Unknown,
}

impl Unit<'_> {
    /// Returns PERIPHERAL QUALIFIER and PERIPHERAL DEVICE TYPE (SPC-4, 6.6.2).
    pub(crate) fn peripheral(&self) -> u8 {
        match self {
            Unit::Volume(_) => 0x00,
            Unit::ReportLuns => 0x1e,
            Unit::Empty => 0x3f,
            Unit::Unknown => 0x7f,
        }
    }
}

/// The context of a command handler.
pub(crate) struct Context<'a> {
    pub server: &'a DeviceServer,
    pub nexus: &'a Nexus,
    pub luns: &'a Arc<LunMap>,
    pub unit: Unit<'a>,
}

impl<'a> Context<'a> {
    /// Returns the volume of the logical unit.
    #[inline]
    pub(crate) fn volume(&self) -> Result<&'a VolumeAttributes, Sense> {
        match self.unit {
            Unit::Volume(volume) => Ok(volume),
            Unit::ReportLuns => Err(Sense::INVALID_OPCODE),
            Unit::Empty | Unit::Unknown => Err(Sense::NO_SUCH_UNIT),
        }
    }

    /// Returns the enabled offloads of the logical unit; without a volume, all.
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
    /// Its name in the standard.
    pub name: &'static str,
    /// Byte 0.
    pub opcode: u8,
    /// The service action in bits 4..0 of byte 1, if the command has them.
    pub action: Option<u8>,
    /// The CDB usage map (SPC-4, 6.34.3): byte 0 is the opcode, followed by a bit for each bit of
    /// the CDB that is evaluated.
    pub usage: &'static [u8],
    /// How reservations restrict it.
    pub access: Access,
    /// Its offload: if that is off, the command is not supported.
    pub offload: Option<Offload>,
    /// Whether it also works without a volume (INQUIRY and similar commands).
    pub without_volume: bool,
    /// Its handler.
    pub run: fn(&Context<'_>, Command) -> Outcome,
}

impl Entry {
    /// Returns how reservations restrict a CDB of this entry: for two commands that depends on its
    /// content (SBC-3, table 13).
    #[inline]
    pub(crate) fn access_of(&self, cdb: &Cdb) -> Access {
        match self.opcode {
            // START STOP UNIT that starts, without a power condition, is harmless.
            0x1b if cdb.u8(4) & 0xf1 == 0x01 => Access::Free,
            // So is PREVENT ALLOW MEDIUM REMOVAL that allows removal.
            0x1e if cdb.u8(4) & 0x03 == 0 => Access::Free,
            _ => self.access,
        }
    }

    /// Returns whether its offload, if any, is enabled.
    #[inline]
    pub(crate) fn is_on(&self, offloads: Offloads) -> bool {
        self.offload.is_none_or(|offload| offloads.has(offload))
    }
}

impl DeviceServer {
    /// Sets the time, in milliseconds since an arbitrary point. Unused tokens expire by it. Calling
    /// it a few times per second is sufficient.
    pub fn set_time(&self, now_ms: u64) {
        self.target.rods().set_time(now_ms);
    }

    /// Frees the data of ended tokens: `run` executes a request, and returns whether it succeeded.
    /// Calling it once per second is sufficient. Returns true if there may be more to do.
    pub fn sweep_tokens(&self, run: impl FnOnce(VolumeRequest) -> bool) -> bool {
        self.target.rods().sweep(run)
    }

    /// Creates an I_T nexus for a session that has just logged in through the port with this
    /// relative id, and that sees these units. Each unit first reports that the array was started,
    /// or that an earlier session of the nexus was lost.
    pub fn new_nexus(
        &self,
        initiator: impl Into<HostPort>,
        target_port: u16,
        luns: &Arc<LunMap>,
    ) -> Arc<Nexus> {
        Arc::new(Nexus::new(self.target.new_nexus(initiator.into(), target_port, luns)))
    }

    /// See [`Target::hand_over`].
    pub fn hand_over(&self, nexus: &Nexus) -> target::Untold {
        self.target.hand_over(nexus)
    }

    /// See [`Target::expect`].
    #[must_use]
    pub fn expect(
        &self,
        initiator: impl Into<HostPort>,
        target_port: u16,
        untold: &target::Untold,
    ) -> bool {
        self.target.expect(target::NexusId { host: initiator.into(), target_port }, untold)
    }

    /// Returns the access state of a volume through the port of a nexus.
    #[inline]
    pub(crate) fn access_state(&self, volume: VolumeId, nexus: &Nexus) -> AccessState {
        let target = &self.target;
        if !target.volumes().has_access_states() {
            return AccessState::default();
        }
        let port = target.ports().iter().find(|port| port.relative_id == nexus.target_port());
        port.and_then(|port| target.volumes().access_state(volume, port.group)).unwrap_or_default()
    }

    /// Sets the access state of all units through the ports of a group, except where hosts have set
    /// it, and notifies hosts if it has changed. The ports of another controller are non-optimized
    /// or unavailable.
    pub fn set_implicit_access(&self, group: u16, state: AccessState) {
        self.target.set_implicit_access(group, state);
    }

    /// Sets how full the pool is, and the percentages at which hosts get a unit attention. Call it
    /// whenever these may have changed; cheap if they have not.
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

    /// Restores the stored state, before any session.
    ///
    /// # Errors
    /// If the state is invalid: what is wrong.
    pub fn restore(&self, start: Start, all: KeptState) -> Result<(), Nonsense> {
        self.target.restore(start, all)
    }

    /// Returns the state of a volume that must be made durable now; `None` if all of it is.
    pub fn unsaved(&self, volume: VolumeId) -> Option<Unsaved> {
        self.target.unsaved(volume)
    }

    /// Reports whether the state from [`DeviceServer::unsaved`] was made durable.
    pub fn saved(&self, what: Unsaved, result: Result<(), SaveError>) {
        self.target.saved(what, result);
    }

    /// Returns whether changes of ROD tokens must be made durable.
    pub fn has_unsaved_tokens(&self) -> bool {
        self.target.rods().has_unsaved()
    }

    /// Returns the changes of ROD tokens that must be made durable now; `None` if there are none.
    pub fn unsaved_tokens(&self) -> Option<UnsavedRods> {
        self.target.rods().unsaved()
    }

    /// Reports whether the changes from [`DeviceServer::unsaved_tokens`] were made durable.
    pub fn saved_tokens(&self, what: UnsavedRods, result: Result<(), SaveError>) {
        self.target.rods().saved(what, result);
    }

    /// LOGICAL UNIT RESET (SAM-5, 7.7 and 6.3.3): ends SPC-2 reservations of the unit, and
    /// establishes a unit attention for every nexus, including the one that requested the reset.
    /// Call it after the unit's tasks were aborted. Returns the volumes whose state must be saved
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
    /// the volumes whose state must be saved.
    #[must_use]
    pub fn target_reset(&self, luns: &Arc<LunMap>) -> Vec<VolumeId> {
        let mut volumes: Vec<VolumeId> = luns.luns.values().map(|volume| volume.id).collect();
        volumes.sort_unstable();
        self.reset_volumes(&volumes, Attention::TargetReset)
    }

    /// Resets the state of these volumes, which are sorted.
    fn reset_volumes(&self, volumes: &[VolumeId], what: Attention) -> Vec<VolumeId> {
        for volume in volumes {
            self.controls.set(*volume, Controls::default());
        }
        self.target.reset(volumes, what)
    }

    /// I_T NEXUS LOSS (SAM-5, 6.3.4): the session ended. Its SPC-2 reservations end; persistent
    /// ones remain. The next session of the nexus gets a unit attention. Returns the volumes whose
    /// state must be saved.
    #[must_use]
    pub fn nexus_loss(&self, nexus: &Nexus) -> Vec<VolumeId> {
        self.target.nexus_loss(nexus)
    }

    /// Removes the reservations and access states of an eradicated volume, and ends its tokens. Its
    /// id is never reused.
    pub fn volume_destroyed(&self, volume: VolumeId) {
        self.target.volume_destroyed(volume);
        self.controls.set(volume, Controls::default());
    }
}
