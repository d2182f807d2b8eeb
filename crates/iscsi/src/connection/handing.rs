//! Handing connections over to another process in a planned switch: the negotiated parameters and
//! sequence numbers are passed with the socket, and the initiator notices only a pause.
//!
//! A connection can be handed over when it has nothing in progress. So it accepts only the rest of
//! commands that have begun. Because the window no longer opens, an initiator that continues to
//! send soon has to stop. Received bytes that were not processed are handed over too. Sessions of
//! several connections, and discovery sessions, are not handed over: their initiators log in again.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use serde::{Deserialize, Serialize};

use super::{Connection, StatSn};
use crate::event::{Event, Opening, Terms};
use crate::guesses::neighbourhood;
use crate::negotiate::Params;
use crate::pdu::{NO_TAG, build};
use crate::receive::BUFFER_BYTES;
use crate::session::fence::Progress;
use crate::session::{Claim, Member};
use crate::target::Target;
use crate::task::TaskState;
use crate::transmit::OutData;

/// The state needed to continue a connection, besides its socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    /// The initiator's iSCSI name.
    pub initiator_name: String,
    /// The initiator's part of the session id.
    pub isid: [u8; 6],
    /// The target's part of the session id.
    pub tsih: u16,
    /// The connection id (CID).
    pub cid: u16,
    /// The tag of the portal group.
    pub portal_tag: u16,
    /// The next CmdSN.
    pub exp_cmd_sn: u32,
    /// The next StatSN.
    pub stat_sn: u32,
    /// The negotiated parameters, with the window.
    pub terms: Terms,
    /// Bytes that were received and not processed.
    pub received: Vec<u8>,
}

impl Connection {
    /// Prepares to hand the connection over. Returns false, without a change, if that is
    /// impossible.
    pub fn begin_to_hand_over(&mut self) -> bool {
        let can = self.login.is_none() && !self.is_closed() && self.leaving.is_none();
        let session = self.session.as_ref().filter(|session| can && !session.nexus.discovery);
        self.is_handed = session.is_some_and(|session| session.freeze());
        self.is_handed
    }

    /// Returns whether to receive more: always, except that a connection to be handed over receives
    /// only the rest of what has begun.
    pub(super) fn takes_input(&self) -> bool {
        !self.is_handed || self.is_incomplete()
    }

    /// Returns whether a connection to be handed over still waits for input.
    pub fn is_incomplete(&self) -> bool {
        let is_begun = || self.tasks.values().any(|task| task.state != TaskState::Delivered);
        self.is_handed && !self.is_closed() && (self.receive.in_data() || is_begun())
    }

    /// Returns whether nothing is in progress.
    pub fn is_settled(&self) -> bool {
        let waits = self.held.len() + self.in_order.len() + self.starved.len();
        let is_managed = self.managements.len() + self.behind.len() + self.fenced.len() > 0;
        !self.has_output()
            && (!self.is_handed
                || self.is_closed()
                || self.tasks.is_empty()
                    && self.events.is_empty()
                    && waits == 0
                    && !is_managed
                    && !self.receive.in_data()
                    && self.text.is_none()
                    && self.leaving.is_none())
    }

    /// Returns the state that the other process needs; `None` if it can't continue the connection.
    /// Nothing may be called afterwards: the socket belongs to the other process.
    pub fn hand_over(&self) -> Option<Handed> {
        let is_ready = self.is_handed && !self.is_closed() && self.is_settled();
        let session = self.session.as_ref().filter(|_| is_ready)?;
        let (nexus, window) = (&session.nexus, session.window());
        Some(Handed {
            initiator_name: nexus.initiator_name.clone(),
            isid: nexus.isid,
            tsih: nexus.tsih,
            cid: session.cid_of(self.id)?,
            portal_tag: nexus.portal_tag,
            exp_cmd_sn: session.expected(),
            stat_sn: self.stat_sn,
            terms: self.params.terms(window),
            received: self.receive.available().to_vec(),
        })
    }

    /// Continues a connection of another process. Returns `None` if that is impossible: its
    /// initiator has logged in again, or the state is invalid.
    pub fn go_on_with(target: Arc<Target>, opening: Opening, handed: Handed) -> Option<Self> {
        let Handed { initiator_name, isid, tsih, cid, portal_tag, .. } = handed;
        let portal = target.config().portals.get(opening.portal_index)?;
        if portal.tag != portal_tag || tsih == 0 || handed.received.len() > BUFFER_BYTES {
            return None;
        }
        let address = neighbourhood(opening.peer.ip());
        let mut connection = Self::new(target.clone(), opening);
        let params = Params::of_terms(&handed.terms);
        let claim = Claim {
            initiator_name: &initiator_name,
            address,
            isid,
            tsih,
            portal_tag,
            discovery: false,
            cmd_sn: handed.exp_cmd_sn,
            params,
        };
        let (closing, progress): (Arc<AtomicBool>, Arc<Progress>) =
            (connection.closing.clone(), connection.progress.clone());
        let member = Member { cid, id: connection.id, closing, progress };
        let session = target.go_on(&claim, handed.terms.commands.max(1), member).ok()?;
        let nexus = session.nexus.clone();
        connection.login = None;
        connection.session = Some(session);
        connection.params = params;
        connection.stat_sn = handed.stat_sn;
        connection.set_digests();
        connection.receive.prefill(&handed.received);
        connection.input_left = !handed.received.is_empty();
        connection.events.push_back(Event::SessionStarted { nexus, replaces: None });
        // It may have used up the window that no longer opened, and waits for an update.
        connection.send(build::nop_in([0; 8], NO_TAG, NO_TAG), OutData::None, StatSn::Current);
        Some(connection)
    }

    /// Enables digests of headers and data, if they were negotiated.
    pub(super) fn set_digests(&mut self) {
        self.receive.header_digest = self.params.header_digest;
        self.receive.data_digest = self.params.data_digest;
        self.transmit.header_digest = self.params.header_digest;
        self.transmit.data_digest = self.params.data_digest;
    }
}
