//! The login phase (RFC 7143, 6.3, 11.12 and 11.13).
//!
//! Request: flags T 80h, C 40h, CSG 0Ch, NSG 03h; 2 Version-max, 3 Version-min, 8..14 ISID, 14
//! TSIH, 20 CID. Response: 2 Version-max, 3 Version-active, 36 status class, 37 status detail.

use std::collections::BTreeSet;

use crate::event::Event;
use crate::initiator::{Initiator, Phase};
use crate::negotiation::{CONTINUE, FULL, Login, OPERATIONAL, TRANSIT, key_violation};
use crate::pdu::{Bhs, IMMEDIATE, opcode};
use crate::text;
use crate::violation::Violation;

/// The most exchanges of a login: two suffice if the target has nothing more to say.
const EXCHANGES_MAX: u32 = 16;
impl Initiator {
    /// Begins the login.
    ///
    /// # Panics
    /// If it was begun before.
    pub fn login(&mut self) {
        assert!(matches!(self.phase, Phase::Idle), "a connection logs in once");
        let stage = if self.options.security_stage { 0 } else { OPERATIONAL };
        let mut login = Login {
            itt: self.window.take_itt(),
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
        self.number(&mut bhs);
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
            return wrong("an unknown status class");
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

    /// Checks that StatSN begins anywhere and then increases by one for each response, and that
    /// CmdSN does not change.
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

    /// Checks that a new session gets its TSIH in the last response, and only there (11.13.3).
    fn check_tsih(&self, bhs: &Bhs, is_last: bool) -> Result<(), Violation> {
        let (tsih, ours) = (bhs.u16(14), self.options.tsih);
        let fits = match is_last && ours == 0 {
            true => tsih != 0,
            false => tsih == ours,
        };
        let what = "a TSIH that is not allowed";
        if fits { Ok(()) } else { Err(Violation::field(bhs.opcode(), what, "11.13.3")) }
    }

    fn take_keys(&self, login: &mut Login) -> Result<(), Violation> {
        let pairs = text::parse(&std::mem::take(&mut login.partial))?;
        let leads = !self.options.discovery && self.options.tsih == 0;
        let tag = "TargetPortalGroupTag";
        let has_tag = login.seen.contains(tag) || pairs.iter().any(|(key, _)| key == tag);
        if leads && !has_tag {
            let what = "missing in the first response";
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
