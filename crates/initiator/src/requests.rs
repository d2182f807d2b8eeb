//! Requests of a host: commands, task management, pings, text, logout (RFC 7143, 11.3, 11.5, 11.10,
//! 11.14, 11.18).

use crate::event::Itt;
use crate::initiator::{Initiator, Phase};
use crate::pdu::{Bhs, FINAL, IMMEDIATE, NO_TAG, opcode};
use crate::task::{Attribute, Ends, Function, LogoutReason, Pending, Task};
use crate::text;

const READ: u8 = 0x40;
const WRITE: u8 = 0x20;

/// The reason why a request can't be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Busy {
    /// It is not logged in, or is logging out.
    #[error("not logged in")]
    NotLoggedIn,
    /// The command window is closed (RFC 7143, 4.2.2.1).
    #[error("the command window is closed")]
    WindowClosed,
    /// The task to abort is not outstanding.
    #[error("no such task")]
    NoSuchTask,
}

impl Initiator {
    /// Sends a command. `data_out` is all of its data; `expected_in_bytes` is the most data it may
    /// return. A CDB of up to 16 bytes is padded, a longer one continues in an additional header
    /// segment.
    ///
    /// # Errors
    /// [`Busy`], and nothing is sent.
    ///
    /// # Panics
    /// If both directions have data (bidirectional commands are not supported), or if the CDB is
    /// longer than 260 bytes.
    pub fn command(
        &mut self,
        lun: [u8; 8],
        cdb: &[u8],
        attribute: Attribute,
        data_out: Option<Vec<u8>>,
        expected_in_bytes: u32,
    ) -> Result<Itt, Busy> {
        self.ready()?;
        if self.window.room() == 0 {
            return Err(Busy::WindowClosed);
        }
        let out = data_out.unwrap_or_default();
        Ok(self.start(lun, cdb, attribute, out, expected_in_bytes, false))
    }

    /// Sends an immediate command, which does not count for the window and precedes others.
    ///
    /// # Errors
    /// [`Busy::NotLoggedIn`].
    ///
    /// # Panics
    /// As [`Initiator::command`].
    pub fn immediate_command(
        &mut self,
        lun: [u8; 8],
        cdb: &[u8],
        attribute: Attribute,
        data_out: Option<Vec<u8>>,
        expected_in_bytes: u32,
    ) -> Result<Itt, Busy> {
        self.ready()?;
        let out = data_out.unwrap_or_default();
        Ok(self.start(lun, cdb, attribute, out, expected_in_bytes, true))
    }

    fn start(
        &mut self,
        lun: [u8; 8],
        cdb: &[u8],
        attribute: Attribute,
        out: Vec<u8>,
        expected_in: u32,
        immediate: bool,
    ) -> Itt {
        assert!(out.is_empty() || expected_in == 0, "data in both directions");
        let itt = self.window.take_itt();
        let cmd_sn = if immediate { self.window.next() } else { self.window.take() };
        let cdb = cdb.to_vec();
        self.send_command(itt, Task::new(lun, cdb, attribute, cmd_sn, immediate, out, expected_in));
        Itt(itt)
    }

    /// Sends the command PDU of a task that was not sent yet, and its unsolicited data.
    pub(crate) fn send_command(&mut self, itt: u32, mut task: Task) {
        let (inline, unasked) = self.unasked(task.out.len());
        let (writes, reads) = (!task.out.is_empty(), task.expected_in > 0);
        let mut flags = task.attribute as u8;
        flags |= if unasked > inline { 0 } else { FINAL };
        flags |= if writes { WRITE } else { 0 } | if reads { READ } else { 0 };
        let mut bhs = Bhs::new(opcode::COMMAND, flags);
        bhs.put(8, &task.lun);
        bhs.put_u32(16, itt);
        bhs.put_u32(20, task.expected_in.max(task.out.len() as u32));
        self.number_as(&mut bhs, task.cmd_sn, task.immediate);
        let (fixed, more) = task.cdb.split_at(task.cdb.len().min(16));
        bhs.put(32, fixed);
        self.outgoing.push(&self.terms, bhs, &extended(more), &task.out[..inline]);
        task.sent = inline;
        if unasked > inline {
            self.send_data(itt, &mut task, NO_TAG, unasked);
        }
        self.pending.insert(itt, Pending::Command(Box::new(task)));
    }

    /// Returns the length of immediate data, and of all unsolicited data (RFC 7143, 13.10, 13.11
    /// and 13.14).
    fn unasked(&self, bytes: usize) -> (usize, usize) {
        let terms = &self.terms;
        let first = bytes.min(terms.first_burst_bytes as usize);
        let most = terms.send_segment_bytes.min(self.options.immediate_bytes_max) as usize;
        let inline = if terms.immediate_data { first.min(most) } else { 0 };
        (inline, if terms.initial_r2t { inline } else { first })
    }

    /// Requests the abort of a command (ABORT TASK). Returns the tag of the request.
    ///
    /// # Errors
    /// [`Busy`] if it is not logged in, or the command is not outstanding.
    pub fn abort(&mut self, task: Itt) -> Result<Itt, Busy> {
        self.ready()?;
        let found = self.command_of(task).ok_or(Busy::NoSuchTask)?;
        let (lun, cmd_sn) = (found.lun, found.cmd_sn);
        Ok(self.abort_task(task, lun, cmd_sn))
    }

    /// Requests the abort of a command with this LUN and CmdSN, on any connection.
    pub(crate) fn abort_task(&mut self, task: Itt, lun: [u8; 8], cmd_sn: u32) -> Itt {
        let mut bhs = Bhs::new(opcode::MANAGEMENT | IMMEDIATE, FINAL | 1);
        bhs.put_u32(20, task.0);
        bhs.put_u32(32, cmd_sn);
        self.manage(bhs, lun, Ends::Task(task.0))
    }

