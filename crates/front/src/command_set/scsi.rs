//! SCSI (SPC-4, SBC-4) as a command set.

use std::sync::Arc;

use block::{LunMap, VolumeError, VolumeId, VolumeReply};
use scsi::{Cdb, DeviceServer, InitiatorPort, Sense, Status};
use target::Untold;

use super::{Asked, CommandSet, Refusal, Response, Step, Traits};
use crate::counters::Class;
use crate::luns::attributes_at;
use crate::transport::{CommandBytes, Handed, NexusInfo};

/// THIRD-PARTY COPY OUT, which includes WRITE USING TOKEN (SPC-4, 6.4; SBC-4, 5.56).
const THIRD_PARTY_COPY_OUT: u8 = 0x83;
/// RESERVE(6) and RESERVE(10) (SPC-2, 7.21 and 7.22).
const RESERVES: [u8; 2] = [0x16, 0x56];

impl From<scsi::Response> for Response {
    fn from(response: scsi::Response) -> Self {
        Self {
            status: response.status as u8,
            is_ok: matches!(response.status, Status::Good | Status::ConditionMet),
            is_aborted: response.status == Status::TaskAborted,
            sense: response.sense_bytes(),
            data_in: response.data_in,
            transfer_bytes_wanted: response.transfer_bytes_wanted,
            after: response.after,
        }
    }
}

impl From<scsi::Step> for Step<scsi::Pending> {
    fn from(step: scsi::Step) -> Self {
        match step {
            scsi::Step::Done(response) => Self::Done(response.into()),
            scsi::Step::Request { request, pending } => Self::Request { request, pending },
            scsi::Step::Persist { subject, pending } => Self::Persist { subject, pending },
        }
    }
}

impl CommandSet for DeviceServer {
    type Nexus = scsi::Nexus;
    type Pending = scsi::Pending;

    fn enter(&self, info: &NexusInfo, luns: &Arc<LunMap>) -> Arc<scsi::Nexus> {
        let port = InitiatorPort { name: info.host_name.clone(), isid: info.host_port };
        self.new_nexus(port, info.target_port, luns)
    }

    fn expect(&self, handed: &Handed, untold: &Untold) -> bool {
        let port = InitiatorPort { name: handed.initiator_name.clone(), isid: handed.isid };
        self.expect(port, handed.portal_tag, untold)
    }

    fn traits_of(luns: &LunMap, lun: [u8; 8], bytes: &CommandBytes) -> Traits {
        let cdb = Cdb::new(bytes.get());
        let opcode = cdb.opcode();
        // Without a volume, every command that transfers data is refused.
        let block_bytes = attributes_at(luns, lun).map(|volume| volume.logical_block.bytes());
        let verified_bytes = |blocks: u64| blocks.saturating_mul(block_bytes.unwrap_or(0));
        Traits {
            class: Class::of_opcode(opcode),
            locks_volume: RESERVES.contains(&opcode),
            may_have_token: opcode == THIRD_PARTY_COPY_OUT,
            verified_bytes: scsi::verified_blocks(&cdb).map(verified_bytes),
            data_out_bytes: block_bytes.map_or(0, |bytes| scsi::data_out_bytes(cdb.bytes(), bytes)),
        }
    }

    fn start(&self, nexus: &scsi::Nexus, luns: &Arc<LunMap>, asked: Asked) -> Step<scsi::Pending> {
        let command = scsi::Command {
            lun: asked.lun,
            cdb: Cdb::new(asked.bytes.get()),
            data_out: asked.data_out,
            expected_in_bytes: u64::from(asked.expected_in_bytes),
        };
        self.execute(nexus, luns, command).into()
    }

    fn resume(
        &self,
        nexus: &scsi::Nexus,
        pending: scsi::Pending,
        result: Result<VolumeReply, VolumeError>,
    ) -> Step<scsi::Pending> {
        self.resume(nexus, pending, result).into()
    }

    fn resume_saved(&self, pending: scsi::Pending) -> Step<scsi::Pending> {
        self.resume_saved(pending).into()
    }

    fn end_early(&self, nexus: &scsi::Nexus, pending: scsi::Pending) -> Step<scsi::Pending> {
        self.end_early(nexus, pending).into()
    }

    fn is_called_off(nexus: &scsi::Nexus, pending: &scsi::Pending) -> bool {
        pending.is_called_off(nexus)
    }

    fn gathers(pending: &scsi::Pending) -> bool {
        pending.gathers()
    }

    fn is_barred_now(&self, nexus: &scsi::Nexus, pending: &scsi::Pending) -> bool {
        self.is_barred_now(nexus, pending)
    }

    fn refuse(why: Refusal) -> Response {
        let response = match why {
            Refusal::Busy => scsi::Response::with_status(Status::Busy),
            Refusal::Aborted => scsi::Response::with_status(Status::TaskAborted),
            Refusal::NoMemory => scsi::Response::with_status(Status::TaskSetFull),
            Refusal::Barred => scsi::Response::with_status(Status::ReservationConflict),
            Refusal::Unsupported => scsi::Response::check(Sense::INVALID_MESSAGE),
        };
        response.into()
    }

    fn leave(&self, nexus: &scsi::Nexus) -> Vec<VolumeId> {
        self.nexus_loss(nexus)
    }

    fn reset_unit(&self, luns: &Arc<LunMap>, lun: [u8; 8]) -> Vec<VolumeId> {
        self.lun_reset(luns, lun)
    }

    fn reset_all(&self, luns: &Arc<LunMap>) -> Vec<VolumeId> {
        self.target_reset(luns)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::Commands;
    use super::*;

    #[test]
    fn a_command_is_classified_by_its_first_byte() {
        let luns = LunMap { generation: 0, luns: BTreeMap::new() };
        let traits = |opcode| {
            let bytes = CommandBytes::new(&[opcode, 0, 0, 0, 0, 0, 0, 0, 8, 0]);
            Commands::traits_of(&luns, [0; 8], &bytes)
        };
        let locks = (0..=255).filter(|opcode| traits(*opcode).locks_volume);
        assert_eq!(locks.collect::<Vec<_>>(), [0x16, 0x56]);
        let tokens = (0..=255).filter(|opcode| traits(*opcode).may_have_token);
        assert_eq!(tokens.collect::<Vec<_>>(), [0x83]);
        assert_eq!((traits(0x28).class, traits(0x2a).class), (Class::Read, Class::Write));
        // VERIFY(10) to a unit that does not exist.
        assert_eq!((traits(0x2f).verified_bytes, traits(0x28).verified_bytes), (Some(0), None));
    }
}
