//! Negotiation of parameters in a login (RFC 7143, 6.2 and 13).

use std::collections::BTreeSet;

use crate::options::{Options, Terms};
use crate::pdu::Bhs;
use crate::text;
use crate::violation::Violation;

pub(crate) const TRANSIT: u8 = 0x80;
pub(crate) const CONTINUE: u8 = 0x40;
pub(crate) const OPERATIONAL: u8 = 1;
pub(crate) const FULL: u8 = 3;
/// The keys that a target declares without an offer.
const DECLARED: [&str; 4] =
    ["MaxRecvDataSegmentLength", "TargetPortalGroupTag", "TargetAlias", "TargetAddress"];

/// A login in progress.
#[derive(Debug)]
pub(crate) struct Login {
    pub(crate) itt: u32,
    pub(crate) stage: u8,
    /// Whether the last request asked to transit to the next stage.
    pub(crate) asked: bool,
    pub(crate) exchanges: u32,
    /// The offers of this stage without a response.
    pub(crate) offered: Vec<(&'static str, String)>,
    pub(crate) seen: BTreeSet<String>,
    /// Text of responses with C, until one without.
    pub(crate) partial: Vec<u8>,
    pub(crate) terms: Terms,
}

impl Login {
    /// Appends the offers of the stage that begins.
    pub(crate) fn offer(&mut self, options: &Options, text: &mut Vec<u8>) {
        self.offered = match self.stage {
            OPERATIONAL => operational(options),
            _ => vec![("AuthMethod", "None".to_owned())],
        };
        for (key, value) in &self.offered {
            text::push(text, key, value);
        }
        if self.stage == OPERATIONAL {
            let bytes = options.max_recv_data_segment_bytes.to_string();
            text::push(text, "MaxRecvDataSegmentLength", &bytes);
        }
    }

    /// Checks versions, stages and flags. Returns whether the next stage begins.
    pub(crate) fn check_flags(&self, bhs: &Bhs) -> Result<bool, Violation> {
        let flags = bhs.flags();
        let wrong = |what| Err(Violation::field(bhs.opcode(), what, "11.13"));
        if bhs.0[3] != 0 {
            return wrong("a version that was not offered");
        }
        if flags >> 2 & 3 != self.stage {
            return wrong("CSG is not that of the request");
        }
        let goes_on = flags & TRANSIT != 0;
        if goes_on && flags & CONTINUE != 0 {
            return wrong("T and C");
        }
        let next = if self.stage == OPERATIONAL { FULL } else { OPERATIONAL };
        if goes_on && (!self.asked || flags & 3 != next) {
            return wrong("a transition that was not requested");
        }
        Ok(goes_on)
    }

    pub(crate) fn check_all_answered(&self) -> Result<(), Violation> {
        match self.offered.first() {
            Some((key, value)) => Err(key_violation(key, value, "the offer got no reply")),
            None => Ok(()),
        }
    }

    /// Processes a key of a response.
    pub(crate) fn take(&mut self, key: &str, value: &str) -> Result<(), Violation> {
        if !self.seen.insert(key.to_owned()) {
            return Err(key_violation(key, value, "it was sent twice"));
        }
        if let Some(at) = self.offered.iter().position(|(offered, _)| *offered == key) {
            let (_, offer) = self.offered.swap_remove(at);
            let agreed = self.agree(key, &offer, value);
            return agreed.ok_or(key_violation(key, value, "not a valid reply to the offer"));
        }
        if !DECLARED.contains(&key) {
            return Err(key_violation(key, value, "it was not offered"));
        }
        if key == "MaxRecvDataSegmentLength" {
            let bytes = text::number(value).filter(|bytes| (512..1 << 24).contains(bytes));
            let bytes = bytes.ok_or(key_violation(key, value, "out of range"))?;
            self.terms.send_segment_bytes = bytes;
        }
        Ok(())
    }

    /// Applies the result of an offer, if the response is valid (by the rules of RFC 7143, 13).
    fn agree(&mut self, key: &str, offer: &str, value: &str) -> Option<()> {
        let terms = &mut self.terms;
        let lesser = |least: u32| {
            let (offer, value) = (text::number(offer)?, text::number(value)?);
            (least..=offer).contains(&value).then_some(value)
        };
        let yes = match value {
            "Yes" => Some(true),
            "No" => Some(false),
            _ => None,
        };
        match key {
            "AuthMethod" => (value == offer).then_some(()),
            "HeaderDigest" | "DataDigest" => {
                let on = offer.split(',').any(|one| one == value).then_some(value == "CRC32C")?;
                let place = if key == "HeaderDigest" {
                    &mut terms.header_digest
                } else {
                    &mut terms.data_digest
                };
                *place = on;
                Some(())
            }
            // Yes wins.
            "InitialR2T" | "DataPDUInOrder" | "DataSequenceInOrder" => {
                let yes = yes.filter(|yes| *yes || offer == "No")?;
                if key == "InitialR2T" {
                    terms.initial_r2t = yes;
                }
                Some(())
            }
            // No wins.
            "ImmediateData" => {
                terms.immediate_data = yes.filter(|yes| !*yes || offer == "Yes")?;
                Some(())
            }
            "MaxBurstLength" => lesser(512).map(|bytes| terms.burst_bytes = bytes),
            // Irrelevant if all data is solicited (13.14).
            "FirstBurstLength" if value == "Irrelevant" => {
                (terms.initial_r2t && !terms.immediate_data).then_some(())
            }
            "FirstBurstLength" => lesser(512).map(|bytes| terms.first_burst_bytes = bytes),
            "MaxOutstandingR2T" => lesser(1).map(|count| terms.outstanding_r2t = count as u16),
            "MaxConnections" => lesser(1).map(|count| terms.connections = count as u16),
            // The greater value wins.
            "DefaultTime2Wait" => {
                let (offer, value) = (text::number(offer)?, text::number(value)?);
                (offer..=3600).contains(&value).then_some(())
            }
            "DefaultTime2Retain" | "ErrorRecoveryLevel" => lesser(0).map(|_| ()),
            _ => None,
        }
    }
}

/// Returns the offers. A connection that joins a session uses the session's parameters.
fn operational(options: &Options) -> Vec<(&'static str, String)> {
    let digest = |on: bool| if on { "CRC32C,None" } else { "None" }.to_owned();
    let yes_no = |yes: bool| if yes { "Yes" } else { "No" }.to_owned();
    let mut offers = vec![
        ("HeaderDigest", digest(options.header_digest)),
        ("DataDigest", digest(options.data_digest)),
    ];
    if options.tsih != 0 {
        return offers;
    }
    offers.extend([
        ("DefaultTime2Wait", "0".to_owned()),
        ("DefaultTime2Retain", "0".to_owned()),
        ("ErrorRecoveryLevel", "0".to_owned()),
    ]);
    if !options.discovery {
        offers.extend([
            ("InitialR2T", yes_no(options.initial_r2t)),
            ("ImmediateData", yes_no(options.immediate_data)),
            ("MaxBurstLength", options.max_burst_bytes.to_string()),
            ("FirstBurstLength", options.first_burst_bytes.to_string()),
            ("MaxOutstandingR2T", options.max_outstanding_r2t.to_string()),
            ("MaxConnections", options.max_connections.to_string()),
            ("DataPDUInOrder", "Yes".to_owned()),
            ("DataSequenceInOrder", "Yes".to_owned()),
        ]);
    }
    offers
}

pub(crate) fn key_violation(key: &str, value: &str, what: &'static str) -> Violation {
    Violation::Key { key: key.to_owned(), value: value.to_owned(), what }
}
