//! Executes commands: SCSI, the store, SCSI again, and the response.

use std::sync::Arc;
use std::time::Duration;

use block::{LunMap, SectorRange, VolumeReply, VolumeRequest};
use store::{Outcome, ReadOperation, Started, Token};
use target::Subject;

use super::FrontEnd;
use crate::command_set::{
    AnswerAfter, Asked, CommandSet, Commands, Pending, Refusal, Response, Step,
};
use crate::counters::{Class, PathCounters};
use crate::luns::{attributes_at, volume_at};
use crate::managed::LunMaps;
use crate::peer::{Peer, PeerPath};
use crate::shared::Shared;
use crate::tasks::Task;
use crate::throttle::Gates;
use crate::transport::{Command, TaskHandle, TaskResponse};

impl FrontEnd {
    /// Starts a command that arrived at `now`.
    // What all threads share is borrowed, not cloned: each reference count would take the cache
    // line from the others.
    pub(super) fn execute(&mut self, slot: usize, command: Command, now: Duration) {
        let Some(peer) = self.peers[slot].as_mut() else { return };
        let outstanding = peer.connection.outstanding();
        let counted = peer.session.as_ref().inspect(|session| session.count(outstanding));
        let found = counted.map(|session| (session.nexus.clone(), session.info.session));
        let Some((nexus, session)) = found else {
            // A discovery session refuses commands before they get here.
            return peer.connection.forget(command.task);
        };
        let luns = peer.refresh_luns(&*self.shared.luns, nexus.initiator().name.as_str());
        let traits = Commands::traits_of(luns, command.lun, &command.bytes);
        let volume = volume_at(luns, command.lun);
        let (path, gates) = peer.path(&self.shared, &nexus.initiator().name, command.lun);
        path.count_reserve(traits.locks_volume);
        let index = self.tasks.insert(Task {
            connection: slot,
            handle: command.task,
            nexus: nexus.clone(),
            session,
            volume,
            has_memory: false,
            starved_since: None,
            pending: None,
            waiting: None,
            parked: None,
            reading: None,
            held: None,
            gathers: false,
            operation: None,
            reads_left: 0,
            reads_began: Duration::ZERO,
            aborted: false,
            watches: Vec::new(),
            sent_as: None,
            class: traits.class,
            path,
            bytes: 0,
            zero_bytes: 0,
            copies: Vec::new(),
            started: now,
        });
        if command.is_unsupported {
            return self.finish(index, Commands::refuse(Refusal::Unsupported));
        }
        let moved = u64::from(command.expected_in_bytes.max(command.expected_out_bytes));
        let moved = moved.max(traits.verified_bytes.unwrap_or(0));
        let Command { lun, bytes, data_out, expected_out_bytes, expected_in_bytes, .. } = command;
        let asked = Asked { lun, bytes, data_out, expected_out_bytes, expected_in_bytes };
        let verifies = traits.verified_bytes.is_some();
        let Some(asked) = self.throttle(index, gates, verifies, moved, asked) else { return };
        // The LUN map by which the command's traits were determined.
        let luns = self.peers[slot].as_ref().and_then(|peer| peer.luns.as_ref());
        let (_, luns) = luns.expect("the LUN map was looked up above");
        let step = self.shared.begin(&nexus, luns, traits, asked);
        self.advance(index, step);
    }

    pub(super) fn token(&self, index: usize) -> Token {
        Token { sink: self.sink, id: self.tasks.name(index) }
    }

    /// Executes a command's next steps until it waits, has ended, or the turn's budget is used up.
    pub(super) fn advance(&mut self, index: usize, step: Step) {
        self.go_on(index, step, false);
    }

    /// The same. `is_next`: the step was parked, and is the next one that may run.
    pub(super) fn go_on(&mut self, index: usize, mut step: Step, mut is_next: bool) {
        loop {
            let (request, pending) = match step {
                Step::Done(response) => return self.finish(index, response),
                Step::Persist { subject, pending } => return self.persist(index, subject, pending),
                Step::Request { request, pending } => (request, pending),
            };
            let token = self.token(index);
            let Some(task) = self.tasks.get_mut(index) else { return };
            if task.aborted || Commands::is_called_off(&task.nexus, &pending) {
                // Between two requests of a command that was cancelled.
                task.pending = Some(pending);
                return self.end_early(index);
            }
            let is_next = std::mem::take(&mut is_next);
            let Some((mut request, pending)) = self.start_or_park(index, request, pending, is_next)
            else {
                return;
            };
            self.name_sender(index, &mut request);
            let Some(task) = self.tasks.get_mut(index) else { return };
            let gathers = Commands::gathers(&pending);
            task.pending = Some(pending);
            task.bytes += bytes_of(&request);
            match &request {
                VolumeRequest::Copy { segments } => task.note_copies(segments),
                VolumeRequest::Write { data, .. } => task.note_zeros(data),
                _ => {}
            }
            let Some(request) = self.admit(index, request, gathers) else { return };
            if let Some(task) = self.tasks.get_mut(index) {
                task.reading = self.turn.reading(&request);
            }
            self.may_commit |= !matches!(request, VolumeRequest::Read { .. });
            match self.shared.store.start(request, token) {
                Started::Done(result) => match self.resume_command(index, result) {
                    Some(next) => step = next,
                    None => return,
                },
                waits => return self.wait(index, waits),
            }
        }
    }

