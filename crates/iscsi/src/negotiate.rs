//! The operational keys (RFC 7143, 13), negotiated at login.

use crate::config::Limits;
use crate::event::Terms;
use crate::text;

/// The negotiated parameters, initially the defaults of RFC 7143, 13.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Params {
    pub(crate) header_digest: bool,
    pub(crate) data_digest: bool,
    pub(crate) max_connections: u16,
    pub(crate) initial_r2t: bool,
    pub(crate) immediate_data: bool,
    /// The initiator's MaxRecvDataSegmentLength: the most data in a PDU to it.
    pub(crate) send_segment_bytes: u32,
    pub(crate) burst_bytes: u32,
    pub(crate) first_burst_bytes: u32,
    pub(crate) outstanding_r2t: u16,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            header_digest: false,
            data_digest: false,
            max_connections: 1,
            initial_r2t: true,
            immediate_data: true,
            send_segment_bytes: 8192,
            burst_bytes: 262_144,
            first_burst_bytes: 65_536,
            outstanding_r2t: 1,
        }
    }
}

impl Params {
    /// Returns the initial parameters of another connection of a session: session-wide ones stay.
    pub(crate) fn of_session(session: Params) -> Self {
        Self { header_digest: false, data_digest: false, send_segment_bytes: 8192, ..session }
    }

    /// Returns the parameters for display; `commands` is the session's window.
    pub(crate) fn terms(&self, commands: u32) -> Terms {
        Terms {
            header_digest: self.header_digest,
            data_digest: self.data_digest,
            max_connections: self.max_connections,
            initial_r2t: self.initial_r2t,
            immediate_data: self.immediate_data,
            send_segment_bytes: self.send_segment_bytes,
            burst_bytes: self.burst_bytes,
            first_burst_bytes: self.first_burst_bytes,
            outstanding_r2t: self.outstanding_r2t,
            commands,
        }
    }

    /// Restores parameters from [`Params::terms`], clamped to the ranges of RFC 7143, 13.
    pub(crate) fn of_terms(terms: &Terms) -> Self {
        let bytes = |bytes: u32| bytes.clamp(512, 0x00ff_ffff);
        Self {
            header_digest: terms.header_digest,
            data_digest: terms.data_digest,
            max_connections: terms.max_connections.max(1),
            initial_r2t: terms.initial_r2t,
            immediate_data: terms.immediate_data,
            send_segment_bytes: bytes(terms.send_segment_bytes),
            burst_bytes: bytes(terms.burst_bytes),
            first_burst_bytes: bytes(terms.first_burst_bytes),
            outstanding_r2t: terms.outstanding_r2t.max(1),
        }
        .settled()
    }

    /// Limits FirstBurstLength to MaxBurstLength, which may have been negotiated after it.
    pub(crate) fn settled(mut self) -> Self {
        self.first_burst_bytes = self.first_burst_bytes.min(self.burst_bytes);
        self
    }
}

/// A key was given twice (RFC 7143, 6.3: the login ends).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeated;

/// All negotiated keys; the index of a key is its bit in `seen`.
const KEYS: [&str; 20] = [
    "HeaderDigest",
    "DataDigest",
    "MaxConnections",
    "InitialR2T",
    "ImmediateData",
    "MaxRecvDataSegmentLength",
    "MaxBurstLength",
    "FirstBurstLength",
    "DefaultTime2Wait",
    "DefaultTime2Retain",
    "MaxOutstandingR2T",
    "DataPDUInOrder",
    "DataSequenceInOrder",
    "ErrorRecoveryLevel",
    "IFMarker",
    "OFMarker",
    "IFMarkInt",
    "OFMarkInt",
    "TaskReporting",
    "iSCSIProtocolLevel",
];

/// Keys that are irrelevant in a discovery session.
const IRRELEVANT_IN_DISCOVERY: [&str; 8] = [
    "MaxConnections",
    "InitialR2T",
    "ImmediateData",
    "MaxBurstLength",
    "FirstBurstLength",
    "MaxOutstandingR2T",
    "DataPDUInOrder",
    "DataSequenceInOrder",
];

/// The target's side of the negotiation.
#[derive(Debug)]
pub(crate) struct Negotiator {
    pub(crate) params: Params,
    /// Whether this is the session's first connection. Later ones get the session's values.
    pub(crate) leading: bool,
    pub(crate) discovery: bool,
    seen: u32,
    declared: bool,
}

