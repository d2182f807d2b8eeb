//! Task management, resets, and the beginning and end of sessions: what spans threads.
//!
//! A task can't be called back once the store has it, and does not need to be: it ends by itself
//! within a commit or a read. So to abort tasks is to mark them, and to wait: the request is
//! answered when the last of them has ended, on whichever thread. Who waits is told by a [`Watch`],
//! of which each task holds a share: when the last share is dropped, a message is sent.

use std::collections::HashSet;
use std::sync::Arc;

use block::LunMap;

use super::FrontEnd;
use crate::command_set::{AnswerAfter, CommandSet, Response};
use crate::luns::volume_at;
use crate::mailbox::{AbortWhat, AbortedBy, Message, Watch};
use crate::sessions::Session;
use crate::tasks::Task;
use crate::transport::{
    ConnectionId, Ended, ManagementFunction, ManagementOutcome, Memory, NexusInfo, TaskHandle,
    TaskManagement,
};

/// What a thread wanted to know the end of tasks for.
pub(super) enum Purpose {
    /// To answer a task management request.
    Answer { slot: usize, request: Box<TaskManagement>, luns: Arc<LunMap> },
    /// To answer a command.
    Respond { slot: usize, handle: TaskHandle, response: Box<Response> },
    /// To have a connection enter its session.
    Enter(ConnectionId),
    /// To end a session, and give back what its last connection had taken of the memory for data.
    EndSession(Arc<Session>, Memory),
    /// To give that back: the session goes on.
    Release(#[expect(dead_code, reason = "it is given back when it is dropped")] Memory),
}

impl FrontEnd {
    /// A connection enters its session, and the first one begins it: but not before the session
    /// whose place it takes has ended with all of its tasks, because a host that logs in again must
    /// not see an old command take effect.
    pub(super) fn enter_session(&mut self, slot: usize, info: Arc<NexusInfo>) {
        let shared = self.shared.clone();
        let Some(peer) = self.peers[slot].as_mut() else { return };
        if info.discovery {
            return;
        }
        let luns = peer.refresh_luns(&*shared.luns, &info.host_name).clone();
        let mut sessions = shared.sessions.lock();
        // Under the lock: what has ended must not begin once more.
        if peer.connection.is_closed() {
            return;
        }
        if let Some(session) = sessions.by_id.get(&info.session) {
            peer.session = Some(session.clone());
            return;
        }
        if let Some(predecessor) = sessions.predecessor(&info) {
            peer.held = Some(info);
            sessions.wait_for_end(predecessor, self.index, peer.id);
            return;
        }
        let nexus = shared.scsi.enter(&info, &luns);
        tracing::debug!("{} logged in at portal {}", info.host_name, info.target_port);
        let session = Arc::new(Session::new(info.clone(), nexus, peer.connection.peer()));
        sessions.by_id.insert(info.session, session.clone());
        peer.session = Some(session);
    }

    /// A connection enters its session in the place of another one, whose tasks end before: as
    /// with sessions, a host must not see an old command take effect.
    pub(super) fn enter_after(&mut self, slot: usize, info: Arc<NexusInfo>, old: ConnectionId) {
        let Some(peer) = self.peers[slot].as_mut() else { return };
        let id = peer.id;
        let session = info.session;
        peer.held = Some(info);
        let watch = self.watch(Purpose::Enter(id));
        self.abort_everywhere(&AbortWhat::Connection(session, old), None, &watch);
    }

    /// Ends tasks of all threads.
    fn abort_everywhere(&mut self, what: &AbortWhat, by: Option<AbortedBy>, watch: &Arc<Watch>) {
        self.abort_here(what, by, watch);
        for (index, mailbox) in self.shared.mailboxes.iter().enumerate() {
            if index != self.index {
                mailbox.post(Message::Abort(what.clone(), by, watch.clone()));
            }
        }
    }