    /// Adds the sender to the request of a COMPARE AND WRITE. Other commands that compare (ORWRITE)
    /// repeat their requests by themselves.
    fn name_sender(&mut self, index: usize, request: &mut VolumeRequest) {
        let VolumeRequest::CompareAndWrite { sender, .. } = request else { return };
        let Some(task) = self.tasks.get_mut(index) else { return };
        if task.class != Class::CompareAndWrite {
            return;
        }
        let peer = self.peers[task.connection].as_ref();
        let peer = peer.filter(|peer| peer.id == task.handle.connection);
        let Some(session) = peer.and_then(|peer| peer.session.as_ref()) else { return };
        let named = self.shared.senders.next(session, task.started);
        task.sent_as = Some(named.command);
        *sender = Some(Box::new(named));
    }

    /// Has a command wait until its changes of the target's state are durable.
    fn persist(&mut self, index: usize, subject: Subject, pending: Pending) {
        let name = self.tasks.name(index);
        let Some(task) = self.tasks.get_mut(index) else { return };
        task.pending = Some(pending);
        self.shared.saver.save(subject, self.index, name);
    }

    /// Continues a command whose state was saved, or could not be.
    pub(super) fn state_saved(&mut self, name: u64) {
        let Some(index) = self.tasks.find(name) else { return };
        let pending = self.tasks.get_mut(index).and_then(|task| task.pending.take());
        if let Some(pending) = pending {
            let step = CommandSet::resume_saved(&self.shared.scsi, pending);
            self.advance(index, step);
        }
    }

    /// Continues after the store has started or resumed a request.
    pub(super) fn request_started(&mut self, index: usize, started: Started) {
        match started {
            Started::Done(result) => {
                if let Some(step) = self.resume_command(index, result) {
                    self.advance(index, step);
                }
            }
            waits => self.wait(index, waits),
        }
    }

    /// Has a command's request wait for the device: for its reads, or for a commit.
    fn wait(&mut self, index: usize, started: Started) {
        let Started::Read(operation) = started else {
            return self.patience.earn_by_commit(self.tasks.len());
        };
        if !operation.reads.is_empty() {
            self.patience.earn(self.tasks.len());
        }
        self.start_reads(index, operation);
    }

    /// Processes the end of a queued request, or performs its reads again.
    pub(super) fn request_ended(&mut self, id: u64, outcome: Outcome) {
        let Some(index) = self.tasks.find(id) else { return };
        match outcome {
            Outcome::Reply(result) => self.request_started(index, Started::Done(result)),
            Outcome::Again(operation) if self.is_over_early(index) => {
                self.go_on_behind_commit(index, operation);
            }
            Outcome::Again(operation) => self.go_on_or_park(index, operation),
        }
    }

    /// Continues a request between two commits, unless the command was cancelled.
    pub(super) fn go_on_behind_commit(&mut self, index: usize, operation: Box<ReadOperation>) {
        if self.is_over_early(index) {
            self.shared.store.abandon(operation);
            self.may_commit = true;
            return self.end_early(index);
        }
        self.request_started(index, Started::Read(operation));
    }

    /// Returns whether a command was cancelled.
    fn is_over_early(&mut self, index: usize) -> bool {
        let Some(task) = self.tasks.get_mut(index) else { return false };
        let called_off = |pending: &Pending| Commands::is_called_off(&task.nexus, pending);
        task.aborted || task.pending.as_ref().is_some_and(called_off)
    }

    /// Ends a cancelled command.
    fn end_early(&mut self, index: usize) {
        let Some(task) = self.tasks.get_mut(index) else { return };
        let is_aborted = task.aborted;
        let response = match task.pending.take().filter(|_| !is_aborted) {
            Some(pending) => match CommandSet::end_early(&self.shared.scsi, &task.nexus, pending) {
                Step::Done(response) => response,
                step => return self.advance(index, step),
            },
            None => Commands::refuse(Refusal::Aborted),
        };
        self.finish(index, response);
    }

    fn resume_command(
        &mut self,
        index: usize,
        result: Result<VolumeReply, block::VolumeError>,
    ) -> Option<Step> {
        let task = self.tasks.get_mut(index)?;
        task.reading = None;
        let pending = task.pending.take()?;
        let nexus = task.nexus.clone();
        Some(CommandSet::resume(&self.shared.scsi, &nexus, pending, result))
    }

