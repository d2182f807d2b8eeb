//! One connection: its parts, and the dispatch of PDUs.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::event::{Event, Itt};
use crate::framing::{Incoming, Outgoing};
use crate::negotiation::Login;
use crate::options::{Options, Terms};
use crate::pdu::{Bhs, NO_TAG, opcode};
use crate::task::Pending;
use crate::violation::Violation;
use crate::window::{Window, before};

/// The longest data segment accepted during login (RFC 7143, 13.12: the default).
const LOGIN_SEGMENT_BYTES: usize = 8192;

/// The phase of a connection.
#[derive(Debug)]
pub(crate) enum Phase {
    Idle,
    Login(Box<Login>),
    Full,
    /// A logout that closes this connection was requested.
    Leaving,
    Over,
}

/// One connection of an initiator.
#[derive(Debug)]
pub struct Initiator {
    pub(crate) options: Options,
    pub(crate) terms: Terms,
    pub(crate) phase: Phase,
    pub(crate) window: Window,
    /// The next StatSN.
    pub(crate) exp_stat_sn: u32,
    /// ExpCmdSN and MaxCmdSN as last received.
    pub(crate) told: Option<(u32, u32)>,
    pub(crate) pending: BTreeMap<u32, Pending>,
    /// The commands that task management or a reject ended.
    pub(crate) ended: BTreeSet<u32>,
    pub(crate) outgoing: Outgoing,
    pub(crate) events: VecDeque<Event>,
    incoming: Incoming,
    failed: Option<Violation>,
}

impl Initiator {
    /// Creates a connection that was just opened. Nothing is sent before [`Initiator::login`].
    pub fn new(options: Options) -> Self {
        let window = Window::new(options.first_cmd_sn);
        Self::with(options, window, Terms::default())
    }

    /// Creates another connection of `leader`'s session, or one that replaces the connection with
    /// the same CID. `options` contains the TSIH of the session.
    pub fn joining(options: Options, leader: &Initiator) -> Self {
        let terms = Terms {
            header_digest: false,
            data_digest: false,
            send_segment_bytes: Terms::default().send_segment_bytes,
            ..leader.terms
        };
        Self::with(options, leader.window.clone(), terms)
    }

    fn with(options: Options, window: Window, terms: Terms) -> Self {
        Self {
            options,
            terms,
            phase: Phase::Idle,
            window,
            exp_stat_sn: 0,
            told: None,
            pending: BTreeMap::new(),
            ended: BTreeSet::new(),
            outgoing: Outgoing::default(),
            events: VecDeque::new(),
            incoming: Incoming::default(),
            failed: None,
        }
    }

    /// Returns its options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Returns the negotiated parameters.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Returns whether requests may be sent.
    pub fn is_logged_in(&self) -> bool {
        matches!(self.phase, Phase::Full)
    }

    /// Returns whether a logout that closes this connection was requested, and has no response yet.
    pub fn is_leaving(&self) -> bool {
        matches!(self.phase, Phase::Leaving)
    }

    /// Returns whether it has ended: logged out, or refused.
    pub fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    /// Returns how many more commands the target accepts at the moment.
    pub fn room(&self) -> u32 {
        self.window.room()
    }

