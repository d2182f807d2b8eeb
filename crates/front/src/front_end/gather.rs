//! Memory for reads: before a read begins, it reserves the memory for its response from its
//! initiator's share, and returns it when the response was sent. A read that finds none for
//! [`data_timeout`](crate::transport::Transports::data_timeout) ends with TASK SET FULL, as a write
//! does: a host can handle that, whereas no response leads to its own timeout and a reset.
//!
//! In addition, a connection runs only one long read at a time (one whose response is gathered from
//! several requests), and none begins while its host does not accept earlier responses.

use std::time::Duration;

use block::VolumeRequest;
use block::request::limits::COMMAND_BYTES_MAX;

use super::FrontEnd;
use crate::command_set::{CommandSet, Commands, Refusal, Step};
use crate::peer::Peer;
use crate::tasks::Task;

/// Reads up to this need no reservation: command windows bound their memory.
const SMALL_BYTES: u64 = 4096;

/// The memory for an extent: the extent itself, and its descriptor in the response to GET LBA
/// STATUS.
const EXTENT_BYTES: u64 = 32 + 16;

impl FrontEnd {
    /// Returns the request if it may run now; otherwise keeps it with its task.
    pub(super) fn admit(
        &mut self,
        index: usize,
        request: VolumeRequest,
        gathers: bool,
    ) -> Option<VolumeRequest> {
        let task = self.tasks.get_mut(index)?;
        if (!gathers || task.gathers) && (task.has_memory || read_bytes(&request) <= SMALL_BYTES) {
            return Some(request);
        }
        if let Some(peer) = self.peers[task.connection].as_mut()
            && !may_begin(task, peer, &request, gathers, self.now)
        {
            task.waiting = Some(request);
            self.waiting.push_back(self.tasks.name(index));
            return None;
        }
        Some(request)
    }

    /// Starts reads that waited, and ends those that were aborted. Returns whether there were any,
    /// because then there may be responses to send.
    pub(super) fn start_waiting(&mut self) -> bool {
        let timeout = self.shared.transports.data_timeout();
        let mut some = false;
        for _ in 0..self.waiting.len() {
            let Some(name) = self.waiting.pop_front() else { break };
            let Some(index) = self.tasks.find(name) else { continue };
            let Some(task) = self.tasks.get_mut(index) else { continue };
            let peer = self.peers[task.connection].as_mut();
            let same = peer.filter(|peer| peer.id == task.handle.connection);
            let is_wanted = !task.aborted && same.is_some();
            let mut is_starved = false;
            if is_wanted && let (Some(peer), Some(request)) = (same, task.waiting.take()) {
                let gathers = task.pending.as_ref().is_some_and(Commands::gathers);
                let begins = may_begin(task, peer, &request, gathers, self.now);
                task.waiting = Some(request);
                is_starved =
                    !begins && task.starved_since.is_some_and(|since| self.now >= since + timeout);
                if !begins && !is_starved {
                    self.waiting.push_back(name);
                    continue;
                }
            }
            some = true;
            let slot = task.connection;
            let step = task.waiting.take().zip(task.pending.take());
            match step {
                _ if is_starved => self.finish(index, Commands::refuse(Refusal::NoMemory)),
                Some((_, pending))
                    if is_wanted
                        && CommandSet::is_barred_now(&self.shared.scsi, &task.nexus, &pending) =>
                {
                    self.finish(index, Commands::refuse(Refusal::Barred));
                }
                Some((request, pending)) if is_wanted => {
                    task.bytes = 0; // counted again when it starts
                    self.advance(index, Step::Request { request, pending });
                }
                _ => self.finish(index, Commands::refuse(Refusal::Aborted)),
            }
            self.touch(slot);
        }
        some
    }
}

/// Returns whether a read may begin now; it then has its memory.
fn may_begin(
    task: &mut Task,
    peer: &mut Peer,
    request: &VolumeRequest,
    gathers: bool,
    now: Duration,
) -> bool {
    let is_next = gathers && !task.gathers;
    if is_next && (peer.gathers || peer.connection.is_output_full()) {
        return false;
    }
    // A read in pieces keeps all of them, or one at a time; no piece is longer than the first.
    let bytes = if gathers { COMMAND_BYTES_MAX } else { read_bytes(request) };
    if bytes > SMALL_BYTES && !task.has_memory {
        task.has_memory = peer.connection.reserve(task.handle, bytes as usize);
        if !task.has_memory {
            task.starved_since.get_or_insert(now);
            return false;
        }
        task.starved_since = None;
    }
    if is_next {
        (peer.gathers, task.gathers) = (true, true);
    }
    true
}

/// Returns how much memory it holds until its response was sent.
fn read_bytes(request: &VolumeRequest) -> u64 {
    match request {
        VolumeRequest::Read { range, .. } => range.bytes().unwrap_or(0),
        VolumeRequest::Extents { limit, .. } => *limit as u64 * EXTENT_BYTES,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::{LbaExtent, SectorRange, VolumeId};

    #[test]
    fn extents_take_memory_like_reads() {
        let (volume, range) = (VolumeId(1), SectorRange::new(0, 8));
        assert_eq!(read_bytes(&VolumeRequest::Read { volume, range }), 4096);
        assert_eq!(read_bytes(&VolumeRequest::Extents { volume, range, limit: 1000 }), 48_000);
        assert_eq!(read_bytes(&VolumeRequest::Flush { volume }), 0);
        assert!(size_of::<LbaExtent>() as u64 + 16 <= EXTENT_BYTES);
    }
}
