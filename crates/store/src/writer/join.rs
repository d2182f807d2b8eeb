//! How jobs join the open record: which are refused, which must wait, and which become entries.

use block::{VolumeError, VolumeId, VolumeReply};
use format::Entry;

use crate::Token;
use crate::apply::apply_all;
use crate::apply::bring::Payload;
use crate::chunks::asking::Asked;
use crate::chunks::plans::Held;
use crate::edits::edit::Edit;
use crate::edits::entries::reshaped;
use crate::edits::grafts::Graft;
use crate::edits::preload;
use crate::log::relocation::Relocation;
use crate::space::need::Wait;
use crate::world::World;
use crate::world::view::View;
use crate::writer::Writer;
use crate::writer::estimate::config_bytes;
use crate::writer::job::{Job, Submitted};
use crate::writer::starved::Room;

impl Edit {
    /// Returns whether it changes the volume or copies from it, once it is in the log.
    pub(crate) fn concerns(&self, volume: VolumeId) -> bool {
        self.steps.iter().any(|step| {
            step.target().0 == volume || step.source().is_some_and(|(source, _)| source == volume)
        })
    }
}

impl Writer {
    /// Adds a job to the open record, if there is room.
    pub(crate) fn join(&mut self, world: &World, token: Token, job: Job) -> Submitted {
        let job = match job {
            Job::Edit(edit) => {
                if let Some(error) = Self::refuse(world, &edit) {
                    return self.refused(world, &edit, error);
                }
                match self.with_plan(world, edit) {
                    Ok(edit) => Job::Edit(edit),
                    Err(submitted) => return submitted,
                }
            }
            job => job,
        };
        match self.room_for(world, &job, false) {
            Room::Found => {}
            // Reclaim never waits, because others wait for it.
            Room::Awaited(need) if !matches!(job, Job::Relocate(_)) => {
                self.starve(token, job, need);
                return Submitted::Queued;
            }
            _ => return Submitted::Done(Err(self.no_space(world, &job))),
        }
        let changes_blocks = job.changes_blocks(world);
        let is_bulk = self.is_bulk(&job);
        match job {
            Job::Flush => self.join_flush(token),
            Job::Entries { entries, grows, wait, plan } => {
                self.join_entries(world, token, (entries, grows, wait, plan), changes_blocks)
            }
            Job::Relocate(relocation) => {
                self.join_relocation(world, token, relocation, changes_blocks)
            }
            Job::Stage(edit) => self.join_part(world, token, edit, changes_blocks),
            Job::Edit(edit) => self.join_edit(world, token, edit, changes_blocks, is_bulk),
        }
    }

    /// Returns an edit with all metadata that it touches in memory: some may have been evicted
    /// while it waited.
    fn with_plan(&mut self, world: &World, edit: Box<Edit>) -> Result<Box<Edit>, Submitted> {
        match edit.plan < world.memory.plans.oldest() {
            true => self.planned_anew(world, edit),
            false => Ok(edit),
        }
    }

    /// Plans an edit again, without waiting for the device.
    fn planned_anew(&mut self, world: &World, mut edit: Box<Edit>) -> Result<Box<Edit>, Submitted> {
        let asked = std::mem::take(&mut edit.asked);
        edit.plan = world.memory.plans.now();
        edit.applied_seen = world.applied();
        let looked = preload::edit(View::asking(world, &asked).planning(edit.plan), &mut edit);
        edit.asked = asked;
        match looked {
            // The missing metadata is read first.
            _ if edit.asked.is_waiting() => Err(Submitted::Stale(edit)),
            Ok(true) => Ok(edit),
            // It has become too much for one commit.
            Ok(false) => Err(Submitted::Stale(edit)),
            Err(error) => Err(self.refused(world, &edit, error)),
        }
    }

    fn join_flush(&mut self, token: Token) -> Submitted {
        if self.is_idle() && self.log.is_durable() {
            return Submitted::Done(Ok(VolumeReply::Done));
        }
        self.open.waiting.push(token);
        self.open.flush = true;
        Submitted::Queued
    }

    fn join_entries(
        &mut self,
        world: &World,
        token: Token,
        (entries, grows, mut wait, plan): (Vec<Entry>, bool, Option<Wait>, Held),
        changes_blocks: u64,
    ) -> Submitted {
        if !self.has_room(0, entries.iter().map(Entry::encoded_bytes).sum()) {
            self.put_off(token, Job::Entries { entries, grows, wait, plan });
            return Submitted::Queued;
        }
        self.feed(&mut wait);
        let first = self.open.entries.len();
        self.open.needs_plan(plan.number);
        self.open.changes_blocks += changes_blocks;
        self.next_checkpoint.add_config(config_bytes(&entries));
        self.open.grafts.extend(entries.iter().flat_map(Graft::of_entry));
        self.open.reshaped.extend(reshaped(&entries));
        self.open.entries.extend(entries);
        self.joined(world, token, first, true)
    }