    /// Returns the commands without a response, in the order in which they were sent.
    pub fn outstanding(&self) -> impl Iterator<Item = Itt> + '_ {
        let is_command = |pending: &Pending| matches!(pending, Pending::Command(_));
        self.pending
            .iter()
            .filter(move |(_, pending)| is_command(pending))
            .map(|(tag, _)| Itt(*tag))
    }

    /// Returns the bytes to be sent next.
    pub fn output(&self) -> &[u8] {
        self.outgoing.bytes()
    }

    /// Notes that this many bytes of [`Initiator::output`] were sent.
    ///
    /// # Panics
    /// If `bytes` exceeds the output.
    pub fn taken(&mut self, bytes: usize) {
        self.outgoing.take(bytes);
    }

    /// Returns the next event.
    pub fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Processes bytes received from the target, in pieces of any size.
    ///
    /// # Errors
    /// The target violated the standard. Each later call returns the same error; earlier events can
    /// still be taken.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        if let Some(violation) = &self.failed {
            return Err(violation.clone());
        }
        self.incoming.push(bytes);
        let result = self.take_pdus();
        self.failed = result.clone().err();
        result
    }

    fn take_pdus(&mut self) -> Result<(), Violation> {
        loop {
            let declared = match self.phase {
                Phase::Login(_) => LOGIN_SEGMENT_BYTES,
                _ => self.options.max_recv_data_segment_bytes as usize,
            };
            let Some((bhs, data)) = self.incoming.next(&self.terms, declared)? else {
                return Ok(());
            };
            match self.phase {
                Phase::Login(_) => self.login_response(&bhs, &data)?,
                Phase::Full | Phase::Leaving => self.answer(&bhs, data)?,
                Phase::Idle | Phase::Over => {
                    return Err(Violation::Opcode { opcode: bhs.opcode() });
                }
            }
        }
    }

    /// Processes a PDU of full-feature phase.
    fn answer(&mut self, bhs: &Bhs, data: Vec<u8>) -> Result<(), Violation> {
        self.check_stat_sn(bhs)?;
        self.check_window(bhs)?;
        match bhs.opcode() {
            opcode::DATA_IN => self.data_in(bhs, &data),
            opcode::R2T => self.r2t(bhs),
            opcode::RESPONSE => self.response(bhs, &data),
            opcode::MANAGEMENT_RESPONSE => self.management_response(bhs),
            opcode::NOP_IN => self.nop_in(bhs, &data),
            opcode::TEXT_RESPONSE => self.text_response(bhs, &data),
            opcode::LOGOUT_RESPONSE => self.logout_response(bhs),
            opcode::REJECT => self.reject(bhs, &data),
            opcode::ASYNC => self.async_message(bhs, data),
            opcode => Err(Violation::Opcode { opcode }),
        }
    }

    /// Checks StatSN: which PDUs carry it, and which of them use it up (RFC 7143, 11.7.5, 11.8 and
    /// 11.19).
    fn check_stat_sn(&mut self, bhs: &Bhs) -> Result<(), Violation> {
        let (carries, advances) = match bhs.opcode() {
            opcode::DATA_IN => (bhs.flags() & 1 != 0, true),
            opcode::R2T => (true, false),
            opcode::NOP_IN => (true, bhs.itt() != NO_TAG),
            _ => (true, true),
        };
        if !carries {
            return Ok(());
        }
        if bhs.stat_sn() != self.exp_stat_sn {
            return Err(Violation::StatSn { got: bhs.stat_sn(), expected: self.exp_stat_sn });
        }
        if advances {
            self.exp_stat_sn = self.exp_stat_sn.wrapping_add(1);
        }
        Ok(())
    }

    /// Checks ExpCmdSN and MaxCmdSN. On one connection they never decrease, because its PDUs are in
    /// order.
    pub(crate) fn check_window(&mut self, bhs: &Bhs) -> Result<(), Violation> {
        let (exp, max) = (bhs.u32(28), bhs.u32(32));
        let next = self.window.next();
        let wrong = |what| Err(Violation::Window { exp, max, next, what });
        if before(next, exp) {
            return wrong("ExpCmdSN is beyond what was sent");
        }
        if before(max, exp.wrapping_sub(1)) {
            return wrong("MaxCmdSN is less than ExpCmdSN - 1");
        }
        if let Some((exp_before, max_before)) = self.told {
            for (name, from, to) in [("ExpCmdSN", exp_before, exp), ("MaxCmdSN", max_before, max)] {
                if before(to, from) {
                    return Err(Violation::Backwards { name, from, to });
                }
            }
        }
        self.told = Some((exp, max));
        self.window.note_max(max);
        Ok(())
    }

    /// Returns the request that a response is for.
    pub(crate) fn asked(&mut self, bhs: &Bhs) -> Result<&mut Pending, Violation> {
        let (opcode, itt) = (bhs.opcode(), bhs.itt());
        match self.pending.get_mut(&itt) {
            Some(pending) => Ok(pending),
            None if self.ended.contains(&itt) => Err(Violation::AfterAbort { opcode, itt }),
            None if (1..self.window.next_itt()).contains(&itt) => {
                Err(Violation::AnsweredTwice { opcode, itt })
            }
            None => Err(Violation::NeverAsked { opcode, itt }),
        }
    }

    /// The same for its last response, which removes it.
    pub(crate) fn take_asked(&mut self, bhs: &Bhs) -> Result<Pending, Violation> {
        self.asked(bhs)?;
        let (opcode, itt) = (bhs.opcode(), bhs.itt());
        self.pending.remove(&itt).ok_or(Violation::NeverAsked { opcode, itt })
    }
}

/// Checks that F is set, and that there is no data segment unless `has_data`.
pub(crate) fn check_shape(bhs: &Bhs, has_data: bool) -> Result<(), Violation> {
    if !bhs.is_final() {
        return Err(Violation::field(bhs.opcode(), "F is not set", "11"));
    }
    if !has_data && bhs.data_bytes() > 0 {
        return Err(Violation::field(bhs.opcode(), "it has a data segment", "11"));
    }
    Ok(())
}