    /// Responds to a command, counts it, and notifies those that wait for its end.
    pub(super) fn finish(&mut self, index: usize, response: Response) {
        let Some(task) = self.tasks.remove(index) else { return };
        let ok = response.is_ok;
        let latency = self.shared.clock.now().saturating_sub(task.started);
        task.path.count(task.class, ok, task.bytes, latency);
        if ok {
            task.path.count_zeros(task.zero_bytes);
        }
        let counters = &self.shared.counters;
        if let Some(port) = counters.port_of(self.index, task.nexus.target_port()) {
            port.count(task.class, ok, task.bytes, latency);
        }
        for copy in task.copies.iter().filter(|_| ok) {
            counters.count_copy(&task.nexus.initiator().name, copy);
        }
        let peer = self.peers[task.connection].as_mut();
        if let Some(peer) = peer.filter(|peer| peer.id == task.handle.connection) {
            peer.gathers &= !task.gathers;
            if task.aborted || response.is_aborted {
                // TAS is 0: tasks aborted by another nexus get no response (SPC-4, 7.5.8).
                peer.connection.forget(task.handle);
            } else {
                match response.after {
                    AnswerAfter::Nothing => {
                        let acknowledge = task.sent_as.filter(|_| ok);
                        let response = TaskResponse { acknowledge, ..into_response(response) };
                        peer.connection.respond(task.handle, response);
                    }
                    after => self.respond_after(after, &task, response),
                }
            }
            self.touch(task.connection);
        }
        // Dropping the task drops its watches, which notifies their owners.
    }

    /// Sends a delayed response.
    pub(super) fn respond_late(&mut self, slot: usize, handle: TaskHandle, response: Response) {
        let peer = self.peers[slot].as_mut();
        if let Some(peer) = peer.filter(|peer| peer.id == handle.connection) {
            peer.connection.respond(handle, into_response(response));
            self.touch(slot);
        }
    }
}

fn into_response(response: Response) -> TaskResponse {
    TaskResponse {
        status: response.status,
        sense: response.sense,
        data: response.data_in,
        transfer_bytes_wanted: response.transfer_bytes_wanted,
        acknowledge: None,
    }
}

impl Peer {
    /// Returns the initiator's current LUN map.
    pub(super) fn refresh_luns(&mut self, maps: &dyn LunMaps, initiator: &str) -> &Arc<LunMap> {
        // Read the generation first: a later change is then found at the next command.
        let generation = maps.generation();
        let current = self.luns.take().filter(|(of, _)| *of == generation);
        if current.is_none() {
            self.paths.clear();
        }
        let current = current.unwrap_or_else(|| {
            let luns = maps.lun_map(initiator);
            self.connection.set_luns(luns.clone());
            (generation, luns)
        });
        &self.luns.insert(current).1
    }

    /// Returns the counters of a LUN, and the gates of its volume.
    fn path(
        &mut self,
        shared: &Shared,
        initiator: &str,
        lun: [u8; 8],
    ) -> (Arc<PathCounters>, Gates) {
        if let Some(path) = self.paths.iter().find(|path| path.lun == lun) {
            return (path.counters.clone(), path.gates.clone());
        }
        let luns = self.luns.as_ref().map(|(_, luns)| &**luns);
        let volume = luns.and_then(|luns| attributes_at(luns, lun));
        let counters = shared.counters.path(initiator, volume.map(|volume| volume.id));
        let gates = volume.map(|volume| shared.throttles.gates(volume)).unwrap_or_default();
        // A host may use any number of LUNs without a volume: those are not cached.
        if volume.is_some() {
            let (counters, gates) = (counters.clone(), gates.clone());
            self.paths.push(PeerPath { lun, counters, gates });
        }
        (counters, gates)
    }
}

/// Returns how many bytes of volumes a request concerns.
fn bytes_of(request: &VolumeRequest) -> u64 {
    let bytes = |range: &SectorRange| range.bytes().unwrap_or(0);
    match request {
        VolumeRequest::Read { range, .. }
        | VolumeRequest::Write { range, .. }
        | VolumeRequest::CompareAndWrite { range, .. }
        | VolumeRequest::Zero { range, .. }
        | VolumeRequest::Fill { range, .. } => bytes(range),
        VolumeRequest::Unmap { ranges, .. } => ranges.iter().map(bytes).sum(),
        VolumeRequest::Copy { segments } => {
            segments.iter().filter_map(|segment| segment.count.bytes()).sum()
        }
        VolumeRequest::Flush { .. }
        | VolumeRequest::Extents { .. }
        | VolumeRequest::Space { .. } => 0,
    }
}

#[cfg(test)]
mod tests {
    use block::VolumeId;

    use super::*;

    #[test]
    fn a_copy_counts_what_it_copies() {
        let segment = block::CopySegment {
            source: VolumeId(1),
            source_start: block::Sector(0),
            destination: VolumeId(2),
            destination_start: block::Sector(0),
            count: block::SectorCount(8),
        };
        assert_eq!(bytes_of(&VolumeRequest::Copy { segments: vec![segment; 3] }), 3 * 4096);
        assert_eq!(bytes_of(&VolumeRequest::Flush { volume: VolumeId(1) }), 0);
    }
}
