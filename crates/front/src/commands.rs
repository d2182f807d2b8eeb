//! A command's way: SCSI, the store, SCSI again, and the answer.

use std::sync::Arc;
use std::time::Duration;

use block::{LunMap, SectorRange, VolumeId, VolumeReply, VolumeRequest};
use scsi::{AnswerAfter, Response, Sense, Status, Step};
use store::{Outcome, ReadOperation, Started, Token};

use super::counters::{Class, PathCounters};
use super::front_end::FrontEnd;
use super::luns::{attributes_at, data_out_bytes, verified_bytes, volume_at};
use super::peer::{Peer, PeerPath};
use super::shared::Shared;
use super::tasks::Task;
use super::throttle::Bucket;
use super::transport::{Command, TaskHandle, TaskResponse};

/// THIRD-PARTY COPY OUT: WRITE USING TOKEN is one of these (SPC-4, 6.4; SBC-4, 5.56).
const THIRD_PARTY_COPY_OUT: u8 = 0x83;

impl FrontEnd {
    /// Starts a command.
    pub(super) fn execute(&mut self, slot: usize, command: Command) {
        let shared = self.shared.clone();
        let Some(peer) = self.peers[slot].as_mut() else { return };
        let outstanding = peer.connection.outstanding();
        let counted = peer.session.as_ref().inspect(|session| session.count(outstanding));
        let Some(nexus) = counted.map(|session| session.nexus.clone()) else {
            // A discovery session carries none, and is refused them before they come here.
            return peer.connection.forget(command.task);
        };
        let luns = peer.refresh_luns(&*shared.luns, nexus.initiator().name.as_str()).clone();
        let cdb = scsi::Cdb::new(command.cdb.bytes());
        let (path, bucket) = peer.path(&shared, &nexus.initiator().name, command.lun, &luns);
        let volume = volume_at(&luns, command.lun);
        path.count_reserve(cdb.opcode());
        let index = self.tasks.insert(Task {
            connection: slot,
            handle: command.task,
            nexus: nexus.clone(),
            volume,
            expected_out_bytes: command.expected_out_bytes,
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
            class: Class::of_opcode(cdb.opcode()),
            path,
            bytes: 0,
            zero_bytes: 0,
            copies: Vec::new(),
            started: shared.clock.now(),
        });
        if command.is_unsupported {
            return self.finish(index, Response::check(Sense::INVALID_MESSAGE));
        }
        let expected_out = command.expected_out_bytes;
        let moved = u64::from(command.expected_in_bytes.max(command.expected_out_bytes));
        let moved = moved.max(verified_bytes(&cdb, command.lun, &luns));
        let command = scsi::Command {
            lun: command.lun,
            cdb,
            data_out: command.data_out,
            expected_in_bytes: u64::from(command.expected_in_bytes),
        };
        let command = match bucket {
            None => command,
            Some(bucket) => match self.throttle(index, bucket, moved, command) {
                Some(command) => command,
                None => return,
            },
        };
        let step = shared.begin(&nexus, &luns, command, expected_out);
        self.advance(index, step);
    }

    pub(super) fn token(&self, index: usize) -> Token {
        Token { sink: self.sink, id: self.tasks.name(index) }
    }

    /// Does a command's next steps, until it waits or is over, or this turn has done enough.
    pub(super) fn advance(&mut self, index: usize, step: Step) {
        self.go_on(index, step, false);
    }