    /// What a held connection waited for has happened.
    pub(super) fn resume_session(&mut self, id: ConnectionId) {
        let Some(slot) = self.places.get(&id).copied() else { return };
        if let Some(info) = self.peers[slot].as_mut().and_then(|peer| peer.held.take()) {
            self.enter_session(slot, info);
            self.touch(slot);
        }
    }

    /// A watch that tells this thread.
    fn watch(&mut self, purpose: Purpose) -> Arc<Watch> {
        let id = self.next_watch;
        self.next_watch += 1;
        self.watched.insert(id, purpose);
        Watch::new(self.shared.mailboxes[self.index].clone(), id)
    }

    /// A connection has ended: its tasks are aborted, and its session ends after them.
    pub(super) fn connection_ended(&mut self, ended: Ended) {
        for connection in &ended.wake {
            self.shared.wake_connection(*connection);
        }
        // By its name: the last connection may be one that never came to enter it.
        let session =
            ended.session.and_then(|id| self.shared.sessions.lock().by_id.get(&id).cloned());
        let ends = session.as_ref().map(|session| session.info.session);
        let purpose = match session {
            Some(session) => Purpose::EndSession(session, ended.memory),
            None => Purpose::Release(ended.memory),
        };
        let watch = self.watch(purpose);
        // Other connections that have ended may have left tasks, on any thread.
        if let Some(session) = ends {
            self.abort_everywhere(&AbortWhat::Session(session), None, &watch);
        }
        self.tasks.abort(&ended.tasks.into_iter().collect(), &watch);
    }

    fn end_session(&mut self, session: &Session) {
        tracing::debug!("the session of {} ended", session.info.host_name);
        let unsaved = self.shared.scsi.leave(&session.nexus);
        self.shared.saver.save_all(unsaved);
        self.shared.ended.note(session, self.shared.clock.wall_ms());
        self.shared.sessions.lock().end(session.info.session, &self.shared.mailboxes);
    }

    /// Starts a task management request.
    pub(super) fn manage(&mut self, slot: usize, request: TaskManagement) {
        let shared = self.shared.clone();
        let Some(peer) = self.peers[slot].as_mut() else { return };
        let Some(nexus) = peer.session.as_ref().map(|session| session.nexus.clone()) else {
            // It has no tasks whose end a logout would wait for.
            let outcome = match request.function {
                ManagementFunction::LogoutConnection { .. } | ManagementFunction::LogoutSession => {
                    ManagementOutcome::Complete
                }
                _ => ManagementOutcome::Rejected,
            };
            peer.connection.respond_management(request.handle, outcome);
            return self.touch(slot);
        };
        let luns = peer.refresh_luns(&*shared.luns, nexus.initiator().name.as_str()).clone();
        tracing::debug!("{} asks for {}", nexus.initiator().name, request.function.name());
        let volume = volume_at(&luns, request.lun);
        let what = match (request.function, volume) {
            (ManagementFunction::AbortTask { .. }, _) => None,
            // What the initiator does not see is not its to reset (RFC 7143, 11.5.1: access
            // controls).
            (ManagementFunction::TargetWarmReset, _) => {
                let seen = luns.luns.values().map(|volume| volume.id);
                Some(AbortWhat::Volumes(Arc::new(seen.collect())))
            }
            (ManagementFunction::LogoutConnection { connection }, _) => {
                Some(AbortWhat::Connection(request.session, connection))
            }
            (ManagementFunction::LogoutSession, _) => Some(AbortWhat::Session(request.session)),
            // All others are about a logical unit.
            (_, None) => {
                let outcome = ManagementOutcome::LunDoesNotExist;
                peer.connection.respond_management(request.handle, outcome);
                return self.touch(slot);
            }
            (ManagementFunction::AbortTaskSet | ManagementFunction::ClearTaskSet, Some(volume)) => {
                Some(AbortWhat::OfSession(request.session, volume))
            }
            (_, Some(volume)) => Some(AbortWhat::Volumes(Arc::new([volume].into()))),
        };
        let (function, session, handle) = (request.function, request.session, request.handle);
        let watch = self.watch(Purpose::Answer { slot, request: Box::new(request), luns });
        if let ManagementFunction::AbortTask { task } = function {
            self.tasks.abort(&[task].into(), &watch);
        }
        if let Some(what) = what {
            self.abort_everywhere(&what, Some(AbortedBy { session, handle }), &watch);
        }
    }

