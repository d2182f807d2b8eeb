//! The device server: routes commands, and completes them when the volume has replied.

use std::sync::Arc;

use block::{ArrayIdentity, LunMap, VolumeError, VolumeId, VolumeReply};
use target::{Access, RodVolume, Target, TargetPort};

use crate::cdb::Cdb;
use crate::controls::ControlTable;
use crate::device::{Context, DeviceServer, Entry, Unit};
use crate::lun::{Lun, decode};
use crate::nexus::Nexus;
use crate::sense::Sense;
use crate::statistics::Statistics;
use crate::step::{Command, Pending, Response, Resumed, Status, Step};
use crate::table;
use crate::thresholds::Thresholds;
use crate::unit::{alua, attention};

impl DeviceServer {
    /// Creates the device server of an array with these target ports, and with an internal volume
    /// for ROD tokens, which must be empty.
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
            commands: table::COMMANDS,
        }
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

    /// Returns whether reservations conflict with the first request of a command that has waited
    /// since it was routed: PREEMPT AND ABORT did not wait for it, so it must not begin afterwards.
    pub fn is_barred_now(&self, nexus: &Nexus, pending: &Pending) -> bool {
        self.target.volumes().conflict(pending.volume, nexus.id(), pending.rest.access())
    }

    #[inline]
    fn is_barred(&self, context: &Context<'_>, volume: VolumeId, entry: &Entry, cdb: &Cdb) -> bool {
        let access = entry.access_of(cdb);
        access != Access::Free && self.target.volumes().conflict(volume, context.nexus.id(), access)
    }

    /// Continues a command with the reply to its request.
    pub fn resume(
        &self,
        nexus: &Nexus,
        pending: Pending,
        result: Result<VolumeReply, VolumeError>,
    ) -> Step {
        let (wanted, volume) = (pending.wanted, pending.volume);
        let (at, rest) = Resumed::new(&self.target, nexus, pending);
        let result = result.map_err(|error| at.sense(&error));
        let step = rest.resume(&at, result);
        let step = step.unwrap_or_else(|sense| Step::Done(Response::check(sense)));
        self.with_format(volume, step.wanting(wanted))
    }

    /// Continues a command that waited for [`Step::Persist`].
    pub fn resume_saved(&self, pending: Pending) -> Step {
        let Pending { wanted, volume, rest, .. } = pending;
        let response = rest.saved(&self.target).wanting(wanted);
        self.with_format(volume, Step::Done(response))
    }

    /// Ends a cancelled copy ([`Pending::is_called_off`]).
    pub fn end_early(&self, nexus: &Nexus, pending: Pending) -> Step {
        let Pending { wanted, volume, rest, .. } = pending;
        let response = rest.end_early(nexus).wanting(wanted);
        self.with_format(volume, Step::Done(response))
    }

    /// Selects the format of sense data according to the unit's control mode page.
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
}

/// Returns whether a command leaves unit attentions pending (SPC-4, 6.6, 6.33, 6.39).
#[inline]
fn is_quiet(opcode: u8) -> bool {
    matches!(opcode, 0x03 | 0x12 | 0xa0)
}