    fn join_part(
        &mut self,
        world: &World,
        token: Token,
        mut edit: Box<Edit>,
        changes_blocks: u64,
    ) -> Submitted {
        let blocks = edit.staging.frames.len();
        if !self.has_room(blocks, 64 + blocks * 64) {
            self.put_off(token, Job::Stage(edit));
            return Submitted::Queued;
        }
        let (plan, nodes) = (world.memory.plans.now(), self.unapplied_nodes_max());
        let found = self.find_ids(View::asking(world, &edit.asked).planning(plan), blocks, nodes);
        if edit.asked.is_waiting() {
            return Submitted::Stale(edit);
        }
        if !found {
            return self.refused(world, &edit, VolumeError::NoSpace);
        }
        self.open.needs_plan(plan);
        let first = self.open.entries.len();
        let frames = std::mem::take(&mut edit.staging.frames);
        let classes = std::mem::take(&mut edit.staging.classes);
        let runs = self.open.add_part(&mut self.state.next_chunk, frames, &classes);
        self.open.has_bulk = true;
        edit.end_part(runs);
        self.feed(&mut edit.wait);
        self.open.changes_blocks += changes_blocks;
        if !self.count_entries(world, first) {
            return Submitted::Done(Err(VolumeError::WriteFailed));
        }
        self.open.staging.push((token, edit));
        Submitted::Queued
    }

    /// Releases what a failed long copy has staged.
    pub(crate) fn release_staged(&mut self, world: &World, edit: &Edit) {
        self.released.extend(edit.staged_chunks());
        self.log_released(world);
    }

    /// Adds to the open record as much released staged data as fits and has its rows in memory
    /// ([`crate::Store::housekeep`] reads them). The rest goes into later records; a recovery that
    /// finds none of them releases it as well.
    pub(crate) fn log_released(&mut self, world: &World) {
        if self.released.is_empty() {
            return;
        }
        let (asked, plan) = (Asked::default(), world.memory.plans.now());
        let view = View::asking(world, &asked).planning(plan);
        let mut kept = Vec::new();
        while let Some((first, count)) = self.released.pop() {
            let entry = Entry::Release { first, count };
            let at = self.open.entries.len();
            if !preload::are_rows_there(view, first, count) {
                kept.push((first, count));
            } else if !self.has_room(0, entry.encoded_bytes()) {
                kept.push((first, count));
                break;
            } else {
                self.open.needs_plan(plan);
                self.open.entries.push(entry);
                self.count_entries(world, at);
            }
        }
        self.released.extend(kept);
    }

    /// Counts the entries from `first` on, and applies them if they are applied early. Returns
    /// `false` if the store has failed.
    fn count_entries(&mut self, world: &World, first: usize) -> bool {
        let added = &self.open.entries[first..];
        self.open.entries_bytes += added.iter().map(Entry::encoded_bytes).sum::<usize>();
        if self.early() && first < self.open.entries.len() {
            let payload = Payload::of(None, &self.open);
            let added = &self.open.entries[first..];
            let mut applied = apply_all(world, &mut self.state, added, payload);
            world.count_applied();
            for chunk in self.open.pins.drain(..) {
                applied = applied.and(world.unpin(&mut self.state, chunk));
            }
            self.failed |= applied.is_err();
            let grafts = std::mem::take(&mut self.open.grafts);
            self.grafted(world, grafts);
        }
        !self.failed
    }

    fn join_relocation(
        &mut self,
        world: &World,
        token: Token,
        mut relocation: Relocation,
        changes_blocks: u64,
    ) -> Submitted {
        let bytes: usize = relocation.entries.iter().map(Entry::encoded_bytes).sum();
        if !self.has_room(relocation.payload_blocks(), bytes) {
            self.put_off(token, Job::Relocate(relocation));
            return Submitted::Queued;
        }
        let first = self.open.entries.len();
        if let Some(plan) = relocation.plan.take() {
            self.open.needs_plan(plan.number);
        }
        self.open.changes_blocks += changes_blocks;
        self.open.add_relocation(&mut relocation);
        self.joined(world, token, first, true)
    }

