//! Long reads, whose answer is gathered from several requests: one at a time on a connection, and
//! none while its host does not take what it has asked for. So what long reads hold is bounded by
//! the number of connections, whatever their windows.

use block::VolumeRequest;
use scsi::{Response, Status, Step};

use super::front::FrontEnd;

impl FrontEnd {
    /// Gives a request back if it may be run now, and keeps it with its task if it has to wait.
    pub(super) fn admit(
        &mut self,
        index: usize,
        request: VolumeRequest,
        gathers: bool,
    ) -> Option<VolumeRequest> {
        let task = self.tasks.get_mut(index)?;
        if !gathers || task.gathers {
            return Some(request);
        }
        if let Some(peer) = self.peers[task.connection].as_mut() {
            if peer.gathers || peer.connection.is_output_full() {
                task.waiting = Some(request);
                self.waiting.push_back(self.tasks.name(index));
                return None;
            }
            (peer.gathers, task.gathers) = (true, true);
        }
        Some(request)
    }

    /// Goes on with long reads that waited, and ends those that were aborted. Returns whether there
    /// were any, as then there may be answers to send.
    pub(super) fn start_waiting(&mut self) -> bool {
        let mut some = false;
        for _ in 0..self.waiting.len() {
            let Some(name) = self.waiting.pop_front() else { break };
            let Some(index) = self.tasks.find(name) else { continue };
            let Some(task) = self.tasks.get_mut(index) else { continue };
            let peer = self.peers[task.connection].as_ref();
            let same = peer.filter(|peer| peer.id == task.handle.connection);
            let blocked =
                |peer: &super::sockets::Peer| peer.gathers || peer.connection.is_output_full();
            if !task.aborted && same.is_some_and(blocked) {
                self.waiting.push_back(name);
                continue;
            }
            some = true;
            let (aborted, slot) = (task.aborted || same.is_none(), task.connection);
            let step = task.waiting.take().zip(task.pending.take());
            match step {
                Some((request, pending)) if !aborted => {
                    task.bytes = 0; // counted again when it starts
                    self.advance(index, Step::Request { request, pending });
                }
                _ => self.finish(index, Response::with_status(Status::TaskAborted)),
            }
            self.touch(slot);
        }
        some
    }
}
