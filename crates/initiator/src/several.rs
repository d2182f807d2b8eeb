//! Several connections of a session (RFC 7143, 4.2.2.1, 6.3.4, 7.2.1 and 11.5.1).
//!
//! A connection that has failed and was logged out, explicitly or by one that replaces it, has lost
//! requests whose numbers the target waits for. Another connection fills each of these gaps: by
//! sending the same request again, with its number and its tag, or by an ABORT TASK that refers to
//! it.

use crate::event::Itt;
use crate::initiator::Initiator;
use crate::requests::Busy;
use crate::task::{Ends, Function, Task};
use crate::window::before;

impl Initiator {
    /// Returns whether the target has acknowledged, on this connection, a command of a failed
    /// connection. Also true for a command that is not outstanding there.
    pub fn is_received(&self, failed: &Initiator, command: Itt) -> bool {
        match (failed.command_of(command), self.told) {
            (Some(task), Some((expected, _))) => before(task.cmd_sn, expected),
            (Some(_), None) => false,
            (None, _) => true,
        }
    }

    /// Sends a command of a connection that has failed and was logged out again, with its number
    /// and its tag. The target ignores it if it has received it before.
    ///
    /// # Errors
    /// [`Busy`], and nothing is sent.
    pub fn retry(&mut self, failed: &Initiator, command: Itt) -> Result<(), Busy> {
        self.ready()?;
        let task = failed.command_of(command).ok_or(Busy::NoSuchTask)?;
        let Task { lun, cmd_sn, immediate, attribute, expected_in, .. } = *task;
        let (cdb, out) = (task.cdb.clone(), task.out.clone());
        let again = Task::new(lun, cdb, attribute, cmd_sn, immediate, out, expected_in);
        self.send_command(command.0, again);
        Ok(())
    }

    /// Requests the abort of a command of a connection that has failed and was logged out. Returns
    /// the tag of the request.
    ///
    /// # Errors
    /// [`Busy`], and nothing is sent.
    pub fn abort_lost(&mut self, failed: &Initiator, command: Itt) -> Result<Itt, Busy> {
        self.ready()?;
        let task = failed.command_of(command).ok_or(Busy::NoSuchTask)?;
        Ok(self.abort_task(command, task.lun, task.cmd_sn))
    }

    /// Returns the commands of this connection that a request on another connection of the session,
    /// with response 0, has aborted, and which will never get a response (RFC 7143, 11.5.1: those
    /// that were sent before it).
    pub fn ended_elsewhere(&mut self, request: Itt, function: Function, lun: [u8; 8]) -> Vec<Itt> {
        let ended = self.ended_by(request.0, Ends::Set(function), lun, 0);
        self.conclude(&ended);
        ended
    }
}