    /// Ends tasks of this thread's connections; of the session in which it was asked for, those
    /// that came before. Those that were aborted before, or whose connection has ended, are waited
    /// for as well: after the answer nothing of them takes effect (SAM-5, 7.3). What is under way
    /// is known by the volume that it began on, what is not by what its host sees now.
    pub(super) fn abort_here(
        &mut self,
        what: &AbortWhat,
        by: Option<AbortedBy>,
        watch: &Arc<Watch>,
    ) {
        let shared = self.shared.clone();
        let volumes = self.tasks.volumes();
        let mut affected: HashSet<TaskHandle> = HashSet::new();
        for slot in 0..self.peers.len() {
            let Some(peer) = self.peers[slot].as_mut() else { continue };
            // One that has not entered its session yet may have commands already.
            let Some(id) = peer.connection.session() else { continue };
            let Some(name) = peer.connection.host_name().map(str::to_owned) else { continue };
            let luns = peer.refresh_luns(&*shared.luns, &name).clone();
            let mut ends = |task: TaskHandle, lun: [u8; 8]| {
                let volume = volumes.get(&task).copied().or_else(|| volume_at(&luns, lun));
                what.has(volume, id, task.connection)
            };
            affected.extend(match by.filter(|by| by.session == id) {
                Some(by) => peer.connection.abort_before(by.handle, &mut ends),
                None => peer.connection.abort(&mut ends),
            });
            self.touch(slot);
        }
        // What is not its connection's any more may have an effect yet.
        let is_meant = |task: &Task| {
            let connection = task.handle.connection;
            what.has(task.volume, task.session, connection) || what.has_left(task.session)
        };
        self.tasks.watch_aborted(is_meant, watch);
        self.tasks.abort(&affected, watch);
    }

    /// All that a watch waited for has ended.
    pub(super) fn watched(&mut self, id: u64) {
        match self.watched.remove(&id) {
            Some(Purpose::EndSession(session, memory)) => {
                drop(memory);
                self.end_session(&session);
            }
            Some(Purpose::Enter(id)) => self.resume_session(id),
            Some(Purpose::Answer { slot, request, luns }) => self.answer(slot, &request, &luns),
            Some(Purpose::Respond { slot, handle, response }) => {
                self.respond_late(slot, handle, *response);
            }
            Some(Purpose::Release(_)) | None => {}
        }
    }

    /// Answers a command when those tasks of all threads have ended that are under way now. The
    /// command itself is in no table any more, so that two of these never wait for each other.
    pub(super) fn respond_after(&mut self, what: AnswerAfter, task: &Task, response: Response) {
        let (slot, handle) = (task.connection, task.handle);
        let response = Box::new(response);
        let watch = self.watch(Purpose::Respond { slot, handle, response });
        self.tasks.watch(what, &watch);
        for (index, mailbox) in self.shared.mailboxes.iter().enumerate() {
            if index != self.index {
                mailbox.post(Message::WatchTasks(what, watch.clone()));
            }
        }
    }

    fn answer(&mut self, slot: usize, request: &TaskManagement, luns: &Arc<LunMap>) {
        let unsaved = match request.function {
            ManagementFunction::LogicalUnitReset => self.shared.scsi.reset_unit(luns, request.lun),
            ManagementFunction::TargetWarmReset => self.shared.scsi.reset_all(luns),
            _ => Vec::new(),
        };
        self.shared.saver.save_all(unsaved);
        let peer = self.peers[slot].as_mut();
        if let Some(peer) = peer.filter(|peer| peer.id == request.handle.connection) {
            peer.connection.respond_management(request.handle, ManagementOutcome::Complete);
            self.touch(slot);
        }
    }
}
