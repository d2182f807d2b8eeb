//! Checks whether a response is right.

use block::{VolumeError, VolumeReply};

use super::{Desk, Op};
use crate::content::tags_of;
use crate::generate::Expected;
use crate::model::Changing;

impl Desk {
    pub(super) fn judge(
        &mut self,
        op: Op,
        reply: Result<VolumeReply, VolumeError>,
    ) -> Result<(), String> {
        match (reply, op.expected) {
            (Ok(VolumeReply::Data(data)), Expected::Data(want)) => {
                let have = tags_of(&data.to_vec())
                    .map_err(|at| format!("sector {at} of the response was never written"))?;
                match want.iter().zip(&have).position(|(want, have)| want != have) {
                    None if want.len() == have.len() => Ok(()),
                    at => Err(format!("sector {at:?} of the response is wrong")),
                }
            }
            (Ok(VolumeReply::Done), Expected::Done(effects)) => {
                let durable = self.durable_answers || op.fua;
                let Op { started, by_block, splits, .. } = op;
                let change = Changing { effects, started, by_block, racing: Vec::new() };
                if splits && !durable {
                    self.model.answered_in_pieces(self.time, change);
                } else {
                    self.model.answered(self.time, change, durable);
                }
                Ok(())
            }
            (Ok(VolumeReply::Done), Expected::Flushed) => {
                self.model.flushed(op.started);
                Ok(())
            }
            (Err(VolumeError::Miscompare { offset_bytes }), Expected::Miscompare(at))
                if offset_bytes == at =>
            {
                Ok(())
            }
            (
                Err(VolumeError::NoSpace),
                expected @ (Expected::Done(_) | Expected::Miscompare(_)),
            ) if self.may_be_full => {
                self.refused_full += 1;
                if op.splits {
                    let torn = Op { expected, label: String::new(), ..op };
                    self.torn.extend(torn.changing());
                }
                Ok(())
            }
            (Err(VolumeError::WriteFailed | VolumeError::Medium { .. }), expected)
                if self.disk.has_failed() =>
            {
                self.forget(Op { expected, label: String::new(), ..op });
                Ok(())
            }
            (Err(error), _) => Err(format!("it failed with {error:?}")),
            (Ok(_), expected) => Err(format!("it succeeded instead of failing with {expected:?}")),
        }
    }
}
