//! The attacks of bad initiators.

use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use libiscsi::Cdb;

use crate::initiator::{Function, Initiator, NO_TAG, Pdu, Sent, login_request, opcode};
use crate::target::Target;

/// The blocks of 1 MiB.
const LONG: u32 = 2048;
/// The number of sessions that don't read what they requested.
const DEAF: usize = 4;
/// The commands of a session that does not read, or does not answer R2Ts.
const COMMANDS: u64 = 32;
/// How long those stay.
const STAY: Duration = Duration::from_secs(2);
/// How long a flood lasts.
const FLOOD: Duration = Duration::from_secs(3);
/// The number of sessions that vanish.
pub const VANISHING: u32 = 500;
/// How often each header is sent.
const HEADERS: usize = 10;

/// The attacked target.
pub struct Field {
    target: Target,
    isids: AtomicU32,
}

impl Field {
    pub fn new(target: &Target) -> Self {
        Self { target: target.clone(), isids: AtomicU32::new(0x68_6f00) }
    }

    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Returns an ISID that no other attacker has.
    pub fn isid(&self) -> u32 {
        self.isids.fetch_add(1, Ordering::Relaxed)
    }

    fn log_in(&self) -> Result<Initiator> {
        let mut initiator = Initiator::login(&self.target, self.isid())?;
        // The first command reports the power on.
        initiator.execute(&Cdb::test_unit_ready(), &[], 0)?;
        Ok(initiator)
    }
}

/// Requests much data, and never reads its socket.
pub fn deaf(field: &Field) -> Result<String> {
    let mut all = Vec::new();
    for _ in 0..DEAF {
        let mut initiator = field.log_in()?;
        for _ in 0..COMMANDS {
            initiator.command(&Cdb::read_16(0, LONG), (LONG as usize) * 512)?;
        }
        all.push(initiator);
    }
    thread::sleep(STAY);
    // They end with data in transit to them.
    Ok(format!("{} sessions", all.len()))
}

/// Announces writes to the good session's blocks, without their data.
pub fn r2ts(field: &Field) -> Result<String> {
    let mut all = Vec::new();
    let mut asked = 0;
    for _ in 0..DEAF {
        let mut initiator = field.log_in()?;
        for index in 0..COMMANDS {
            let lba = index % 8 * u64::from(LONG);
            initiator.command(&Cdb::write_16(lba, LONG), (LONG as usize) * 512)?;
        }
        while let Some(pdu) = initiator.receive_within(Duration::from_millis(200))? {
            ensure!(pdu.opcode() == opcode::R2T, "no R2T: {:02X?}", pdu.header);
            asked += 1;
        }
        all.push(initiator);
    }
    ensure!(asked >= DEAF, "{asked} R2Ts came");
    thread::sleep(STAY);
    Ok(format!("{asked} R2Ts of {} sessions", all.len()))
}

/// Sends requests endlessly: two initiators read the responses, two never do.
pub fn floods(field: &Field) -> Result<String> {
    let total = |results: Vec<Result<(usize, usize)>>| -> Result<(usize, usize)> {
        let mut all = (0, 0);
        for result in results {
            let (sent, answered) = result?;
            all = (all.0 + sent, all.1 + answered);
        }
        Ok(all)
    };
    let (sent, answered) = thread::scope(|scope| {
        let floods =
            [true, true, false, false].map(|reads| scope.spawn(move || flood(field, reads)));
        let results = floods.map(|flood| flood.join().unwrap_or_else(|_| Err(anyhow!("a panic"))));
        total(results.into())
    })?;
    ensure!(answered > 0, "there were no responses");
    Ok(format!("{sent} requests, {answered} answers"))
}

/// Runs one flood. Returns how many requests were sent, and how many got a response. If the
/// target accepts no more, or has closed the connection, the initiator reconnects.
fn flood(field: &Field, reads: bool) -> Result<(usize, usize)> {
    let begin = Instant::now();
    let (mut sent, mut answered) = (0, 0);
    while begin.elapsed() < FLOOD {
        let mut initiator = field.log_in()?;
        initiator.stream().set_write_timeout(Some(Duration::from_millis(300)))?;
        while begin.elapsed() < FLOOD {
            if batch(&mut initiator).is_err() {
                break;
            }
            sent += BATCH;
            let mut wanted = if reads { BATCH } else { 0 };
            while wanted > 0 {
                match initiator.receive_within(Duration::from_millis(20)) {
                    Ok(Some(_)) => answered += 1,
                    Ok(None) => break,
                    Err(_) => wanted = 1,
                }
                wanted -= 1;
            }
        }
    }
    Ok((sent, answered))
}

