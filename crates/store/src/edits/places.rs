//! Copies that wait for a place ([`Places`](crate::world::places::Places)), and go on.

use block::VolumeError;

use crate::edits::edit::Edit;
use crate::log::writer::{Answer, Writer};
use crate::store::Store;
use crate::world::World;
use crate::{Started, Token};

impl Store {
    /// Begins the next part of an edit, if it has one, with a place for what it moves; if there is
    /// none, the edit goes on when there is.
    pub(crate) fn begin_part(
        &self,
        mut edit: Box<Edit>,
        token: Token,
    ) -> Result<Box<Edit>, Started> {
        let most = self.options.tuning.parts_at_once;
        let find = |edit: &mut Edit| {
            let found = !edit.wants_place(&self.options.tuning)
                || edit.place_in(self.world.places.take(most));
            if found {
                edit.begin_part();
            }
            found
        };
        if find(&mut edit) {
            return Ok(edit);
        }
        let mut writer = self.writer.lock();
        if writer.failed {
            return Err(Started::Done(Err(VolumeError::WriteFailed)));
        }
        // One that was given back in between would not be found by anybody else.
        if find(&mut edit) {
            return Ok(edit);
        }
        writer.queues.push_placeless(token, edit);
        Err(Started::Queued)
    }

    /// Lets copies go on that wait for places which have come free. After a commit that is done
    /// anyway; but who fails, or is not wanted any more, needs none.
    pub(crate) fn hand_out_places(&self) {
        if !self.world.places.were_given_back() {
            return;
        }
        let mut answers = Vec::new();
        {
            let mut writer = self.writer.lock();
            if writer.has_place(&self.world) {
                writer.take_placeless(&self.world, &mut answers);
            }
        }
        self.answer(answers);
    }
}

impl Writer {
    /// Whether a copy waits for a place and one is free.
    pub(crate) fn has_place(&self, world: &World) -> bool {
        self.queues.placeless_count() > 0 && world.places.free(self.tuning.parts_at_once) > 0
    }

    /// Lets copies go on for which there are places.
    pub(crate) fn take_placeless(&mut self, world: &World, answers: &mut Vec<Answer>) {
        let free = world.places.free(self.tuning.parts_at_once);
        let found = self.queues.take_placeless(free);
        answers.extend(found.into_iter().map(|(token, edit)| Answer::Again(token, edit)));
    }
}