    /// Returns an outstanding command.
    pub(crate) fn command_of(&self, itt: Itt) -> Option<&Task> {
        match self.pending.get(&itt.0) {
            Some(Pending::Command(task)) => Some(task),
            _ => None,
        }
    }

    /// Requests the abort of several commands. Returns the tag of the request. `lun` is unused for
    /// resets of the target.
    ///
    /// # Errors
    /// [`Busy::NotLoggedIn`].
    pub fn task_management(&mut self, function: Function, lun: [u8; 8]) -> Result<Itt, Busy> {
        self.ready()?;
        let mut bhs = Bhs::new(opcode::MANAGEMENT | IMMEDIATE, FINAL | function as u8);
        bhs.put_u32(20, NO_TAG);
        Ok(self.manage(bhs, lun, Ends::Set(function)))
    }

    fn manage(&mut self, mut bhs: Bhs, lun: [u8; 8], ends: Ends) -> Itt {
        bhs.put(8, &lun);
        self.ask(bhs, &[], Pending::Management(ends, lun))
    }

    /// Sends a ping: the target must return `data`.
    ///
    /// # Errors
    /// [`Busy::NotLoggedIn`].
    ///
    /// # Panics
    /// If `data` is longer than the target accepts in a PDU.
    pub fn nop_out(&mut self, data: &[u8]) -> Result<Itt, Busy> {
        self.ready()?;
        assert!(data.len() <= self.terms.send_segment_bytes as usize, "too much data for a ping");
        let mut bhs = Bhs::new(opcode::NOP_OUT | IMMEDIATE, FINAL);
        bhs.put_u32(20, NO_TAG);
        // Data beyond what the initiator accepts in a PDU can't be returned (RFC 7143, 11.19.2).
        let most = self.options.max_recv_data_segment_bytes as usize;
        let back = data[..data.len().min(most)].to_vec();
        Ok(self.ask(bhs, data, Pending::Nop(back)))
    }

    /// Requests targets and their portals (SendTargets; RFC 7143, appendix C): `All` in a discovery
    /// session, the empty value or the target's name in a normal one.
    ///
    /// # Errors
    /// [`Busy::NotLoggedIn`].
    pub fn send_targets(&mut self, value: &str) -> Result<Itt, Busy> {
        self.ready()?;
        let mut data = Vec::new();
        text::push(&mut data, "SendTargets", value);
        let mut bhs = Bhs::new(opcode::TEXT | IMMEDIATE, FINAL);
        bhs.put_u32(20, NO_TAG);
        Ok(self.ask(bhs, &data, Pending::Text(Vec::new())))
    }

    /// Requests the end of the session or a connection. If that is this connection, no more
    /// requests can be sent on it.
    ///
    /// # Errors
    /// [`Busy::NotLoggedIn`].
    pub fn logout(&mut self, reason: LogoutReason) -> Result<Itt, Busy> {
        self.ready()?;
        let (code, cid) = match reason {
            LogoutReason::CloseSession => (0, 0),
            LogoutReason::CloseConnection(cid) => (1, cid),
            LogoutReason::RemoveForRecovery(cid) => (2, cid),
        };
        let mut bhs = Bhs::new(opcode::LOGOUT | IMMEDIATE, FINAL | code);
        bhs.put(20, &cid.to_be_bytes());
        let itt = self.ask(bhs, &[], Pending::Logout(reason));
        if self.is_of_this(reason) {
            self.phase = Phase::Leaving;
        }
        Ok(itt)
    }

    /// Returns whether such a logout closes this connection.
    pub(crate) fn is_of_this(&self, reason: LogoutReason) -> bool {
        match reason {
            LogoutReason::CloseSession => true,
            LogoutReason::CloseConnection(cid) => cid == self.options.cid,
            LogoutReason::RemoveForRecovery(_) => false,
        }
    }

    /// Sends an immediate request that is not a command.
    fn ask(&mut self, mut bhs: Bhs, data: &[u8], pending: Pending) -> Itt {
        let itt = self.window.take_itt();
        bhs.put_u32(16, itt);
        self.number(&mut bhs);
        self.outgoing.push(&self.terms, bhs, &[], data);
        self.pending.insert(itt, pending);
        Itt(itt)
    }

    /// Sets CmdSN and ExpStatSN of an immediate request, which does not use up a CmdSN (RFC 7143,
    /// 4.2.2.1).
    pub(crate) fn number(&mut self, bhs: &mut Bhs) {
        self.number_as(bhs, self.window.next(), true);
    }

    fn number_as(&self, bhs: &mut Bhs, cmd_sn: u32, immediate: bool) {
        if immediate {
            bhs.0[0] |= IMMEDIATE;
        }
        bhs.put_u32(24, cmd_sn);
        bhs.put_u32(28, self.exp_stat_sn);
    }

    pub(crate) fn ready(&self) -> Result<(), Busy> {
        if self.is_logged_in() { Ok(()) } else { Err(Busy::NotLoggedIn) }
    }
}

/// Returns the additional header segment for the part of a CDB beyond 16 bytes (RFC 7143,
/// 11.2.2.3): 0..2 AHSLength, 2 AHSType 1, 3 reserved, then the rest of the CDB and padding.
fn extended(more: &[u8]) -> Vec<u8> {
    if more.is_empty() {
        return Vec::new();
    }
    let [high, low] = (more.len() as u16 + 1).to_be_bytes();
    let mut ahs = vec![high, low, 1, 0];
    ahs.extend_from_slice(more);
    ahs.resize(ahs.len().next_multiple_of(4), 0);
    assert!(ahs.len() <= 255 * 4, "the CDB is too long");
    ahs
}