/// The number of requests sent at once.
const BATCH: usize = 64;

fn batch(initiator: &mut Initiator) -> Result<()> {
    let data = [0x70; 4096];
    for index in 0..BATCH {
        // Some take a place in the window, which is soon full.
        let immediate = if index % 16 == 0 { 0 } else { opcode::IMMEDIATE };
        let pdu = match index % 3 {
            0 => initiator.request(opcode::NOP_OUT | immediate, 0x80).with_data(&data),
            1 => {
                let nothing = Sent { tag: 0xffff_0000, cmd_sn: 1 };
                initiator.manage(Function::AbortTask, nothing)?;
                continue;
            }
            _ => initiator.request(opcode::TEXT | immediate, 0x80).with_data(b"SendTargets=\0"),
        };
        initiator.send(&pdu.with(20, NO_TAG))?;
    }
    Ok(())
}

/// Sends headers that claim more than the limits, during login and after it: each gets a
/// response, or ends the connection, and the target does not wait for the rest.
pub fn headers(field: &Field) -> Result<String> {
    let mut ended = 0;
    for _ in 0..HEADERS {
        for claim in [Claim::Data, Claim::Additional, Claim::Both] {
            for code in [opcode::NOP_OUT, opcode::SCSI_COMMAND, opcode::DATA_OUT, opcode::TEXT] {
                let mut initiator = field.log_in()?;
                let pdu = initiator.request(code | opcode::IMMEDIATE, 0x80);
                ended += usize::from(claim.try_on(&mut initiator, &pdu)?);
            }
            let mut initiator = Initiator::connect(field.target())?;
            let pdu = login_request(field.target(), field.isid());
            ended += usize::from(claim.try_on(&mut initiator, &pdu)?);
        }
    }
    ensure!(ended > 0, "no connection was ended");
    Ok(format!("{} headers, {ended} connections ended", HEADERS * 15))
}

/// What a header claims.
#[derive(Clone, Copy, Debug)]
enum Claim {
    /// A data segment of 16 MiB less one byte.
    Data,
    /// 1,020 bytes of additional headers, each of which claims to be longer than that.
    Additional,
    Both,
}

impl Claim {
    /// Sends the header and part of what it claims. Returns whether the target ended the
    /// connection.
    fn try_on(self, initiator: &mut Initiator, pdu: &Pdu) -> Result<bool> {
        let mut bytes = pdu.header.to_vec();
        if let Self::Additional | Self::Both = self {
            bytes[4] = 0xff;
            bytes.extend_from_slice(&[0xff; 1020]);
        }
        if let Self::Data | Self::Both = self {
            bytes[5..8].fill(0xff);
            bytes.resize(bytes.len() + (256 << 10), 0);
        }
        // The target may close before it has received everything.
        let _ = initiator.stream().write_all(&bytes);
        if let Self::Additional = self {
            // The stream stays in sync after it, or the connection is closed.
            let ping = initiator.request(opcode::NOP_OUT | opcode::IMMEDIATE, 0x80);
            let _ = initiator.send(&ping.with(20, NO_TAG));
        }
        match initiator.receive_within(Duration::from_secs(10)) {
            Ok(Some(_)) => Ok(false),
            Ok(None) => bail!("{self:?} with {:02X?}: the target does not react", pdu.header),
            Err(_) => Ok(true),
        }
    }
}

/// Logs in, sends a command, and closes with the response unread, so that the kernel resets the
/// connection (RFC 1122, 4.2.2.13).
pub fn vanish(field: &Field) -> Result<String> {
    for index in 0..VANISHING {
        // Every second one replaces one that is gone, whether that is known or not.
        let isid = 0x76_0000 + index / 2;
        let mut initiator = Initiator::login(field.target(), isid)?;
        initiator.command(&Cdb::read_16(0, 64), 64 * 512)?;
        initiator.stream().peek(&mut [0])?;
    }
    Ok(format!("{VANISHING} sessions"))
}