impl Negotiator {
    pub(crate) fn new() -> Self {
        Self {
            params: Params::default(),
            leading: true,
            discovery: false,
            seen: 0,
            declared: false,
        }
    }

    /// Declares what the target receives, once.
    pub(crate) fn declare(&mut self, limits: &Limits, out: &mut Vec<u8>) {
        if !self.declared {
            self.declared = true;
            let bytes = limits.receive_segment_bytes.to_string();
            text::push(out, "MaxRecvDataSegmentLength", &bytes);
        }
    }

    /// Processes a key of the operational stage, and appends the response.
    pub(crate) fn take(
        &mut self,
        key: &str,
        value: &str,
        limits: &Limits,
        out: &mut Vec<u8>,
    ) -> Result<(), Repeated> {
        let Some(place) = KEYS.iter().position(|known| *known == key) else {
            // A reply to an offer that the target never made, or a key of others.
            if !matches!(value, "NotUnderstood" | "Irrelevant" | "Reject") {
                text::push(out, key, "NotUnderstood");
            }
            return Ok(());
        };
        if self.seen & 1 << place != 0 {
            return Err(Repeated);
        }
        self.seen |= 1 << place;
        if self.discovery && IRRELEVANT_IN_DISCOVERY.contains(&key) {
            text::push(out, key, "Irrelevant");
            return Ok(());
        }
        if key == "MaxRecvDataSegmentLength" {
            match number_in(value, 512, (1 << 24) - 1) {
                Some(bytes) => self.params.send_segment_bytes = bytes,
                None => text::push(out, key, "Reject"),
            }
            return Ok(());
        }
        let answer = self.answer(key, value, limits);
        text::push(out, key, answer.as_deref().unwrap_or("Reject"));
        Ok(())
    }

    /// Returns the negotiated value; `None` if the offer is out of range.
    fn answer(&mut self, key: &str, value: &str, limits: &Limits) -> Option<String> {
        let leading = self.leading;
        let params = &mut self.params;
        let yes_no = |yes: bool| Some(if yes { "Yes" } else { "No" }.to_owned());
        match key {
            "HeaderDigest" => digest(value, &mut params.header_digest),
            "DataDigest" => digest(value, &mut params.data_digest),
            "MaxConnections" => {
                let offer = number_in(value, 1, 65_535)? as u16;
                if leading {
                    params.max_connections = offer.min(limits.connections_per_session);
                }
                Some(params.max_connections.to_string())
            }
            "InitialR2T" => {
                let offer = boolean(value)?;
                params.initial_r2t = if leading { offer } else { params.initial_r2t };
                yes_no(params.initial_r2t)
            }
            "ImmediateData" => {
                let offer = boolean(value)?;
                params.immediate_data = if leading { offer } else { params.immediate_data };
                yes_no(params.immediate_data)
            }
            "MaxBurstLength" => agree(value, limits.burst_bytes, leading, &mut params.burst_bytes),
            "FirstBurstLength" => {
                let ours = limits.first_burst_bytes;
                agree(value, ours, leading, &mut params.first_burst_bytes)
            }
            "MaxOutstandingR2T" => {
                let offer = number_in(value, 1, 65_535)? as u16;
                if leading {
                    params.outstanding_r2t = offer.min(limits.outstanding_r2t);
                }
                Some(params.outstanding_r2t.to_string())
            }
            // The maximum of both; the target's is 0: there is nothing to wait for.
            "DefaultTime2Wait" => Some(number_in(value, 0, 3600)?.to_string()),
            // The minimum of both; the target's is 0: no task outlives its connection.
            "DefaultTime2Retain" => number_in(value, 0, 3600).map(|_| "0".to_owned()),
            // Yes wins, and the target's value is Yes.
            "DataPDUInOrder" | "DataSequenceInOrder" => boolean(value).map(|_| "Yes".to_owned()),
            "ErrorRecoveryLevel" => number_in(value, 0, 2).map(|_| "0".to_owned()),
            "IFMarker" | "OFMarker" => boolean(value).map(|_| "No".to_owned()),
            "IFMarkInt" | "OFMarkInt" => Some("Irrelevant".to_owned()),
            "TaskReporting" => value.split(',').find(|v| *v == "RFC3720").map(str::to_owned),
            "iSCSIProtocolLevel" => Some(number_in(value, 0, 31)?.min(1).to_string()),
            _ => None,
        }
    }
}

