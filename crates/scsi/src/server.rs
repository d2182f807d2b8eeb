//! The device server: routes commands, and finishes them when the volume has answered.

use std::sync::{Arc, Weak};

use block::{
    ArrayIdentity, LunMap, Offloads, VolumeAttributes, VolumeError, VolumeId, VolumeReply,
};
use parking_lot::Mutex;

use crate::alua::AccessStates;
use crate::luns::{Lun, decode};
use crate::nexus::{Attention, InitiatorPort, Nexus, TargetPort};
use crate::reservations::{NexusId, Reservations};
use crate::response::{Command, Pending, Response, Rest, Status, Step};
use crate::sense::{Sense, SenseKey};
use crate::table::{self, Access, Entry};
use crate::thresholds::Thresholds;
use crate::{copy, log, provisioning};

/// What all logical units of the array share. One for the array, shared by all sessions.
#[derive(Debug)]
pub struct DeviceServer {
    pub(crate) identity: ArrayIdentity,
    pub(crate) ports: Vec<TargetPort>,
    pub(crate) reservations: Reservations,
    pub(crate) access_states: AccessStates,
    pub(crate) thresholds: Thresholds,
    nexuses: Mutex<Vec<Weak<Nexus>>>,
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
    /// The device server of an array with these target ports.
    pub fn new(identity: ArrayIdentity, ports: Vec<TargetPort>) -> Self {
        let (reservations, access_states, thresholds, nexuses) = Default::default();
        Self { identity, ports, reservations, access_states, thresholds, nexuses }
    }

    /// A new I_T nexus, for a session that just logged in over the port with this relative id.
    pub fn new_nexus(&self, initiator: InitiatorPort, target_port: u16) -> Arc<Nexus> {
        let nexus = Arc::new(Nexus::new(initiator, target_port));
        let mut all = self.nexuses.lock();
        all.retain(|nexus| nexus.strong_count() > 0);
        all.push(Arc::downgrade(&nexus));
        nexus
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
        self.route(&context, command).unwrap_or_else(|response| Step::Done(*response))
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
            return Err(check(what.sense()));
        }
        let entry = found.map_err(check)?;
        if cdb.control() & 0x04 != 0 {
            return Err(check(Sense::cdb_field(entry.usage.len() as u16 - 1, 2))); // NACA
        }
        if let Unit::Volume(volume) = context.unit {
            let state = self.access_state(volume.id, context.nexus);
            if let Some(sense) = state.sense()
                && !state.serves(cdb.opcode(), cdb.service_action())
            {
                return Err(check(sense));
            }
        }
        if let Unit::Volume(volume) = context.unit
            && self.is_barred(context, volume.id, entry)
        {
            return Err(Box::new(Response::with_status(Status::ReservationConflict)));
        }
        (entry.run)(context, command).map_err(check)
    }

    #[inline]
    fn is_barred(&self, context: &Context<'_>, volume: VolumeId, entry: &Entry) -> bool {
        entry.access != Access::Free
            && self.reservations.conflict(volume, context.nexus, entry.access)
    }

    /// Goes on with a command after its request was run.
    pub fn resume(
        &self,
        nexus: &Nexus,
        pending: Pending,
        result: Result<VolumeReply, VolumeError>,
    ) -> Step {
        let wanted = pending.wanted;
        match finish(nexus, pending, result) {
            Ok(Step::Done(response)) => {
                Step::Done(Response { transfer_bytes_wanted: wanted, ..response })
            }
            Ok(step) => step,
            Err(sense) => {
                Step::Done(Response { transfer_bytes_wanted: wanted, ..Response::check(sense) })
            }
        }
    }

    /// LOGICAL UNIT RESET (SAM-5, 7.7 and 6.3.3): ends SPC-2 reservations of the unit, and leaves
    /// a unit attention with every nexus, that which asked for the reset included. Call it after
    /// the unit's tasks were aborted.
    pub fn lun_reset(&self, luns: &Arc<LunMap>, lun: [u8; 8]) {
        if let Lun::Unit(lun) = decode(lun)
            && let Some(volume) = luns.luns.get(&lun)
        {
            self.reset_volume(volume.id);
        }
    }

    /// TARGET WARM or COLD RESET: [`DeviceServer::lun_reset`] of every unit that the nexus sees.
    pub fn target_reset(&self, luns: &Arc<LunMap>) {
        for volume in luns.luns.values() {
            self.reset_volume(volume.id);
        }
    }

    fn reset_volume(&self, volume: VolumeId) {
        self.reservations.reset(volume);
        for nexus in self.live_nexuses() {
            nexus.attend(volume, Attention::Reset);
        }
    }

    /// I_T NEXUS LOSS (SAM-5, 6.3.4): the session ended. SPC-2 reservations that it held end;
    /// persistent ones stay.
    pub fn nexus_loss(&self, nexus: &Nexus) {
        self.reservations.nexus_loss(nexus);
        self.nexuses.lock().retain(|other| !std::ptr::eq(other.as_ptr(), nexus));
    }

    /// The volume was destroyed: its reservations and access states go with it. Its id is never
    /// used again.
    pub fn volume_destroyed(&self, volume: VolumeId) {
        self.reservations.forget(volume);
        self.access_states.forget(volume);
    }

    /// Queues a unit attention with each of these nexuses that has a session.
    pub(crate) fn attend(&self, volume: VolumeId, whom: &[(NexusId, Attention)]) {
        if whom.is_empty() {
            return;
        }
        for nexus in self.live_nexuses() {
            for (_, what) in whom.iter().filter(|(id, _)| id.is(&nexus)) {
                nexus.attend(volume, *what);
            }
        }
    }

    /// Ends what is left of the commands of these nexuses on a volume (PREEMPT AND ABORT).
    pub(crate) fn abort(&self, volume: VolumeId, whom: &[(NexusId, Attention)]) {
        for nexus in self.live_nexuses() {
            let named = |(id, what): &(NexusId, Attention)| {
                *what == Attention::RegistrationsPreempted && id.is(&nexus)
            };
            if whom.iter().any(named) {
                nexus.preempt(volume);
            }
        }
    }

    pub(crate) fn live_nexuses(&self) -> Vec<Arc<Nexus>> {
        self.nexuses.lock().iter().filter_map(Weak::upgrade).collect()
    }
}

