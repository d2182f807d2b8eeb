//! A target that sends anything, in handmade PDUs.

use super::*;
use crate::pdu::{Bhs, FINAL, NO_TAG, digest, opcode, padding};

/// A target that sends anything.
pub(super) struct Liar {
    pub(super) host: Initiator,
    pub(super) stat_sn: u32,
    pub(super) exp: u32,
    pub(super) max: u32,
    pub(super) header_digest: bool,
    pub(super) data_digest: bool,
}

pub(super) const TERMS: &[u8] = b"TargetPortalGroupTag=1\0HeaderDigest=None\0DataDigest=None\0\
    DefaultTime2Wait=0\0DefaultTime2Retain=0\0ErrorRecoveryLevel=0\0InitialR2T=Yes\0\
    ImmediateData=Yes\0MaxBurstLength=4096\0FirstBurstLength=1024\0MaxOutstandingR2T=2\0\
    MaxConnections=1\0DataPDUInOrder=Yes\0DataSequenceInOrder=Yes\0";

impl Liar {
    /// Returns one with the login request sent.
    pub(super) fn asked(options: Options) -> Self {
        let mut host = Initiator::new(Options { security_stage: false, ..options });
        host.login();
        let sent = host.output().len();
        host.taken(sent);
        Self { host, stat_sn: 77, exp: 1, max: 1, header_digest: false, data_digest: false }
    }

    pub(super) fn login_response(&self) -> Bhs {
        let mut bhs = Bhs::new(opcode::LOGIN_RESPONSE, 0x87);
        bhs.put(8, &self.host.options().isid);
        bhs.put(14, &[0, 5]);
        bhs.put_u32(16, 1);
        bhs
    }

    /// Returns one that is logged in, with a window of 16.
    pub(super) fn new() -> Self {
        Self::with(Options { max_recv_data_segment_bytes: 4096, ..options() }, TERMS)
    }

    pub(super) fn with(options: Options, terms: &[u8]) -> Self {
        let mut liar = Self::asked(options);
        liar.max = 16;
        assert_eq!(liar.say(liar.login_response(), terms), Ok(()));
        assert_eq!(liar.host.next_event(), Some(Event::LoggedIn { tsih: 5 }));
        liar
    }

    /// Sends a PDU with the next StatSN, used up or not.
    pub(super) fn say_with(
        &mut self,
        mut bhs: Bhs,
        data: &[u8],
        advances: bool,
    ) -> Result<(), Violation> {
        bhs.put_u32(24, self.stat_sn);
        bhs.put_u32(28, self.exp);
        bhs.put_u32(32, self.max);
        self.stat_sn = self.stat_sn.wrapping_add(u32::from(advances));
        self.raw(bhs, data)
    }

    pub(super) fn say(&mut self, bhs: Bhs, data: &[u8]) -> Result<(), Violation> {
        self.say_with(bhs, data, true)
    }

    pub(super) fn raw(&mut self, mut bhs: Bhs, data: &[u8]) -> Result<(), Violation> {
        bhs.put_data_bytes(data.len());
        let mut bytes = bhs.0.to_vec();
        if self.header_digest {
            bytes.extend_from_slice(&digest(&bhs.0));
        }
        let at = bytes.len();
        bytes.extend_from_slice(data);
        bytes.resize(at + data.len() + padding(data.len()), 0);
        if self.data_digest && !data.is_empty() {
            let sum = digest(&bytes[at..]);
            bytes.extend_from_slice(&sum);
        }
        self.host.receive(&bytes)
    }

    /// Sends a read, and lets the target receive it.
    pub(super) fn read(&mut self, bytes: u32) -> Itt {
        self.exp += 1;
        self.host.command(LUN, &[0x28; 10], Attribute::Simple, None, bytes).unwrap()
    }

    /// Sends a write of `bytes` bytes, of which the first 1024 are immediate data.
    pub(super) fn write(&mut self, bytes: usize) -> Itt {
        self.exp += 1;
        let itt = self.host.command(LUN, &[0x2a; 10], Attribute::Simple, Some(vec![1; bytes]), 0);
        self.take();
        itt.unwrap()
    }

    pub(super) fn take(&mut self) {
        let bytes = self.host.output().len();
        self.host.taken(bytes);
    }
}

pub(super) fn response(itt: Itt, status: u8, exp_data_sn: u32) -> Bhs {
    let mut bhs = Bhs::new(opcode::RESPONSE, FINAL);
    bhs.0[3] = status;
    bhs.put_u32(16, itt.0);
    bhs.put_u32(36, exp_data_sn);
    bhs
}

pub(super) fn with_residual(mut bhs: Bhs, flag: u8, count: u32) -> Bhs {
    bhs.0[1] |= flag;
    bhs.put_u32(44, count);
    bhs
}

pub(super) fn data_in(itt: Itt, flags: u8, sn: u32, offset: u32) -> Bhs {
    let mut bhs = Bhs::new(opcode::DATA_IN, flags);
    bhs.put_u32(16, itt.0);
    bhs.put_u32(20, NO_TAG);
    bhs.put_u32(36, sn);
    bhs.put_u32(40, offset);
    bhs
}

pub(super) fn r2t(itt: Itt, sn: u32, offset: u32, bytes: u32) -> Bhs {
    let mut bhs = Bhs::new(opcode::R2T, FINAL);
    bhs.put(8, &LUN);
    bhs.put_u32(16, itt.0);
    bhs.put_u32(20, 9);
    bhs.put_u32(36, sn);
    bhs.put_u32(40, offset);
    bhs.put_u32(44, bytes);
    bhs
}

pub(super) fn plain(opcode: u8, itt: u32) -> Bhs {
    let mut bhs = Bhs::new(opcode, FINAL);
    bhs.put_u32(16, itt);
    bhs
}

/// Returns the message of a violation, which must exist.
pub(super) fn message(result: Result<(), Violation>) -> String {
    result.expect_err("a violation").to_string()
}

macro_rules! assert_says {
    ($result:expr, $text:expr) => {
        let message = message($result);
        assert!(message.contains($text), "{message}");
    };
}

pub(super) use assert_says;
