//! Connections that go on in another process, which takes the pool over as planned: what is agreed
//! on and counted goes there with the socket, and the initiator notices nothing but a pause.
//!
//! A connection can go when nothing of it is under way. So nothing more is taken, but for what the
//! commands need that have begun; and as the window does not open any more, an initiator that goes
//! on to send comes to an end with that. What has come and was not looked at goes along. Sessions
//! of several connections stay, and those for discovery: who had them logs in again.

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

/// All that has to be known of a connection to go on with it, besides its socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    /// The initiator's iSCSI name.
    pub initiator_name: String,
    /// The initiator's part of the session's name.
    pub isid: [u8; 6],
    /// The target's part of the session's name.
    pub tsih: u16,
    /// The connection's name within the session.
    pub cid: u16,
    /// The tag of the portal group.
    pub portal_tag: u16,
    /// The next CmdSN.
    pub exp_cmd_sn: u32,
    /// The next StatSN.
    pub stat_sn: u32,
    /// What was agreed on, with the window.
    pub terms: Terms,
    /// Bytes that were received and not looked at.
    pub received: Vec<u8>,
}

impl Connection {
    /// It is to go on in another process. False if it can't: nothing changes then.
    pub fn begin_to_hand_over(&mut self) -> bool {
        let can = self.login.is_none() && !self.is_closed() && self.leaving.is_none();
        let session = self.session.as_ref().filter(|session| can && !session.nexus.discovery);
        self.is_handed = session.is_some_and(|session| session.freeze());
        self.is_handed
    }

    /// Whether more is to be received: always, but where it is to go on in another process only as
    /// long as something has begun that is not all there.
    pub(super) fn takes_input(&self) -> bool {
        !self.is_handed || self.is_incomplete()
    }

    /// Whether it waits for input though it is to go on in another process.
    pub fn is_incomplete(&self) -> bool {
        let is_begun = || self.tasks.values().any(|task| task.state != TaskState::Delivered);
        self.is_handed && !self.is_closed() && (self.receive.in_data() || is_begun())
    }

    /// Whether nothing of it is under way.
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

    /// What the other process has to know; `None` if it can't go on there. Nothing is to be called
    /// afterwards: the socket is the other process's.
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

    /// Goes on with a connection of another process. `None` if it can't: its initiator has logged
    /// in anew, or what was handed makes no sense.
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
        // It may have used up the window that did not open any more, and waits to be told of it.
        connection.send(build::nop_in([0; 8], NO_TAG, NO_TAG), OutData::None, StatSn::Current);
        Some(connection)
    }

    /// Headers and data carry digests from now on, if that was agreed on.
    pub(super) fn set_digests(&mut self) {
        self.receive.header_digest = self.params.header_digest;
        self.receive.data_digest = self.params.data_digest;
        self.transmit.header_digest = self.params.header_digest;
        self.transmit.data_digest = self.params.data_digest;
    }
}
