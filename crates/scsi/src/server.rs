//! The device server: routes commands, and finishes them when the volume has answered.

use std::sync::Arc;

use block::{
    ArrayIdentity, LunMap, Offloads, VolumeAttributes, VolumeError, VolumeId, VolumeReply,
    VolumeRequest,
};
use target::{Attention, HostPort, RodVolume, Target, TargetPort};

use crate::cdb::Cdb;
use crate::controls::{ControlTable, Controls};
use crate::finish::finish;
use crate::luns::{Lun, decode};
use crate::nexus::Nexus;
use crate::response::{Command, Pending, Response, Rest, Status, Step};
use crate::sense::Sense;
use crate::statistics::Statistics;
use crate::table::{self, Access, Entry};
use crate::thresholds::Thresholds;
use crate::{alua, attention, copy};

/// What all logical units of the array share. One for the array, shared by all sessions.
#[derive(Debug)]
pub struct DeviceServer {
    pub(crate) identity: ArrayIdentity,
    /// What is known of hosts.
    pub(crate) target: Target,
    pub(crate) controls: ControlTable,
    pub(crate) statistics: Arc<dyn Statistics>,
    pub(crate) thresholds: Thresholds,
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

impl DeviceServer {
    /// The device server of an array with these target ports, and with a volume of its own for ROD
    /// tokens, which must be empty.
    pub fn new(
        identity: ArrayIdentity,
        ports: Vec<TargetPort>,
        rods: RodVolume,
        statistics: Arc<dyn Statistics>,
    ) -> Self {
        Self {
            identity,
            target: Target::new(ports, rods),
            controls: ControlTable::default(),
            statistics,
            thresholds: Thresholds::default(),
        }
    }

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

    /// Starts a command.
    pub fn execute(&self, nexus: &Nexus, luns: &Arc<LunMap>, command: Command) -> Step {
        nexus.see(luns);
        let unit = match decode(command.lun) {
            Lun::Unit(lun) => match luns.luns.get(&lun) {
                Some(volume) => Unit::Volume(volume),
                None if lun == 0 => Unit::Empty,
                None => Unit::Unknown,
            },
            Lun::ReportLuns => Unit::ReportLuns,
            Lun::Unknown => Unit::Unknown,
        };
        let context = Context { server: self, nexus, luns, unit };
        let step = self.route(&context, command);
        let step = step.unwrap_or_else(|response| Step::Done(*response));
        let Unit::Volume(volume) = unit else { return step };
        self.with_format(volume.id, step)
    }

    fn route(&self, context: &Context<'_>, command: Command) -> Result<Step, Box<Response>> {
        let check = |sense| Box::new(Response::check(sense));
        let cdb = &command.cdb;
        let found = table::offered(cdb.opcode(), cdb.service_action(), context.offloads());
        if !found.is_ok_and(|entry| entry.without_volume) {
            context.volume().map_err(check)?;
        }
        if let (Unit::Volume(volume), false) = (context.unit, is_quiet(cdb.opcode()))
            && let Some(what) = context.nexus.take_attention(volume.id)
        {
            return Err(check(attention::sense(what)));
        }
        let entry = found.map_err(check)?;
        if cdb.control() & 0x04 != 0 {
            return Err(check(Sense::cdb_field(entry.usage.len() as u16 - 1, 2))); // NACA
        }
        if let Unit::Volume(volume) = context.unit {
            let state = self.access_state(volume.id, context.nexus);
            if let Some(sense) = alua::sense(state)
                && !alua::serves(state, cdb.opcode(), cdb.service_action())
            {
                return Err(check(sense));
            }
        }
        if let Unit::Volume(volume) = context.unit
            && self.is_barred(context, volume.id, entry, cdb)
        {
            return Err(Box::new(Response::with_status(Status::ReservationConflict)));
        }
        if let Unit::Volume(volume) = context.unit
            && entry.access == Access::Write
            && self.controls.of(volume.id).write_protected
        {
            return Err(check(Sense::WRITE_PROTECTED));
        }
        (entry.run)(context, command).map_err(check)
    }

    /// Whether reservations bar the first request of a command that has waited since it was routed:
    /// PREEMPT AND ABORT has not waited for it, so it must not begin afterwards.
    pub fn is_barred_now(&self, nexus: &Nexus, pending: &Pending) -> bool {
        let access = match pending.rest {
            Rest::OrWrite(_) | Rest::Write(_) | Rest::WriteVerify(_) => Access::Write,
            _ => Access::Read,
        };
        self.target.volumes().conflict(pending.volume, nexus.id(), access)
    }

    #[inline]
    fn is_barred(&self, context: &Context<'_>, volume: VolumeId, entry: &Entry, cdb: &Cdb) -> bool {
        let access = entry.access_of(cdb);
        access != Access::Free && self.target.volumes().conflict(volume, context.nexus.id(), access)
    }

    /// Goes on with a command after its request was run.
    pub fn resume(
        &self,
        nexus: &Nexus,
        pending: Pending,
        result: Result<VolumeReply, VolumeError>,
    ) -> Step {
        let (wanted, volume) = (pending.wanted, pending.volume);
        let step = finish(self, nexus, pending, result);
        let step = step.unwrap_or_else(|sense| Step::Done(Response::check(sense)));
        self.with_format(volume, step.wanting(wanted))
    }

    /// Ends a copy of which nobody wants the rest ([`Pending::is_called_off`]).
    pub fn end_early(&self, nexus: &Nexus, pending: Pending) -> Step {
        let Pending { wanted, volume, rest, .. } = pending;
        let response = match rest {
            Rest::Copy(rest) => copy::end_early(nexus, *rest),
            _ => Response::with_status(Status::TaskAborted),
        };
        self.with_format(volume, Step::Done(response).wanting(wanted))
    }

    /// Sense data in the format that the unit's control mode page asks for.
    #[inline]
    pub(crate) fn with_format(&self, volume: VolumeId, step: Step) -> Step {
        match step {
            Step::Done(response) if response.sense.is_some() => {
                let descriptor_sense = self.controls.of(volume).descriptor_sense;
                Step::Done(Response { descriptor_sense, ..response })
            }
            step => step,
        }
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

/// Whether a command leaves unit attentions where they are (SPC-4, 6.6, 6.33, 6.39).
#[inline]
fn is_quiet(opcode: u8) -> bool {
    matches!(opcode, 0x03 | 0x12 | 0xa0)
}
