//! The login phase (RFC 7143, 6.3, 11.12 and 11.13).
//!
//! Request: flags T 80h, C 40h, CSG 0Ch, NSG 03h; 2 Version-max, 3 Version-min, 8..14 ISID, 14
//! TSIH, 20 CID. Response: 2 Version-max, 3 Version-active, 36 status class, 37 status detail.

use std::collections::BTreeSet;

use crate::event::Event;
use crate::initiator::{Initiator, Phase};
use crate::options::{Options, Terms};
use crate::pdu::{Bhs, IMMEDIATE, opcode};
use crate::text;
use crate::violation::Violation;

const TRANSIT: u8 = 0x80;
const CONTINUE: u8 = 0x40;
const OPERATIONAL: u8 = 1;
const FULL: u8 = 3;
/// Exchanges of a login at most: two are enough if the target has nothing more to say.
const EXCHANGES_MAX: u32 = 16;
/// What a target declares of its own accord.
const DECLARED: [&str; 4] =
    ["MaxRecvDataSegmentLength", "TargetPortalGroupTag", "TargetAlias", "TargetAddress"];

/// A login that has begun.
#[derive(Debug)]
pub(crate) struct Login {
    itt: u32,
    stage: u8,
    /// Whether the last request asked for the next stage.
    asked: bool,
    exchanges: u32,
    /// What was offered in this stage and is not answered.
    offered: Vec<(&'static str, String)>,
    seen: BTreeSet<String>,
    /// Text of answers with C, until one without.
    partial: Vec<u8>,
    terms: Terms,
}

impl Initiator {
    /// Begins the login.
    ///
    /// # Panics
    /// If it was begun before.
    pub fn login(&mut self) {
        assert!(matches!(self.phase, Phase::Idle), "a connection logs in once");
        let stage = if self.options.security_stage { 0 } else { OPERATIONAL };
        let mut login = Login {
            itt: self.next_tag(),
            stage,
            asked: true,
            exchanges: 0,
            offered: Vec::new(),
            seen: BTreeSet::new(),
            partial: Vec::new(),
            terms: self.terms,
        };
        let options = &self.options;
        let mut text = Vec::new();
        text::push(&mut text, "InitiatorName", &options.initiator_name);
        if options.discovery {
            text::push(&mut text, "SessionType", "Discovery");
        } else {
            text::push(&mut text, "TargetName", &options.target_name);
            text::push(&mut text, "SessionType", "Normal");
        }
        login.offer(options, &mut text);
        self.send_login(&login, &text);
        self.phase = Phase::Login(Box::new(login));
    }

    fn send_login(&mut self, login: &Login, text: &[u8]) {
        let next = if login.stage == OPERATIONAL { FULL } else { OPERATIONAL };
        let transit = if login.asked { TRANSIT | next } else { 0 };
        let mut bhs = Bhs::new(opcode::LOGIN | IMMEDIATE, transit | login.stage << 2);
        bhs.put(8, &self.options.isid);
        bhs.put(14, &self.options.tsih.to_be_bytes());
        bhs.put_u32(16, login.itt);
        bhs.put(20, &self.options.cid.to_be_bytes());
        self.number(&mut bhs, true);
        self.outgoing.push(&self.terms, bhs, &[], text);
    }

    pub(crate) fn login_response(&mut self, bhs: &Bhs, data: &[u8]) -> Result<(), Violation> {
        let phase = std::mem::replace(&mut self.phase, Phase::Over);
        let Phase::Login(mut login) = phase else { return Ok(()) };
        let opcode = bhs.opcode();
        if opcode != opcode::LOGIN_RESPONSE {
            return Err(Violation::Opcode { opcode });
        }
        let wrong = |what| Err(Violation::field(opcode, what, "11.13"));
        if bhs.itt() != login.itt {
            return Err(Violation::NeverAsked { opcode, itt: bhs.itt() });
        }
        if bhs.array::<6>(8) != self.options.isid {
            return wrong("another ISID");
        }
        let (class, detail) = (bhs.0[36], bhs.0[37]);
        if class > 3 {
            return wrong("no such status class");
        }
        if class != 0 {
            self.events.push_back(Event::LoginFailed { class, detail });
            return Ok(());
        }
        self.check_login_numbers(bhs, login.exchanges == 0)?;
        login.exchanges += 1;
        if login.exchanges > EXCHANGES_MAX {
            return Err(Violation::EndlessLogin);
        }
        let goes_on = login.check_flags(bhs)?;
        self.check_tsih(bhs, goes_on && login.stage == OPERATIONAL)?;
        login.partial.extend_from_slice(data);
        if bhs.flags() & CONTINUE != 0 {
            login.asked = false;
            return self.go_on(login, &[]);
        }
        self.take_keys(&mut login)?;
        login.asked = true;
        if !goes_on {
            return self.go_on(login, &[]);
        }
        login.check_all_answered()?;
        if login.stage == OPERATIONAL {
            return self.complete(&login, bhs.u16(14));
        }
        login.stage = OPERATIONAL;
        let mut text = Vec::new();
        login.offer(&self.options, &mut text);
        self.go_on(login, &text)
    }

