//! What goes on with a command when the volume has answered: its next request, or its end.

use block::{DataIn, LbaExtent, VolumeError, VolumeId, VolumeReply, VolumeRequest};
use target::{Change, Subject};

use crate::long::{LongRead, LongWrite};
use crate::nexus::Nexus;
use crate::or_write::OrWrite;
use crate::provisioning::LbaStatus;
use crate::response::{Pending, Response, Rest, Status, Step};
use crate::sense::{Sense, SenseKey};
use crate::server::DeviceServer;
use crate::verify::{Verification, WriteVerify};
use crate::{copy, log};

/// Whether a command goes on.
enum Next {
    Request(Rest, VolumeRequest),
    Persist(Rest, Subject),
    Done(Response),
}

/// The next step of a command, or why it has failed.
pub(crate) fn finish(
    server: &DeviceServer,
    nexus: &Nexus,
    pending: Pending,
    result: Result<VolumeReply, VolumeError>,
) -> Result<Step, Sense> {
    let Pending { wanted, volume, block_sectors, rest } = pending;
    let told = |error: VolumeError| error_sense(&error, block_sectors);
    let next = match rest {
        Rest::Copy(rest) => {
            let pending = |rest| Pending { wanted, volume, block_sectors, rest };
            return copy::finish(server, *rest, result.map_err(told), pending);
        }
        Rest::OrWrite(write) => or_write(nexus, write, result, told)?,
        rest => go_on(server, nexus, volume, rest, result.map_err(told)?)?,
    };
    Ok(match next {
        Next::Done(response) => Step::Done(response),
        Next::Request(rest, request) => {
            Step::Request { request, pending: Pending { wanted, volume, block_sectors, rest } }
        }
        Next::Persist(rest, subject) => {
            Step::Persist { subject, pending: Pending { wanted, volume, block_sectors, rest } }
        }
    })
}

/// A command whose request has succeeded.
fn go_on(
    server: &DeviceServer,
    nexus: &Nexus,
    volume: VolumeId,
    rest: Rest,
    reply: VolumeReply,
) -> Result<Next, Sense> {
    Ok(match (rest, reply) {
        (Rest::Answer, VolumeReply::Done) => Next::Done(Response::good()),
        (Rest::Answer, VolumeReply::Data(data)) => Next::Done(Response::data(data)),
        (Rest::Verify(verification), VolumeReply::Data(data)) => verify(verification, &data)?,
        (Rest::Read(read), VolumeReply::Data(data)) => read_on(nexus, read, data)?,
        (Rest::Write(write), VolumeReply::Done) => write_on(nexus, write),
        (Rest::WriteVerify(rest), reply) => write_verify(nexus, rest, reply)?,
        (Rest::LbaStatus(status), VolumeReply::Extents(extents)) => lba_status(status, extents)?,
        (Rest::Sanitize, VolumeReply::Done) => match server.target.rods().revoke(volume) {
            Change::Durable => Next::Done(Response::good()),
            Change::Unsaved(change) => Next::Persist(Rest::SaveRevoked { change }, Subject::Tokens),
        },
        (Rest::SpaceLog { allocation_length }, VolumeReply::Space(space)) => {
            Next::Done(Response::parameters(&log::provisioning_data(space), allocation_length))
        }
        // The volume's reply does not belong to the request: a fault of ours, reported as such.
        _ => return Err(Sense::INTERNAL_FAILURE),
    })
}

fn lba_status(mut status: Box<LbaStatus>, extents: Vec<LbaExtent>) -> Result<Next, Sense> {
    status.take(extents)?;
    Ok(match status.next() {
        Some(request) => Next::Request(Rest::LbaStatus(status), request),
        None => Next::Done(status.answer()),
    })
}

fn read_on(nexus: &Nexus, mut read: Box<LongRead>, data: DataIn) -> Result<Next, Sense> {
    read.take(data)?;
    if read.is_preempted(nexus) {
        return Ok(Next::Done(Response::with_status(Status::TaskAborted)));
    }
    Ok(match read.next() {
        Some(request) => Next::Request(Rest::Read(read), request),
        None => Next::Done(Response::data(read.into_data())),
    })
}

fn verify(mut verification: Box<Verification>, data: &DataIn) -> Result<Next, Sense> {
    verification.check(data)?;
    Ok(match verification.next() {
        Some(request) => Next::Request(Rest::Verify(verification), request),
        None => Next::Done(Response::good()),
    })
}

fn write_on(nexus: &Nexus, mut write: Box<LongWrite>) -> Next {
    if write.is_preempted(nexus) {
        return Next::Done(Response::with_status(Status::TaskAborted));
    }
    match write.next() {
        Some(request) => Next::Request(Rest::Write(write), request),
        None => Next::Done(Response::good()),
    }
}

fn write_verify(
    nexus: &Nexus,
    mut rest: Box<WriteVerify>,
    reply: VolumeReply,
) -> Result<Next, Sense> {
    if rest.is_preempted(nexus) {
        return Ok(Next::Done(Response::with_status(Status::TaskAborted)));
    }
    let request = match reply {
        VolumeReply::Done => rest.written(),
        VolumeReply::Data(data) => rest.read(&data)?,
        _ => return Err(Sense::INTERNAL_FAILURE),
    };
    Ok(match request {
        Some(request) => Next::Request(Rest::WriteVerify(rest), request),
        None => Next::Done(Response::good()),
    })
}

fn or_write(
    nexus: &Nexus,
    mut write: Box<OrWrite>,
    result: Result<VolumeReply, VolumeError>,
    told: impl FnOnce(VolumeError) -> Sense,
) -> Result<Next, Sense> {
    let request = match result {
        // Another command has changed the piece between.
        Err(VolumeError::Miscompare { .. }) => Some(write.read()),
        Err(error) => return Err(told(error)),
        Ok(VolumeReply::Done) if write.is_over() => None,
        Ok(_) if write.is_preempted(nexus) => {
            return Ok(Next::Done(Response::with_status(Status::TaskAborted)));
        }
        Ok(VolumeReply::Data(held)) => Some(write.write(&held)?),
        Ok(VolumeReply::Done) => write.next(),
        Ok(_) => return Err(Sense::INTERNAL_FAILURE),
    };
    Ok(match request {
        Some(request) => Next::Request(Rest::OrWrite(write), request),
        None => Next::Done(Response::good()),
    })
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
        // WRITE PROTECTED. No host ever sees a snapshot: this is what the store would say.
        VolumeError::Snapshot(_) => Sense::new(SenseKey::DataProtect, 0x27, 0),
        VolumeError::TooLong => Sense::new(SenseKey::IllegalRequest, 0x24, 0),
    }
}