/// Whether a command leaves unit attentions where they are (SPC-4, 6.6, 6.33, 6.39).
#[inline]
fn is_quiet(opcode: u8) -> bool {
    matches!(opcode, 0x03 | 0x12 | 0xa0)
}

fn finish(
    nexus: &Nexus,
    pending: Pending,
    result: Result<VolumeReply, VolumeError>,
) -> Result<Step, Sense> {
    let Pending { wanted, volume, block_sectors, rest } = pending;
    let again = |rest, request| Step::Request {
        request,
        pending: Pending { wanted, volume, block_sectors, rest },
    };
    let result = result.map_err(|error| error_sense(&error, block_sectors));
    let response = match (rest, result) {
        (Rest::Copy(rest), result) => return copy::finish(nexus, *rest, result),
        (_, Err(sense)) => return Err(sense),
        (Rest::Answer, Ok(VolumeReply::Done)) => Response::good(),
        (Rest::Answer, Ok(VolumeReply::Data(data))) => Response::data(data),
        (Rest::Verify(mut verification), Ok(VolumeReply::Data(data))) => {
            verification.check(&data)?;
            if let Some(request) = verification.next() {
                return Ok(again(Rest::Verify(verification), request));
            }
            Response::good()
        }
        (Rest::Read(mut read), Ok(VolumeReply::Data(data))) => {
            read.take(data)?;
            if let Some(request) = read.next() {
                return Ok(again(Rest::Read(read), request));
            }
            Response::data(read.into_data())
        }
        (Rest::Write { write, .. }, _) if write.is_preempted(nexus) => {
            Response::with_status(Status::TaskAborted)
        }
        (Rest::Write { mut write, verify }, Ok(VolumeReply::Done)) => {
            if let Some(request) = write.next() {
                return Ok(again(Rest::Write { write, verify }, request));
            }
            if let Some((verify, request)) = verify.and_then(|v| v.next().map(|next| (v, next))) {
                return Ok(again(Rest::Verify(verify), request));
            }
            Response::good()
        }
        (Rest::LbaStatus { allocation_length }, Ok(VolumeReply::Extents(extents))) => {
            let data = provisioning::lba_status_data(&extents, block_sectors.max(1));
            Response::parameters(&data, allocation_length)
        }
        (Rest::SpaceLog { allocation_length }, Ok(VolumeReply::Space(space))) => {
            Response::parameters(&log::provisioning_data(space), allocation_length)
        }
        // The volume's answer does not belong to the request: a fault of ours, told as such.
        _ => return Err(Sense::INTERNAL_FAILURE),
    };
    Ok(Step::Done(response))
}

/// What a volume's error is in SCSI.
pub(crate) fn error_sense(error: &VolumeError, block_sectors: u64) -> Sense {
    match error {
        VolumeError::NoSuchVolume(_) => Sense::NO_SUCH_UNIT,
        VolumeError::OutOfRange => Sense::OUT_OF_RANGE,
        VolumeError::Miscompare { offset_bytes } => {
            Sense::new(SenseKey::Miscompare, 0x1d, 0).with_information(*offset_bytes as u64)
        }
        // SPACE ALLOCATION FAILED WRITE PROTECT: hosts stop the VM, and go on when there is room.
        VolumeError::NoSpace => Sense::new(SenseKey::DataProtect, 0x27, 0x07),
        VolumeError::Medium { sector } => Sense::new(SenseKey::MediumError, 0x11, 0)
            .with_information(sector.0 / block_sectors.max(1)),
        VolumeError::WriteFailed => Sense::new(SenseKey::MediumError, 0x0c, 0),
        VolumeError::TooLong => Sense::new(SenseKey::IllegalRequest, 0x24, 0),
    }
}