/// Returns the first supported digest of those offered.
fn digest(value: &str, on: &mut bool) -> Option<String> {
    let choice = value.split(',').find(|choice| matches!(*choice, "CRC32C" | "None"))?;
    *on = choice == "CRC32C";
    Some(choice.to_owned())
}

/// Returns the lesser of both offers, for burst lengths.
fn agree(value: &str, ours: u32, leading: bool, place: &mut u32) -> Option<String> {
    let offer = number_in(value, 512, (1 << 24) - 1)?;
    if leading {
        *place = offer.min(ours);
    }
    Some(place.to_string())
}

fn number_in(value: &str, least: u64, most: u64) -> Option<u32> {
    let number = text::number(value)?;
    (least..=most).contains(&number).then_some(number as u32)
}

fn boolean(value: &str) -> Option<bool> {
    match value {
        "Yes" => Some(true),
        "No" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(pairs: &[(&str, &str)]) -> (Params, Vec<(String, String)>) {
        let mut negotiator = Negotiator::new();
        let mut out = Vec::new();
        for (key, value) in pairs {
            negotiator.take(key, value, &Limits::default(), &mut out).unwrap();
        }
        (negotiator.params.settled(), text::parse(&out).unwrap())
    }

    #[test]
    fn numbers_agree_on_the_lesser_and_out_of_range_is_rejected() {
        let (params, out) = ask(&[
            ("MaxBurstLength", "16776192"),
            ("FirstBurstLength", "0x200"),
            ("MaxConnections", "0"),
            ("ErrorRecoveryLevel", "2"),
            ("MaxRecvDataSegmentLength", "65536"),
        ]);
        assert_eq!(params.burst_bytes, 1 << 20);
        assert_eq!(params.first_burst_bytes, 512);
        assert_eq!(params.send_segment_bytes, 65_536);
        let values: Vec<&str> = out.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["1048576", "512", "Reject", "0"]);
    }

    #[test]
    fn offers_out_of_their_range_are_rejected_and_change_nothing() {
        for (key, value) in [
            ("MaxBurstLength", "511"),
            ("MaxBurstLength", "16777216"),
            ("FirstBurstLength", "511"),
            ("MaxRecvDataSegmentLength", "511"),
            ("MaxRecvDataSegmentLength", "16777216"),
            ("MaxConnections", "65536"),
            ("MaxOutstandingR2T", "0"),
            ("ErrorRecoveryLevel", "3"),
            ("DefaultTime2Wait", "3601"),
        ] {
            let (params, out) = ask(&[(key, value)]);
            assert_eq!(params, Params::default().settled(), "{key}={value}");
            assert_eq!(out, [(key.to_owned(), "Reject".to_owned())], "{key}={value}");
        }
    }

    #[test]
    fn lists_choose_the_first_known_and_unknown_keys_are_not_understood() {
        let (params, out) = ask(&[
            ("HeaderDigest", "XXH3,CRC32C,None"),
            ("DataDigest", "None,CRC32C"),
            ("X-com.example.key", "1"),
            ("DataPDUInOrder", "No"),
            ("TaskReporting", "FastAbort,RFC3720"),
        ]);
        assert!(params.header_digest && !params.data_digest);
        let values: Vec<&str> = out.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["CRC32C", "None", "NotUnderstood", "Yes", "RFC3720"]);
    }

    #[test]
    fn the_first_burst_never_passes_the_burst() {
        let (params, _) = ask(&[("FirstBurstLength", "65536"), ("MaxBurstLength", "4096")]);
        assert_eq!(params.first_burst_bytes, 4096);
    }

    #[test]
    fn a_key_twice_is_an_error() {
        let mut negotiator = Negotiator::new();
        let limits = Limits::default();
        let mut out = Vec::new();
        assert_eq!(negotiator.take("InitialR2T", "No", &limits, &mut out), Ok(()));
        assert_eq!(negotiator.take("InitialR2T", "No", &limits, &mut out), Err(Repeated));
    }
}
