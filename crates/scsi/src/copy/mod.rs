//! Third-party copy (SPC-4, 5.17, 6.4 to 6.5, 6.18 to 6.24): EXTENDED COPY and what tells of it.
//!
//! A parameter list is parsed wholly before anything happens ([`parse`]). Each CSCD descriptor is
//! then looked up among the volumes that the *sender* may reach, and nowhere else ([`cscd`]):
//! naming another's volume leads nowhere (CVE-2020-28374). All segments become one
//! [`VolumeRequest::Copy`].
//!
//! A segment that can't be processed ends the copy. The segments before it are copied, as the
//! sense data names it by its number and so says that they were (SPC-4, 5.17.7.4).

pub(crate) mod cscd;
pub(crate) mod limits;
pub(crate) mod odx;
pub(crate) mod parse;
pub(crate) mod results;
pub(crate) mod token;

use std::sync::Arc;

use block::{CopySegment, SECTOR_BYTES, SectorRange, VolumeAttributes, VolumeReply, VolumeRequest};
use target::{Change, PreemptionMark, Rod, Rods, SaveError, Subject, TokenError};

use crate::bytes::parameter_list;
use crate::copy::cscd::Cscd;
use crate::copy::parse::{Form, Length, List, ListUse, Segment};
use crate::copy::results::{CopyResult, Listed, Origin, TERMINATED};
use crate::nexus::Nexus;
use crate::read_write::sectors;
use crate::response::{Command, Pending, Response, Rest, Status, Step, request};
use crate::sense::{Sense, SenseKey};
use crate::server::{Context, DeviceServer};
use crate::table::{Access, Outcome};

/// COPY TARGET DEVICE NOT REACHABLE.
const NOT_REACHABLE: Sense = Sense::new(SenseKey::CopyAborted, 0x0d, 0x02);
/// UNREACHABLE COPY TARGET: a segment names a descriptor that is not in the list.
const NO_SUCH_CSCD: Sense = Sense::new(SenseKey::CopyAborted, 0x08, 0x04);
/// INCORRECT COPY TARGET DEVICE TYPE.
const WRONG_TYPE: Sense = Sense::new(SenseKey::CopyAborted, 0x0d, 0x03);
/// THIRD PARTY DEVICE FAILURE: the volume refused, as by a reservation.
const DEVICE_FAILURE: Sense = Sense::new(SenseKey::CopyAborted, 0x0d, 0x01);
/// The range passes the end of a volume. No more exact code goes with COPY ABORTED.
const OUT_OF_RANGE: Sense = Sense::new(SenseKey::CopyAborted, 0x00, 0x00);
/// UNEXPECTED INEXACT SEGMENT: the bytes do not fill the destination's last block.
const INEXACT: Sense = Sense::new(SenseKey::CopyAborted, 0x26, 0x0a);

/// What remains of a copy when the volumes have answered.
#[derive(Debug)]
pub(crate) struct CopyRest {
    /// Where its result is kept, if it has a list identifier.
    listed: Option<Listed>,
    /// The failure to report after the segments before it were copied.
    failure: Option<Sense>,
    /// Segments in the request.
    segments: u16,
    /// What they copy: in bytes, or in logical blocks where a token is used.
    count: u64,
    /// What comes of it.
    after: After,
    /// By this it knows of PREEMPT AND ABORT.
    mark: PreemptionMark,
}

impl CopyRest {
    /// Whether nobody wants the rest of it: COPY OPERATION ABORT has named it, or PREEMPT AND ABORT
    /// its nexus.
    pub(crate) fn is_called_off(&self, nexus: &Nexus) -> bool {
        self.listed.as_ref().is_some_and(Listed::is_aborted) || self.mark.is_passed(nexus)
    }
}

/// What comes of a copy that has succeeded.
#[derive(Debug)]
enum After {
    /// Of EXTENDED COPY: nothing.
    ThirdParty,
    /// Of the block device zero ROD token: nothing.
    Zeros,
    /// The token of this ROD is good.
    Publish(Arc<Rod>),
    /// The token was used; with `delete` it ends.
    Used { rod: Arc<Rod>, delete: bool },
}

impl After {
    /// Lets it happen: when that is durable, and the ROD if it has a new token.
    fn happen(self, server: &DeviceServer) -> (Change, Option<Arc<Rod>>) {
        let rods = server.target.rods();
        match self {
            Self::ThirdParty | Self::Zeros => (Change::Durable, None),
            Self::Publish(rod) => (rods.publish(&rod), Some(rod)),
            Self::Used { rod, delete } => (rods.used(&rod, delete), None),
        }
    }

    /// How a volume's failure is reported to the host. With a token it is the addressed unit's own;
    /// for EXTENDED COPY it is a third party's, except for a full pool, which is reported in the
    /// form that hosts know.
    fn told(&self, sense: Sense) -> Sense {
        match self {
            Self::ThirdParty if sense.key != SenseKey::DataProtect => DEVICE_FAILURE,
            // A block that can't be read may be the other side's: its number means nothing here.
            _ => Sense { information: None, ..sense },
        }
    }
}