    /// The same. `is_next`: the step was parked, and is the next that may be done.
    pub(super) fn go_on(&mut self, index: usize, mut step: Step, mut is_next: bool) {
        loop {
            let (request, pending) = match step {
                Step::Done(response) => return self.finish(index, response),
                Step::Persist { volume, pending } => return self.persist(index, volume, pending),
                Step::Request { request, pending } => (request, pending),
            };
            let token = self.token(index);
            let Some(task) = self.tasks.get_mut(index) else { return };
            if task.aborted || pending.is_called_off(&task.nexus) {
                // Between two requests of one command: the rest of it is not wanted any more.
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
            let gathers = pending.gathers();
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
            match self.shared.store.start(request, token) {
                Started::Done(result) => match self.resume_scsi(index, result) {
                    Some(next) => step = next,
                    None => return,
                },
                waits => return self.wait(index, waits),
            }
        }
    }

    /// A command waits until reservations are durable.
    fn persist(&mut self, index: usize, volume: VolumeId, pending: scsi::Pending) {
        let name = self.tasks.name(index);
        let Some(task) = self.tasks.get_mut(index) else { return };
        task.pending = Some(pending);
        self.shared.saver.save(volume, self.index, name);
    }

    /// They are, or could not be made so.
    pub(super) fn reservations_saved(&mut self, name: u64) {
        let Some(index) = self.tasks.find(name) else { return };
        let pending = self.tasks.get_mut(index).and_then(|task| task.pending.take());
        if let Some(pending) = pending {
            let step = self.shared.scsi.resume_saved(pending);
            self.advance(index, step);
        }
    }

    /// Goes on after the store has looked at a request (again).
    pub(super) fn request_started(&mut self, index: usize, started: Started) {
        match started {
            Started::Done(result) => {
                if let Some(step) = self.resume_scsi(index, result) {
                    self.advance(index, step);
                }
            }
            waits => self.wait(index, waits),
        }
    }

    /// A command's request waits for the device: for reads of its own, or for a commit.
    fn wait(&mut self, index: usize, started: Started) {
        self.patience.earn(self.tasks.len());
        if let Started::Read(operation) = started {
            self.start_reads(index, operation);
        }
    }

    /// A queued request has ended, or must be read for again.
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

    /// Goes on with a request between two commits: the rest of it may not be wanted any more.
    pub(super) fn go_on_behind_commit(&mut self, index: usize, operation: Box<ReadOperation>) {
        if self.is_over_early(index) {
            self.shared.store.abandon(operation);
            return self.end_early(index);
        }
        self.request_started(index, Started::Read(operation));
    }

    /// Whether the rest of a command is not wanted any more.
    fn is_over_early(&mut self, index: usize) -> bool {
        let Some(task) = self.tasks.get_mut(index) else { return false };
        let called_off = |pending: &scsi::Pending| pending.is_called_off(&task.nexus);
        task.aborted || task.pending.as_ref().is_some_and(called_off)
    }

    /// Ends such a command.
    fn end_early(&mut self, index: usize) {
        let Some(task) = self.tasks.get_mut(index) else { return };
        let is_aborted = task.aborted;
        let response = match task.pending.take().filter(|_| !is_aborted) {
            Some(pending) => match self.shared.scsi.end_early(&task.nexus, pending) {
                Step::Done(response) => response,
                step => return self.advance(index, step),
            },
            None => Response::with_status(Status::TaskAborted),
        };
        self.finish(index, response);
    }

    fn resume_scsi(
        &mut self,
        index: usize,
        result: Result<VolumeReply, block::VolumeError>,
    ) -> Option<Step> {
        let task = self.tasks.get_mut(index)?;
        task.reading = None;
        let pending = task.pending.take()?;
        let nexus = task.nexus.clone();
        Some(self.shared.scsi.resume(&nexus, pending, result))
    }

    /// Answers a command, counts it, and tells who waited for its end.
    pub(super) fn finish(&mut self, index: usize, response: Response) {
        let Some(task) = self.tasks.remove(index) else { return };
        let ok = matches!(response.status, Status::Good | Status::ConditionMet);
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
            if task.aborted || response.status == Status::TaskAborted {
                // TAS is 0: what others abort is not answered (SPC-4, 7.5.8).
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
        // Dropping the task drops its watches: who waits is told by that.
    }

    /// Sends an answer that had to wait.
    pub(super) fn respond_late(&mut self, slot: usize, handle: TaskHandle, response: Response) {
        let peer = self.peers[slot].as_mut();
        if let Some(peer) = peer.filter(|peer| peer.id == handle.connection) {
            peer.connection.respond(handle, into_response(response));
            self.touch(slot);
        }
    }
}

impl Shared {
    /// The first step of a command, whose host has announced so many bytes of data. What is gone is
    /// forgotten before one that may come with a token: a token ends with the volume that it was
    /// made of, and not some time later.
    pub fn begin(
        &self,
        nexus: &Arc<scsi::Nexus>,
        luns: &Arc<LunMap>,
        command: scsi::Command,
        expected_out_bytes: u32,
    ) -> Step {
        // How much data was asked for depends on what was at the LUN when the command came. If that
        // has changed since, the rest was not asked for, and must not count as written: the host
        // sends the command again.
        let limit = self.transports.data_out_bytes_max();
        let most = u64::from(expected_out_bytes.min(limit));
        let takes = data_out_bytes(luns, command.lun, command.cdb.bytes()).unwrap_or(0);
        if (command.data_out.len() as u64) < takes.min(most) {
            return Step::Done(Response::with_status(Status::Busy));
        }
        if command.cdb.opcode() == THIRD_PARTY_COPY_OUT {
            self.forget_gone();
        }
        self.scsi.execute(nexus, luns, command)
    }
}

fn into_response(response: Response) -> TaskResponse {
    TaskResponse {
        status: response.status as u8,
        sense: response.sense_bytes(),
        data: response.data_in,
        transfer_bytes_wanted: response.transfer_bytes_wanted,
        acknowledge: None,
    }
}

impl Peer {
    /// What the initiator sees now.
    pub(super) fn refresh_luns(
        &mut self,
        maps: &dyn super::LunMaps,
        initiator: &str,
    ) -> &Arc<LunMap> {
        // First the generation: a change behind it is found at the next command.
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

    /// The counters of a LUN, and what its volume is limited by.
    fn path(
        &mut self,
        shared: &Shared,
        initiator: &str,
        lun: [u8; 8],
        luns: &LunMap,
    ) -> (Arc<PathCounters>, Option<Arc<Bucket>>) {
        if let Some(path) = self.paths.iter().find(|path| path.lun == lun) {
            return (path.counters.clone(), path.bucket.clone());
        }
        let volume = attributes_at(luns, lun);
        let counters = shared.counters.path(initiator, volume.map(|volume| volume.id));
        let bucket = volume.and_then(|volume| shared.throttles.of(volume.id, volume.limits));
        // LUNs without a volume are as many as a host likes to name: those are not kept.
        if volume.is_some() {
            let (counters, bucket) = (counters.clone(), bucket.clone());
            self.paths.push(PeerPath { lun, counters, bucket });
        }
        (counters, bucket)
    }
}

/// How many bytes of volumes a request is about.
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
