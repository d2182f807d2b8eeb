//! Text requests: SendTargets and the few keys that may change in full-feature phase (RFC 7143,
//! 11.10, 11.11, appendix C).
//!
//! Flags: F 80h, C 40h. 20..24 Target Transfer Tag: FFFFFFFFh begins an exchange.

use std::collections::BTreeSet;

use super::{Connection, StatSn};
use crate::budget::Grant;
use crate::pdu::{Bhs, FINAL, NO_TAG, RejectReason, build};
use crate::receive::Body;
use crate::text;
use crate::transmit::OutData;

const CONTINUE: u8 = 0x40;
/// The most keys of an exchange: several times as many as RFC 7143, 13, defines.
const KEYS_MAX: usize = 256;

/// An exchange that takes several PDUs.
pub(super) struct Exchange {
    transfer_tag: u32,
    /// The request text so far.
    request: Vec<u8>,
    /// The rest of the reply.
    reply: Vec<u8>,
    /// The keys received.
    seen: BTreeSet<String>,
    /// The total length of the request, which is bounded however many PDUs it takes, and its
    /// memory.
    bytes: usize,
    grant: Grant,
}

impl Connection {
    pub(super) fn text_request(&mut self, bhs: &Bhs, body: Body) {
        let tag = bhs.u32(20);
        let mut exchange = match self.text.take() {
            Some(exchange) if exchange.transfer_tag == tag => exchange,
            // A new exchange ends an open one (RFC 7143, 11.10.4).
            _ if tag == NO_TAG => {
                self.next_serial = self.next_serial.wrapping_add(1);
                let transfer_tag = self.next_serial & 0x7fff_ffff;
                Exchange {
                    transfer_tag,
                    request: Vec::new(),
                    reply: Vec::new(),
                    seen: BTreeSet::new(),
                    bytes: 0,
                    grant: Grant::default(),
                }
            }
            _ => return self.reject(bhs, RejectReason::InvalidField),
        };
        let limits = &self.target.config().limits;
        exchange.bytes += body.bytes.len();
        if exchange.bytes > limits.text_bytes {
            return self.reject(bhs, RejectReason::LongOperation);
        }
        exchange.request.extend_from_slice(&body.bytes);
        exchange.grant.merge(body.grant);
        if bhs.flags() & CONTINUE == 0 {
            let Some(pairs) = text::parse(&std::mem::take(&mut exchange.request)) else {
                return self.reject(bhs, RejectReason::Protocol);
            };
            // The exchange then ends (RFC 7143, 6.4), and has no effect.
            if pairs.iter().any(|(key, _)| !exchange.seen.insert(key.clone())) {
                return self.reject(bhs, RejectReason::Protocol);
            }
            if exchange.seen.len() > KEYS_MAX {
                return self.reject(bhs, RejectReason::LongOperation);
            }
            for (key, value) in &pairs {
                self.text_key(key, value, &mut exchange.reply);
            }
        }
        if exchange.reply.len() > self.target.config().limits.text_bytes.max(1 << 20) {
            return self.reject(bhs, RejectReason::LongOperation);
        }
        self.text_reply(bhs, exchange);
    }

    /// Sends as much of the reply as the initiator accepts at once.
    fn text_reply(&mut self, bhs: &Bhs, mut exchange: Exchange) {
        let most = self.params.send_segment_bytes as usize;
        let asked_more = bhs.flags() & CONTINUE != 0;
        let (part, flags) = if asked_more {
            (Vec::new(), 0)
        } else if exchange.reply.len() > most {
            let rest = exchange.reply.split_off(most);
            (std::mem::replace(&mut exchange.reply, rest), CONTINUE)
        } else {
            (std::mem::take(&mut exchange.reply), bhs.flags() & FINAL)
        };
        let transfer_tag = if flags & FINAL != 0 { NO_TAG } else { exchange.transfer_tag };
        if transfer_tag != NO_TAG {
            self.text = Some(exchange);
        }
        let mut answer = build::text(bhs.task_tag(), transfer_tag, flags);
        answer.put(8, &bhs.lun());
        self.send(answer, OutData::Bytes(part), StatSn::Advance);
    }

    fn text_key(&mut self, key: &str, value: &str, out: &mut Vec<u8>) {
        match key {
            "SendTargets" => self.send_targets(value, out),
            "MaxRecvDataSegmentLength" => match text::number(value) {
                Some(bytes @ 512..=0xff_ffff) => self.params.send_segment_bytes = bytes as u32,
                _ => text::push(out, key, "Reject"),
            },
            "InitiatorAlias" => {}
            "HeaderDigest"
            | "DataDigest"
            | "MaxConnections"
            | "InitialR2T"
            | "ImmediateData"
            | "MaxBurstLength"
            | "FirstBurstLength"
            | "MaxOutstandingR2T"
            | "DataPDUInOrder"
            | "DataSequenceInOrder"
            | "ErrorRecoveryLevel"
            | "DefaultTime2Wait"
            | "DefaultTime2Retain"
            | "InitiatorName"
            | "TargetName"
            | "SessionType"
            | "AuthMethod" => text::push(out, key, "Reject"),
            _ => text::push(out, key, "NotUnderstood"),
        }
    }

    /// Appends all targets that this initiator may see: this one, if it may log in. `All` is for
    /// discovery sessions, the empty value (the session's own target) for normal ones.
    fn send_targets(&self, value: &str, out: &mut Vec<u8>) {
        let config = self.target.config();
        let discovery = self.nexus().is_some_and(|nexus| nexus.discovery);
        match value {
            "All" if discovery => {}
            "" if !discovery => {}
            "All" | "" => return text::push(out, "SendTargets", "Reject"),
            name if name.eq_ignore_ascii_case(&config.target_name) => {}
            _ => return,
        }
        text::push(out, "TargetName", &config.target_name);
        let mut told = Vec::new();
        for portal in &config.portals {
            let mut address = portal.address;
            if address.ip().is_unspecified() {
                address.set_ip(self.local.ip());
            }
            let value = format!("{address},{}", portal.tag);
            if !told.contains(&value) {
                text::push(out, "TargetAddress", &value);
                told.push(value);
            }
        }
    }
}