pub(crate) fn extended_copy_lid1(context: &Context<'_>, command: Command) -> Outcome {
    extended_copy(context, &command, Form::Lid1)
}

pub(crate) fn extended_copy_lid4(context: &Context<'_>, command: Command) -> Outcome {
    extended_copy(context, &command, Form::Lid4)
}

fn extended_copy(context: &Context<'_>, command: &Command, form: Form) -> Outcome {
    let volume = context.volume()?;
    let wanted = Some(command.cdb.u32(10).into());
    let Some(bytes) = list_of(command)? else {
        return Ok(Step::Done(Response::good().wanting(wanted)));
    };
    let list = parse::parse(&bytes, form)?;
    let listed = match list.list_use {
        ListUse::None => None,
        list_use => {
            let origin = match form {
                Form::Lid1 => Origin::ExtendedCopyLid1,
                Form::Lid4 => Origin::ExtendedCopyLid4,
            };
            Some(results::begin(context.nexus, list.id, origin, list_use)?)
        }
    };
    let (segments, failure) = resolve(context, &list);
    let count = segments.iter().map(|segment| segment.count.0 * SECTOR_BYTES).sum();
    let processed = failure.map_or(list.segments.len(), |(index, _)| index);
    let rest = CopyRest {
        listed,
        failure: failure.map(|(_, sense)| sense),
        segments: processed as u16,
        count,
        after: After::ThirdParty,
        mark: PreemptionMark::new(context.nexus, volume.id),
    };
    start(context, volume, rest, VolumeRequest::Copy { segments }, wanted)
}