    fn join_edit(
        &mut self,
        world: &World,
        token: Token,
        mut edit: Box<Edit>,
        changes_blocks: u64,
        is_bulk: bool,
    ) -> Submitted {
        let (is_light, has_time) = (self.is_light(&edit), self.has_time(&edit));
        if !self.fits(&edit, is_bulk) || is_light && !has_time {
            self.put_off(token, Job::Edit(edit));
            return Submitted::Queued;
        }
        if !is_light && (self.queues.has_heavy() || !has_time) {
            self.queues.push_heavy(token, edit);
            return Submitted::Queued;
        }
        let touched = edit.touched(world.medium.tuning.fanout);
        let awaits = self.awaits_others(&edit) || self.awaits_grafts(world, &touched);
        if awaits || self.awaits_sources(world, &edit) {
            self.queues.defer(token, edit);
            return Submitted::Queued;
        }
        match self.is_current(world, &edit) {
            Ok(true) => {}
            Ok(false) => return Submitted::Stale(edit),
            Err(error) => return self.refused(world, &edit, error),
        }
        if edit.steps.is_empty() {
            return Submitted::Done(Ok(VolumeReply::Done));
        }
        let is_older = edit.copies() && edit.applied_seen != world.applied();
        if is_older || self.was_grafted(world, &touched, edit.grafts_seen) {
            edit = match self.planned_anew(world, edit) {
                Ok(edit) => edit,
                Err(submitted) => return submitted,
            };
        }
        let nodes_max = edit.new_nodes_max(world.medium.tuning.fanout);
        let found = self.find_ids_for(world, &edit, nodes_max);
        if edit.asked.is_waiting() {
            return Submitted::Stale(edit);
        }
        if !found {
            return self.refused(world, &edit, VolumeError::NoSpace);
        }
        // Last, so that a refused edit pins nothing.
        if !self.pin_known(world, &edit) {
            let is_absent = edit.asked.is_waiting();
            return Submitted::Stale(if is_absent { edit } else { edit.forget() });
        }
        self.feed(&mut edit.wait);
        let first = self.open.entries.len();
        let (rest, fua) = (edit.take_rest(), edit.fua);
        self.open.needs_plan(edit.plan);
        self.open.nodes_max += nodes_max;
        *self.open.work_of(is_light) += edit.work;
        self.open.has_bulk |= is_bulk;
        self.open.changes_blocks += changes_blocks;
        self.log.count_hosts_bytes(edit.put_bytes());
        self.open.add_edit(&mut self.state.next_chunk, edit);
        let Some(rest) = rest else { return self.joined(world, token, first, fua) };
        if !self.count_entries(world, first) {
            return Submitted::Done(Err(VolumeError::WriteFailed));
        }
        self.open.staging.push((token, rest));
        Submitted::Queued
    }

    /// Returns whether an edit costs less than copying a node, as most writes do. It does not wait
    /// for heavy ones, so a record has the budget twice, once for each kind.
    fn is_light(&self, edit: &Edit) -> bool {
        edit.work < self.tuning.fanout.entries() as u64
    }

    /// Returns whether the open record has the budget for an edit. One that costs more than the
    /// whole budget has a record of its own.
    fn has_time(&self, edit: &Edit) -> bool {
        let spent = if self.is_light(edit) { self.open.light_work } else { self.open.work };
        spent == 0 || spent + edit.work <= self.tuning.commit_work
    }

    /// Pins the chunks that an edit refers to until its record is applied. Returns `false` if one
    /// of them is gone, its row can't be read, or must be read first. A chunk that is gone is not
    /// found again when the edit is planned again, so this terminates.
    fn pin_known(&mut self, world: &World, edit: &Edit) -> bool {
        let known = || edit.puts().flat_map(|(_, put)| put.known());
        let view = View::asking(world, &edit.asked).planning(edit.plan);
        let pinned = |chunk| self.state.pins.contains_key(&chunk) && view.chunk(chunk).is_ok();
        // The last entry that refers to it may be gone when its record is applied: it then releases
        // its original, too.
        let there = |(chunk, sum)| {
            (pinned(chunk) || view.may_share(chunk, sum)) && preload::row_of(view, chunk).is_ok()
        };
        if !known().all(there) {
            return false;
        }
        for (chunk, _) in known() {
            *self.state.pins.entry(chunk).or_default() += 1;
            self.open.pins.push(chunk);
        }
        true
    }

    /// Ends joining: with early answers the entries are applied now.
    fn joined(&mut self, world: &World, token: Token, first: usize, fua: bool) -> Submitted {
        if !self.count_entries(world, first) {
            return Submitted::Done(Err(VolumeError::WriteFailed));
        }
        if !self.early() {
            self.open.waiting.push(token);
            return Submitted::Queued;
        }
        if fua {
            self.open.waiting.push(token);
            self.open.flush = true;
            return Submitted::Queued;
        }
        Submitted::Done(Ok(VolumeReply::Done))
    }

    fn refused(&mut self, world: &World, edit: &Edit, error: VolumeError) -> Submitted {
        Submitted::Done(Err(self.let_go(world, edit, error)))
    }

    /// Releases an edit that fails; returns the error for the host.
    pub(crate) fn let_go(&mut self, world: &World, edit: &Edit, error: VolumeError) -> VolumeError {
        self.release_staged(world, edit);
        edit.told(error)
    }

    /// Returns why the edit can't be done at all, if so.
    fn refuse(world: &World, edit: &Edit) -> Option<VolumeError> {
        for step in &edit.steps {
            let (volume, range) = step.target();
            let ranges = [Some((volume, range)), step.source()];
            for (id, range) in ranges.into_iter().flatten() {
                match world.map_of(id) {
                    None => return Some(VolumeError::NoSuchVolume(id)),
                    Some(map) if range.end().0 > map.size_blocks => {
                        return Some(VolumeError::OutOfRange);
                    }
                    Some(map) if map.snapshot && id == volume => {
                        return Some(VolumeError::Snapshot(id));
                    }
                    Some(_) => {}
                }
            }
        }
        None
    }
}
