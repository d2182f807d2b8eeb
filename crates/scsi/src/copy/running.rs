//! A copy, from its request to its end.

use std::sync::Arc;

use block::{VolumeAttributes, VolumeReply, VolumeRequest};
use target::{Change, PreemptionMark, Rod, Rods, SaveError, Subject, Target, TokenError};

use crate::bytes::parameter_list;
use crate::copies::{CopyResult, Listed, TERMINATED};
use crate::copy::token;
use crate::device::Context;
use crate::limits;
use crate::nexus::Nexus;
use crate::sense::{Sense, SenseKey};
use crate::step::{Command, Continue, Outcome, Response, Resumed, Status, Step, request};

/// THIRD PARTY DEVICE FAILURE: the volume refused, for example because of a reservation.
pub(crate) const DEVICE_FAILURE: Sense = Sense::new(SenseKey::CopyAborted, 0x0d, 0x01);

/// The state of a copy while the volumes execute its request.
#[derive(Debug)]
pub(crate) struct CopyRest {
    /// Where to keep its result, if it has a list identifier.
    pub listed: Option<Listed>,
    /// The failure to report after the segments before it were copied.
    pub failure: Option<Sense>,
    /// Segments in the request.
    pub segments: u16,
    /// The amount they copy: in bytes, or in logical blocks if a token is used.
    pub count: u64,
    /// The effect of its success.
    pub after: After,
    /// Shows whether PREEMPT AND ABORT has named its nexus.
    pub mark: PreemptionMark,
}

/// The effect of a successful copy.
#[derive(Debug)]
pub(crate) enum After {
    /// EXTENDED COPY: none.
    ThirdParty,
    /// The block device zero ROD token: none.
    Zeros,
    /// The token of this ROD becomes valid.
    Publish(Arc<Rod>),
    /// The token was used; with `delete` it ends.
    Used { rod: Arc<Rod>, delete: bool },
}

impl After {
    /// Applies the effect. Returns when it is durable, and the ROD if it has a new token.
    fn happen(self, rods: &Rods) -> (Change, Option<Arc<Rod>>) {
        match self {
            Self::ThirdParty | Self::Zeros => (Change::Durable, None),
            Self::Publish(rod) => (rods.publish(&rod), Some(rod)),
            Self::Used { rod, delete } => (rods.used(&rod, delete), None),
        }
    }

    /// Translates a volume's failure for the host. With a token it is the addressed unit's own; for
    /// EXTENDED COPY it is a third party's, except for a full pool, which is reported in the form
    /// that hosts know.
    fn told(&self, sense: Sense) -> Sense {
        match self {
            Self::ThirdParty if sense.key != SenseKey::DataProtect => DEVICE_FAILURE,
            // An unreadable block may be on the other volume, where its number means nothing to
            // this host.
            _ => Sense { information: None, ..sense },
        }
    }
}

/// Returns the parameter list; `None` if its length is 0, which is no error and does nothing.
pub(crate) fn list_of(command: &Command) -> Result<Option<Vec<u8>>, Sense> {
    let length = command.cdb.u32(10) as usize;
    if length > limits::PARAMETER_BYTES_MAX {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    if length == 0 {
        return Ok(None);
    }
    parameter_list(&command.data_out, length).map(Some)
}

/// Executes the request, or ends at once if there is nothing to do.
pub(crate) fn start(
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
        let at = Resumed::at_once(&context.server.target, context.nexus, volume, wanted);
        let step = Box::new(rest).resume(&at, Ok(VolumeReply::Done));
        return step.map(|step| step.wanting(wanted));
    }
    Ok(request(volume, wanted, rest, asked))
}

impl Continue for CopyRest {
    /// Keeps the result, and responds when its effect is durable.
    fn resume(self: Box<Self>, at: &Resumed<'_>, result: Result<VolumeReply, Sense>) -> Outcome {
        let Self { listed, failure, segments, count, after, mark: _ } = *self;
        let ended = match result {
            Ok(_) => {
                let (change, begun) = after.happen(at.target.rods());
                let token = begun.as_ref().map(|rod| Box::new(rod.token));
                let ended =
                    CopyResult { segments, count, sense: failure, token, is_aborted: false };
                if let Change::Unsaved(change) = change {
                    let unsaved = UnsavedToken { change, begun, listed, ended };
                    return Ok(at.persist(Box::new(unsaved), Subject::Tokens));
                }
                ended
            }
            Err(sense) => {
                // Nothing was copied, so the first segment has failed.
                let sense = Some(Sense { command_specific: Some(0), ..after.told(sense) });
                CopyResult { segments: 0, count: 0, sense, token: None, is_aborted: false }
            }
        };
        end(listed, ended).map(Step::Done)
    }

    /// Earlier pieces have been copied. Their number is not reported, so a host that continues
    /// copies everything.
    fn end_early(self: Box<Self>, nexus: &Nexus) -> Response {
        let is_preempted = self.mark.is_passed(nexus);
        if let Some(listed) = self.listed {
            listed.end(CopyResult::aborted());
        }
        match is_preempted {
            true => Response::with_status(Status::TaskAborted),
            false => Response::check(TERMINATED),
        }
    }

    /// Returns whether it was cancelled: COPY OPERATION ABORT has named it, or PREEMPT AND ABORT
    /// its nexus.
    fn is_called_off(&self, nexus: &Nexus) -> bool {
        self.listed.as_ref().is_some_and(Listed::is_aborted) || self.mark.is_passed(nexus)
    }
}

/// A copy whose token begins or ends once that is durable.
#[derive(Debug)]
struct UnsavedToken {
    change: u64,
    /// The ROD, if its token is new.
    begun: Option<Arc<Rod>>,
    listed: Option<Listed>,
    ended: CopyResult,
}

impl Continue for UnsavedToken {
    fn saved(self: Box<Self>, target: &Target) -> Response {
        let outcome = target.rods().outcome(self.change, self.begun.as_deref());
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

fn end(listed: Option<Listed>, ended: CopyResult) -> Result<Response, Sense> {
    let sense = ended.sense;
    if let Some(listed) = listed {
        listed.end(ended);
    }
    sense.map_or_else(|| Ok(Response::good()), Err)
}