    fn go_on(&mut self, login: Box<Login>, text: &[u8]) -> Result<(), Violation> {
        self.send_login(&login, text);
        self.phase = Phase::Login(login);
        Ok(())
    }

    /// StatSN begins anywhere and then goes on by one for each response; CmdSN does not move.
    fn check_login_numbers(&mut self, bhs: &Bhs, is_first: bool) -> Result<(), Violation> {
        if !is_first && bhs.stat_sn() != self.exp_stat_sn {
            return Err(Violation::StatSn { got: bhs.stat_sn(), expected: self.exp_stat_sn });
        }
        self.exp_stat_sn = bhs.stat_sn().wrapping_add(1);
        self.check_window(bhs)?;
        let (exp, next) = (bhs.u32(28), self.window.next());
        if self.options.tsih == 0 && exp != next {
            let max = bhs.u32(32);
            let what = "ExpCmdSN is not the CmdSN of the login";
            return Err(Violation::Window { exp, max, next, what });
        }
        Ok(())
    }

    /// A new session has its TSIH in the last response, and only there (11.13.3).
    fn check_tsih(&self, bhs: &Bhs, is_last: bool) -> Result<(), Violation> {
        let (tsih, ours) = (bhs.u16(14), self.options.tsih);
        let fits = match is_last && ours == 0 {
            true => tsih != 0,
            false => tsih == ours,
        };
        let what = "a TSIH that it must not have";
        if fits { Ok(()) } else { Err(Violation::field(bhs.opcode(), what, "11.13.3")) }
    }

    fn take_keys(&self, login: &mut Login) -> Result<(), Violation> {
        let pairs = text::parse(&std::mem::take(&mut login.partial))?;
        let leads = !self.options.discovery && self.options.tsih == 0;
        let tag = "TargetPortalGroupTag";
        let has_tag = login.seen.contains(tag) || pairs.iter().any(|(key, _)| key == tag);
        if leads && !has_tag {
            let what = "it is not in the first response";
            return Err(key_violation(tag, "", what));
        }
        for (key, value) in &pairs {
            login.take(key, value)?;
        }
        Ok(())
    }

    fn complete(&mut self, login: &Login, tsih: u16) -> Result<(), Violation> {
        let terms = login.terms;
        if terms.first_burst_bytes > terms.burst_bytes {
            let value = terms.first_burst_bytes.to_string();
            return Err(key_violation("FirstBurstLength", &value, "above MaxBurstLength"));
        }
        self.terms = terms;
        self.options.tsih = tsih;
        self.phase = Phase::Full;
        self.events.push_back(Event::LoggedIn { tsih });
        Ok(())
    }
}

impl Login {
    /// Adds what is offered in the stage that begins.
    fn offer(&mut self, options: &Options, text: &mut Vec<u8>) {
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
    fn check_flags(&self, bhs: &Bhs) -> Result<bool, Violation> {
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
            return wrong("a transition that was not asked for");
        }
        Ok(goes_on)
    }

    fn check_all_answered(&self) -> Result<(), Violation> {
        match self.offered.first() {
            Some((key, value)) => Err(key_violation(key, value, "the offer was not answered")),
            None => Ok(()),
        }
    }

    /// Takes a key of an answer.
    fn take(&mut self, key: &str, value: &str) -> Result<(), Violation> {
        if !self.seen.insert(key.to_owned()) {
            return Err(key_violation(key, value, "it came twice"));
        }
        if let Some(at) = self.offered.iter().position(|(offered, _)| *offered == key) {
            let (_, offer) = self.offered.swap_remove(at);
            let agreed = self.agree(key, &offer, value);
            return agreed.ok_or(key_violation(key, value, "no answer to what was offered"));
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

    /// The result of an offer, if the answer is one (the rules are those of RFC 7143, 13).
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
            // It means nothing if no data goes unasked (13.14).
            "FirstBurstLength" if value == "Irrelevant" => {
                (terms.initial_r2t && !terms.immediate_data).then_some(())
            }
            "FirstBurstLength" => lesser(512).map(|bytes| terms.first_burst_bytes = bytes),
            "MaxOutstandingR2T" => lesser(1).map(|count| terms.outstanding_r2t = count as u16),
            "MaxConnections" => lesser(1).map(|count| terms.connections = count as u16),
            // The greater of both.
            "DefaultTime2Wait" => {
                let (offer, value) = (text::number(offer)?, text::number(value)?);
                (offer..=3600).contains(&value).then_some(())
            }
            "DefaultTime2Retain" | "ErrorRecoveryLevel" => lesser(0).map(|_| ()),
            _ => None,
        }
    }
}

/// The offers. A connection that joins a session has what that agreed on.
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

fn key_violation(key: &str, value: &str, what: &'static str) -> Violation {
    Violation::Key { key: key.to_owned(), value: value.to_owned(), what }
}