/// The parameter list, unless its length is 0, which is no error and does nothing.
fn list_of(command: &Command) -> Result<Option<Vec<u8>>, Sense> {
    let length = command.cdb.u32(10) as usize;
    if length > limits::PARAMETER_BYTES_MAX {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    if length == 0 {
        return Ok(None);
    }
    parameter_list(&command.data_out, length).map(Some)
}

/// Runs the request, or ends at once where there is nothing to do.
fn start(
    context: &Context<'_>,
    volume: &VolumeAttributes,
    rest: CopyRest,
    asked: VolumeRequest,
    wanted: Option<u64>,
) -> Outcome {
    let nothing = match &asked {
        VolumeRequest::Copy { segments } => segments.is_empty(),
        VolumeRequest::Unmap { ranges, .. } => ranges.is_empty(),
        _ => false,
    };
    if nothing {
        let reply = Ok(VolumeReply::Done);
        let block_sectors = volume.logical_block.sectors();
        let pending = |rest| Pending { wanted, volume: volume.id, block_sectors, rest };
        let step = finish(context.server, rest, reply, pending);
        return step.map(|step| step.wanting(wanted));
    }
    Ok(request(volume, wanted, Rest::Copy(Box::new(rest)), asked))
}

/// The segments as requests, up to the first that can't be processed: its number and why.
fn resolve(context: &Context<'_>, list: &List) -> (Vec<CopySegment>, Option<(usize, Sense)>) {
    let cscds = cscd::resolve(context, &list.cscds);
    let mut out = Vec::with_capacity(list.segments.len());
    for (index, segment) in list.segments.iter().enumerate() {
        match resolve_one(context, list, &cscds, segment) {
            Ok(copy) if copy.count.0 > 0 => out.push(copy),
            Ok(_) => {}
            Err(mut sense) => {
                sense.command_specific = Some(index as u64);
                return (out, Some((index, sense)));
            }
        }
    }
    (out, None)
}

fn resolve_one(
    context: &Context<'_>,
    list: &List,
    cscds: &[Cscd],
    segment: &Segment,
) -> Result<CopySegment, Sense> {
    let source = cscd::find(context, list, cscds, segment.source)?;
    let destination = cscd::find(context, list, cscds, segment.destination)?;
    let (reservations, nexus) = (context.server.target.volumes(), context.nexus.id());
    if reservations.conflict(source.id, nexus, Access::Read)
        || reservations.conflict(destination.id, nexus, Access::Write)
        || context.server.controls.of(destination.id).write_protected
    {
        return Err(DEVICE_FAILURE);
    }
    let (read, write) = match segment.length {
        Length::Blocks(blocks) => by_blocks(segment, blocks, source, destination)?,
        Length::Bytes { bytes, source_offset, destination_offset } => {
            let count = exact_sectors(bytes.into())?;
            let at = |volume, lba, offset| by_bytes(volume, lba, offset, count);
            (
                at(source, segment.source_lba, source_offset)?,
                at(destination, segment.destination_lba, destination_offset)?,
            )
        }
    };
    Ok(CopySegment {
        source: source.id,
        source_start: read.start,
        destination: destination.id,
        destination_start: write.start,
        count: write.count,
    })
}

/// Blocks to blocks (segment type 02h): source and destination ranges.
fn by_blocks(
    segment: &Segment,
    blocks: u16,
    source: &VolumeAttributes,
    destination: &VolumeAttributes,
) -> Result<(SectorRange, SectorRange), Sense> {
    // The number of blocks counts blocks of the one that DC names (SPC-4, 6.4.6.5).
    let counted = if segment.counts_destination { destination } else { source };
    let bytes = u64::from(blocks) * counted.logical_block.bytes();
    let (from, to) = (source.logical_block.bytes(), destination.logical_block.bytes());
    if bytes % from != 0 || bytes % to != 0 {
        return Err(INEXACT);
    }
    let read = sectors(source, segment.source_lba, bytes / from).map_err(|_| OUT_OF_RANGE)?;
    let write =
        sectors(destination, segment.destination_lba, bytes / to).map_err(|_| OUT_OF_RANGE)?;
    Ok((read, write))
}

/// A count of bytes in sectors. Parts of sectors are not moved: such a segment is inexact.
fn exact_sectors(bytes: u64) -> Result<u64, Sense> {
    if bytes.is_multiple_of(SECTOR_BYTES) { Ok(bytes / SECTOR_BYTES) } else { Err(INEXACT) }
}

/// A range that starts at a byte of a block (segment type 0Ah; SPC-4, 6.4.6.13).
fn by_bytes(
    volume: &VolumeAttributes,
    lba: u64,
    offset_bytes: u16,
    count: u64,
) -> Result<SectorRange, Sense> {
    let offset = exact_sectors(offset_bytes.into())?;
    let unit = volume.logical_block.sectors();
    if offset >= unit {
        return Err(INEXACT);
    }
    let start = lba.checked_mul(unit).and_then(|start| start.checked_add(offset));
    let range = start.map(|start| SectorRange::new(start, count));
    range.filter(|range| range.fits(volume.size)).ok_or(OUT_OF_RANGE)
}

/// Ends a copy between two of its pieces, as it was called off. Those before have been copied; how
/// many they are is not told, so whoever goes on copies all of it.
pub(crate) fn end_early(nexus: &Nexus, rest: CopyRest) -> Response {
    let is_preempted = rest.mark.is_passed(nexus);
    if let Some(listed) = rest.listed {
        listed.end(CopyResult::aborted());
    }
    match is_preempted {
        true => Response::with_status(Status::TaskAborted),
        false => Response::check(TERMINATED),
    }
}

/// A copy whose token begins or ends when that is durable.
#[derive(Debug)]
pub(crate) struct UnsavedToken {
    change: u64,
    /// The ROD, if its token is new.
    begun: Option<Arc<Rod>>,
    listed: Option<Listed>,
    ended: CopyResult,
}

impl UnsavedToken {
    /// Ends the copy: all is durable, or could not be made so.
    pub(crate) fn saved(self, rods: &Rods) -> Response {
        let outcome = rods.outcome(self.change, self.begun.as_deref());
        let failure = outcome.err().map(|error| match error {
            SaveError::NoRoom => token::sense(TokenError::NoRoom),
            SaveError::Failed => Sense::INTERNAL_FAILURE,
        });
        let ended = match failure {
            None => self.ended,
            sense => CopyResult { segments: 0, count: 0, sense, token: None, is_aborted: false },
        };
        end(self.listed, ended).unwrap_or_else(Response::check)
    }
}

/// Ends a copy: keeps its result, and answers when what comes of it is durable. `pending`: what is
/// known of the command besides.
pub(crate) fn finish(
    server: &DeviceServer,
    rest: CopyRest,
    result: Result<VolumeReply, Sense>,
    pending: impl FnOnce(Rest) -> Pending,
) -> Outcome {
    let CopyRest { listed, failure, segments, count, after, mark: _ } = rest;
    let ended = match result {
        Ok(_) => {
            let (change, begun) = after.happen(server);
            let token = begun.as_ref().map(|rod| Box::new(rod.token));
            let ended = CopyResult { segments, count, sense: failure, token, is_aborted: false };
            if let Change::Unsaved(change) = change {
                let unsaved = UnsavedToken { change, begun, listed, ended };
                let pending = pending(Rest::SaveToken(Box::new(unsaved)));
                return Ok(Step::Persist { subject: Subject::Tokens, pending });
            }
            ended
        }
        Err(sense) => {
            // Nothing was copied, so it is the first segment that failed.
            let sense = Some(Sense { command_specific: Some(0), ..after.told(sense) });
            CopyResult { segments: 0, count: 0, sense, token: None, is_aborted: false }
        }
    };
    end(listed, ended).map(Step::Done)
}

fn end(listed: Option<Listed>, ended: CopyResult) -> Result<Response, Sense> {
    let sense = ended.sense;
    if let Some(listed) = listed {
        listed.end(ended);
    }
    sense.map_or_else(|| Ok(Response::good()), Err)
}
