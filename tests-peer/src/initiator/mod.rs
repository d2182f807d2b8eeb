//! A small initiator that misbehaves as no real one would: it withholds solicited data, stops
//! reading, or sends partial PDUs. libiscsi does everything else.
//!
//! No digests, InitialR2T=Yes and ImmediateData=No: the target must solicit all data of a command,
//! so that a test can hold a command at any step.

mod pdu;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use libiscsi::{Cdb, Direction};

use crate::target::Target;

pub use pdu::{NO_TAG, Pdu, opcode};

/// How long a response may take before something hangs.
const HANG: Duration = Duration::from_secs(30);
/// How long a write may block before this side checks for input.
const BLOCKED: Duration = Duration::from_millis(100);

/// Task management functions (RFC 7143, 11.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// ABORT TASK.
    AbortTask = 1,
    /// ABORT TASK SET.
    AbortTaskSet = 2,
    /// CLEAR TASK SET.
    ClearTaskSet = 4,
    /// LOGICAL UNIT RESET.
    LunReset = 5,
    /// TARGET WARM RESET.
    TargetWarmReset = 6,
}

/// A command that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Its Initiator Task Tag.
    pub tag: u32,
    /// Its CmdSN.
    pub cmd_sn: u32,
}

/// One connection of a session, mostly its only one.
pub struct Initiator {
    stream: TcpStream,
    received: Vec<u8>,
    lun: [u8; 8],
    cmd_sn: u32,
    exp_stat_sn: u32,
    next_tag: u32,
    tsih: u16,
}

