//! Task management, resets, and the beginning and end of sessions, which span threads.
//!
//! A task can't be recalled from the store, and need not be: it ends by itself within a commit or a
//! read. So aborting tasks means marking them and waiting: the response is sent when the last of
//! them has ended, on any thread. Each task holds a reference to a [`Watch`]; when the last
//! reference is dropped, the watch notifies the thread that waits.

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

/// Why a thread waits for the end of tasks.
pub(super) enum Purpose {
    /// Respond to a task management request.
    Answer { slot: usize, request: Box<TaskManagement>, luns: Arc<LunMap> },
    /// Respond to a command.
    Respond { slot: usize, handle: TaskHandle, response: Box<Response> },
    /// Let a connection join its session.
    Enter(ConnectionId),
    /// End a session, and return the memory for data of its last connection.
    EndSession(Arc<Session>, Memory),
    /// Return the memory for data; the session continues.
    Release(#[expect(dead_code, reason = "it is given back when it is dropped")] Memory),
}

impl FrontEnd {
    /// Lets a connection join its session, which begins with the first connection; but not before
    /// the session that it replaces has ended with all its tasks, because a host that logs in again
    /// must not see an old command take effect.
    pub(super) fn enter_session(&mut self, slot: usize, info: Arc<NexusInfo>) {
        let shared = self.shared.clone();
        let Some(peer) = self.peers[slot].as_mut() else { return };
        if info.discovery {
            return;
        }
        let luns = peer.refresh_luns(&*shared.luns, &info.host_name).clone();
        let mut sessions = shared.sessions.lock();
        // Checked under the lock, so that an ended session does not begin again.
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

    /// Lets a connection join its session in place of another one, whose tasks end first: a host
    /// must not see an old command take effect.
    pub(super) fn enter_after(&mut self, slot: usize, info: Arc<NexusInfo>, old: ConnectionId) {
        let Some(peer) = self.peers[slot].as_mut() else { return };
        let id = peer.id;
        let session = info.session;
        peer.held = Some(info);
        let watch = self.watch(Purpose::Enter(id));
        self.abort_everywhere(&AbortWhat::Connection(session, old), None, &watch);
    }

    /// Aborts tasks on all threads.
    fn abort_everywhere(&mut self, what: &AbortWhat, by: Option<AbortedBy>, watch: &Arc<Watch>) {
        self.abort_here(what, by, watch);
        for (index, mailbox) in self.shared.mailboxes.iter().enumerate() {
            if index != self.index {
                mailbox.post(Message::Abort(what.clone(), by, watch.clone()));
            }
        }
    }

    /// Resumes a held connection.
    pub(super) fn resume_session(&mut self, id: ConnectionId) {
        let Some(slot) = self.places.get(&id).copied() else { return };
        if let Some(info) = self.peers[slot].as_mut().and_then(|peer| peer.held.take()) {
            self.enter_session(slot, info);
            self.touch(slot);
        }
    }

    /// Creates a watch that notifies this thread.
    fn watch(&mut self, purpose: Purpose) -> Arc<Watch> {
        let id = self.next_watch;
        self.next_watch += 1;
        self.watched.insert(id, purpose);
        Watch::new(self.shared.mailboxes[self.index].clone(), id)
    }

    /// Aborts the tasks of a closed connection, and then ends its session if this was the last one.
    pub(super) fn connection_ended(&mut self, ended: Ended) {
        for connection in &ended.wake {
            self.shared.wake_connection(*connection);
        }
        // Looked up by id, because the last connection may never have joined it.
        let session =
            ended.session.and_then(|id| self.shared.sessions.lock().by_id.get(&id).cloned());
        let ends = session.as_ref().map(|session| session.info.session);
        let purpose = match session {
            Some(session) => Purpose::EndSession(session, ended.memory),
            None => Purpose::Release(ended.memory),
        };
        let watch = self.watch(purpose);
        // Other closed connections may have left tasks, on any thread.
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
            // A discovery session has no tasks for a logout to wait for.
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
        tracing::debug!("{} requests {}", nexus.initiator().name, request.function.name());
        let volume = volume_at(&luns, request.lun);
        let what = match (request.function, volume) {
            (ManagementFunction::AbortTask { .. }, _) => None,
            // An initiator can't reset what it does not see (RFC 7143, 11.5.1: access controls).
            (ManagementFunction::TargetWarmReset, _) => {
                let seen = luns.luns.values().map(|volume| volume.id);
                Some(AbortWhat::Volumes(Arc::new(seen.collect())))
            }
            (ManagementFunction::LogoutConnection { connection }, _) => {
                Some(AbortWhat::Connection(request.session, connection))
            }
            (ManagementFunction::LogoutSession, _) => Some(AbortWhat::Session(request.session)),
            // All other functions concern a logical unit.
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

    /// Aborts tasks of this thread's connections: in the session of the request, only those that
    /// arrived before it. Also waits for tasks that were aborted before, or whose connection has
    /// closed: after the response none of them takes effect (SAM-5, 7.3). A task in progress is
    /// selected by the volume it began on, a command that has not begun by its host's current LUN
    /// map.
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
            // A connection that has not joined its session may already have commands.
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
        // A task of a closed connection may still take effect.
        let is_meant = |task: &Task| {
            let connection = task.handle.connection;
            what.has(task.volume, task.session, connection) || what.has_left(task.session)
        };
        self.tasks.watch_aborted(is_meant, watch);
        self.tasks.abort(&affected, watch);
    }

    /// Handles a watch whose tasks have all ended.
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

    /// Responds to a command when the tasks that are now in progress on all threads, and selected
    /// by `what`, have ended. The command itself is no longer in a table, so two of these never
    /// wait for each other.
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