impl Initiator {
    /// Connects, without sending anything yet.
    pub fn connect(target: &Target) -> Result<Self> {
        let stream = TcpStream::connect(&target.portal)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(HANG))?;
        stream.set_write_timeout(Some(HANG))?;
        let mut lun = [0; 8];
        lun[..2].copy_from_slice(&target.lun.to_be_bytes());
        if target.lun >= 256 {
            lun[0] |= 0x40;
        }
        let received = Vec::new();
        Ok(Self { stream, received, lun, cmd_sn: 1, exp_stat_sn: 0, next_tag: 1, tsih: 0 })
    }

    /// Connects and logs in. The ISID and the initiator's name are the SCSI initiator port: a login
    /// with the same ones replaces the existing session (6.3.5).
    pub fn login(target: &Target, isid: u32) -> Result<Self> {
        Self::enter(target, login_request(target, isid))
    }

    /// Connects and adds a connection with this CID to a session; it replaces an existing one with
    /// the same CID (6.3.4).
    pub fn join(target: &Target, isid: u32, tsih: u16, cid: u16) -> Result<Self> {
        Self::enter(target, join_request(target, isid, tsih, cid))
    }

    fn enter(target: &Target, request: Pdu) -> Result<Self> {
        let mut this = Self::connect(target)?;
        this.send(&request)?;
        let answer = this.receive()?;
        ensure!(answer.opcode() == opcode::LOGIN_RESPONSE, "no login response: {answer:02X?}");
        let (class, detail) = (answer.header[36], answer.header[37]);
        ensure!(class == 0, "the login was refused: {class:02X}{detail:02X}h");
        ensure!(answer.header[1] & 0x83 == 0x83, "the login did not end: {:02X?}", answer.header);
        this.tsih = u16::from_be_bytes([answer.header[14], answer.header[15]]);
        Ok(this)
    }

    /// Returns the session's handle (TSIH).
    pub fn tsih(&self) -> u16 {
        self.tsih
    }

    /// Returns the socket, for other uses.
    pub fn stream(&mut self) -> &mut TcpStream {
        &mut self.stream
    }

    /// Sends a PDU as it is.
    pub fn send(&mut self, pdu: &Pdu) -> Result<()> {
        Ok(self.stream.write_all(&pdu.bytes())?)
    }

    /// Receives the next PDU. Responds to pings on the way.
    pub fn receive(&mut self) -> Result<Pdu> {
        self.receive_until(Instant::now() + HANG)?.context("no response")
    }

    /// The same; returns `None` if nothing arrived in time.
    pub fn receive_within(&mut self, time: Duration) -> Result<Option<Pdu>> {
        self.receive_until(Instant::now() + time)
    }

    /// Returns whether something has arrived, or does in this time, without receiving it.
    pub fn receive_peek(&mut self, time: Duration) -> Result<Option<()>> {
        if !self.received.is_empty() {
            return Ok(Some(()));
        }
        self.stream.set_read_timeout(Some(time))?;
        match self.stream.peek(&mut [0]) {
            Ok(_) => Ok(Some(())),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn receive_until(&mut self, deadline: Instant) -> Result<Option<Pdu>> {
        loop {
            if let Ok(pdu) = Pdu::take(&mut self.received) {
                let ping = pdu.opcode() == opcode::NOP_IN && pdu.field(20) != NO_TAG;
                if !ping {
                    self.note(&pdu);
                    return Ok(Some(pdu));
                }
                self.pong(&pdu)?;
                continue;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            if !self.take_in(left)? {
                return Ok(None);
            }
        }
    }

    /// Reads available input; returns `false` if nothing arrived in time.
    fn take_in(&mut self, time: Duration) -> Result<bool> {
        self.stream.set_read_timeout(Some(time))?;
        let mut buffer = [0; 65_536];
        match self.stream.read(&mut buffer) {
            Ok(0) => bail!("the target closed the connection"),
            Ok(count) => self.received.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Notes a PDU, so that its status is acknowledged with the next one sent (ExpStatSN).
    fn note(&mut self, pdu: &Pdu) {
        let status = match pdu.opcode() {
            opcode::R2T => false,
            opcode::DATA_IN => pdu.header[1] & 1 != 0,
            _ => true,
        };
        if status {
            self.exp_stat_sn = pdu.field(24).wrapping_add(1);
        }
    }

    fn pong(&mut self, ping: &Pdu) -> Result<()> {
        let pdu = Pdu::new(opcode::NOP_OUT | opcode::IMMEDIATE, 0x80)
            .with_bytes(8, &ping.header[8..16])
            .with(16, NO_TAG)
            .with(20, ping.field(20))
            .with(24, self.cmd_sn)
            .with(28, self.exp_stat_sn);
        self.send(&pdu)
    }

    /// Returns a request with this opcode and the next tag and CmdSN; immediate ones use up no
    /// CmdSN.
    pub fn request(&mut self, opcode: u8, flags: u8) -> Pdu {
        let pdu = Pdu::new(opcode, flags)
            .with_bytes(8, &self.lun)
            .with(16, self.next_tag)
            .with(24, self.cmd_sn)
            .with(28, self.exp_stat_sn);
        self.next_tag += 1;
        if opcode & opcode::IMMEDIATE == 0 {
            self.cmd_sn = self.cmd_sn.wrapping_add(1);
        }
        pdu
    }

    /// Sends a command that transfers this many bytes, without its data.
    pub fn command(&mut self, cdb: &Cdb, bytes: usize) -> Result<Sent> {
        let (pdu, sent) = self.command_pdu(cdb, bytes);
        self.send(&pdu)?;
        Ok(sent)
    }

    /// Returns a command without sending it.
    pub fn command_pdu(&mut self, cdb: &Cdb, bytes: usize) -> (Pdu, Sent) {
        let way = match cdb.direction() {
            Direction::None => 0,
            Direction::In => 0x40,
            Direction::Out => 0x20,
        };
        // Final, and a simple task.
        let pdu = self.request(opcode::SCSI_COMMAND, 0x80 | way | 1).with(20, bytes as u32);
        let pdu = pdu.with_bytes(32, cdb.bytes());
        let sent = Sent { tag: pdu.tag(), cmd_sn: pdu.field(24) };
        (pdu, sent)
    }

    /// Sends what an R2T solicits from all the data of its command.
    pub fn answer(&mut self, r2t: &Pdu, data: &[u8]) -> Result<()> {
        ensure!(r2t.opcode() == opcode::R2T, "no R2T: {:02X?}", r2t.header);
        let (start, length) = (r2t.field(40) as usize, r2t.field(44) as usize);
        let wanted = data
            .get(start..start + length)
            .context("the R2T requests more than the command has")?;
        self.answer_with(r2t, wanted)
    }

    /// Sends exactly this data for an R2T.
    pub fn answer_with(&mut self, r2t: &Pdu, wanted: &[u8]) -> Result<()> {
        let start = r2t.field(40) as usize;
        let mut bytes = Vec::with_capacity(wanted.len() + wanted.len() / 64);
        // Every target accepts data segments of 8 KiB (MaxRecvDataSegmentLength, 13.12).
        let last = wanted.len().div_ceil(8192).saturating_sub(1);
        for (index, piece) in wanted.chunks(8192).enumerate() {
            let pdu = Pdu::new(opcode::DATA_OUT, if index == last { 0x80 } else { 0 })
                .with_bytes(8, &self.lun)
                .with(16, r2t.tag())
                .with(20, r2t.field(20))
                .with(28, self.exp_stat_sn)
                .with(36, index as u32)
                .with(40, (start + index * 8192) as u32)
                .with_data(piece);
            bytes.extend(pdu.bytes());
        }
        self.write_taking(&bytes)
    }

    /// Sends bytes, and reads input if the target accepts none meanwhile: the target stops reading
    /// from a host that does not read its responses, and any real host reads while it writes.
    fn write_taking(&mut self, mut bytes: &[u8]) -> Result<()> {
        let deadline = Instant::now() + HANG;
        self.stream.set_write_timeout(Some(BLOCKED))?;
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => bail!("the target closed the connection"),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    ensure!(Instant::now() < deadline, "the target accepts no data");
                    self.take_in(BLOCKED)?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.stream.set_write_timeout(Some(HANG))?)
    }

    /// Requests a task management function, immediately. Returns its tag.
    pub fn manage(&mut self, function: Function, task: Sent) -> Result<u32> {
        let flags = 0x80 | function as u8;
        let mut pdu = self.request(opcode::TASK_MANAGEMENT | opcode::IMMEDIATE, flags);
        pdu = pdu.with(20, NO_TAG);
        if function == Function::AbortTask {
            pdu = pdu.with(20, task.tag).with(32, task.cmd_sn);
        }
        self.send(&pdu)?;
        Ok(pdu.tag())
    }

    /// Executes a command and waits for its end. Returns the status, and the data or, with CHECK
    /// CONDITION, the sense data after its length.
    pub fn execute(&mut self, cdb: &Cdb, out: &[u8], in_bytes: usize) -> Result<(u8, Vec<u8>)> {
        let sent = self.command(cdb, out.len().max(in_bytes))?;
        let mut data = vec![0; in_bytes];
        loop {
            let pdu = self.receive()?;
            ensure!(pdu.tag() == sent.tag, "a response to another command: {:02X?}", pdu.header);
            match pdu.opcode() {
                opcode::R2T => self.answer(&pdu, out)?,
                opcode::SCSI_RESPONSE if pdu.header[3] == 2 => return Ok((2, pdu.data)),
                opcode::SCSI_RESPONSE => return Ok((pdu.header[3], data)),
                opcode::DATA_IN => {
                    let start = pdu.field(40) as usize;
                    let place = data.get_mut(start..start + pdu.data.len());
                    place.context("data past the end")?.copy_from_slice(&pdu.data);
                    if pdu.header[1] & 1 != 0 {
                        return Ok((pdu.header[3], data));
                    }
                }
                _ => bail!("an unexpected response: {:02X?}", pdu.header),
            }
        }
    }
}

/// Returns a login request directly for operational negotiation (CSG 1), and from there to
/// full-feature phase (NSG 3).
pub fn login_request(target: &Target, isid: u32) -> Pdu {
    let leading = "SessionType=Normal\0InitialR2T=Yes\0ImmediateData=No\0MaxOutstandingR2T=1\0\
                   MaxConnections=2\0MaxBurstLength=1048576\0FirstBurstLength=65536\0\
                   ErrorRecoveryLevel=0\0DefaultTime2Wait=0\0DefaultTime2Retain=0\0";
    request(target, isid, leading)
}

/// Returns the same for another connection, without session-wide parameters.
fn join_request(target: &Target, isid: u32, tsih: u16, cid: u16) -> Pdu {
    let cid = cid.to_be_bytes();
    request(target, isid, "").with_bytes(14, &tsih.to_be_bytes()).with_bytes(20, &cid)
}

fn request(target: &Target, isid: u32, leading: &str) -> Pdu {
    let text = format!(
        "InitiatorName={}\0TargetName={}\0HeaderDigest=None\0DataDigest=None\0\
         MaxRecvDataSegmentLength=262144\0{leading}",
        target.initiator, target.name
    );
    // An ISID of the random format (11.12.5): 80h, 24 random bits, 16 bits of a qualifier.
    let [high, low @ ..] = isid.to_be_bytes();
    let isid = [0x80, 0x52, high, low[0], low[1], low[2]];
    Pdu::new(opcode::LOGIN | opcode::IMMEDIATE, 0x87)
        .with_bytes(8, &isid)
        .with(16, 0)
        .with(24, 1)
        .with_data(text.as_bytes())
}
