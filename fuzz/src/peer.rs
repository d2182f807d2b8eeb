//! The initiator's end of a connection: bytes in, bytes out, and their invariants.

use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::time::Duration;

use iscsi::{
    Access, ChapCredentials, Connection, InitiatorAccess, Limits, Opening, Portal, Target,
    TargetConfig,
};

/// The initiator that logs in without authentication.
pub const INITIATOR: &str = "iqn.2026-01.example:initiator";
/// The target.
pub const TARGET: &str = "iqn.2026-01.example:target";
/// Bytes in a basic header segment (RFC 7143, 11.2.1).
pub const BHS_BYTES: usize = 48;
/// MaxRecvDataSegmentLength of this initiator.
const SEGMENT_BYTES: usize = 4096;
/// The most output that a target may queue, and the most that one more answer adds.
const OUTPUT_BYTES: usize = 1 << 20;
const ANSWER_BYTES: usize = 1 << 20;

/// Admits names with our prefix; names that contain `chap` must authenticate.
struct Known;

impl Access for Known {
    fn initiator(&self, name: &str) -> Option<InitiatorAccess> {
        let chap = name.contains("chap").then(|| ChapCredentials {
            user: "anna".into(),
            secret: b"twelve bytes or more".to_vec(),
            mutual: Some(("array".into(), b"another good secret".to_vec())),
        });
        name.starts_with("iqn.2026-01.example").then_some(InitiatorAccess { chap })
    }
}

/// Creates a target with low limits.
pub fn target() -> Arc<Target> {
    let portal = |address: &str, tag| {
        let address = address.parse().expect("the address is constant");
        Portal { address, tag }
    };
    Target::new(TargetConfig {
        target_name: TARGET.into(),
        target_alias: "fuzz".into(),
        portals: vec![portal("192.0.2.1:3260", 1), portal("[fe80::1]:3261", 2)],
        limits: Limits {
            commands_per_session: 8,
            immediate_commands_per_connection: 4,
            sessions: 4,
            connections_per_session: 3,
            receive_segment_bytes: 8192,
            burst_bytes: 16_384,
            first_burst_bytes: 8192,
            data_out_bytes_per_command: 64 << 10,
            data_out_bytes_per_connection: 128 << 10,
            output_bytes: OUTPUT_BYTES,
            ..Limits::default()
        },
        access: Arc::new(Known),
        data_out_phase: scsi::data_out_phase,
        data_out_bytes: |_, _, cdb| Some(scsi::data_out_bytes(cdb, 512)),
    })
}

/// The most unanswered commands of a connection of such a target.
pub const OUTSTANDING_MAX: usize = 8 + 4;

/// The initiator's end.
pub struct Peer {
    /// The target's end.
    pub connection: Connection,
    /// The time.
    pub now: Duration,
    /// The size of the pieces in which bytes arrive.
    pub chunk: usize,
    /// Whether headers have digests.
    pub header_digest: bool,
    /// Whether data segments have digests.
    pub data_digest: bool,
    /// The session handle (TSIH).
    pub tsih: u16,
    cid: u16,
    inbox: Vec<u8>,
    /// The next StatSN, once it is known.
    stat_sn: Option<u32>,
}

/// Encodes `key=value` pairs (RFC 7143, 6.1).
pub fn text(pairs: &[(&str, &str)]) -> Vec<u8> {
    pairs.iter().flat_map(|(key, value)| format!("{key}={value}\0").into_bytes()).collect()
}

fn padded(mut data: Vec<u8>) -> Vec<u8> {
    data.resize(data.len().next_multiple_of(4), 0);
    data
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Peer {
    /// Creates a connection that was just accepted.
    pub fn new(target: &Arc<Target>, cid: u16) -> Self {
        let now = Duration::from_secs(100);
        let opening = Opening {
            portal_index: 0,
            local: "192.0.2.1:3260".parse().expect("the address is constant"),
            peer: "192.0.2.9:40000".parse().expect("the address is constant"),
            entropy: [7; 32],
            now,
        };
        Self {
            connection: Connection::new(target.clone(), opening),
            now,
            chunk: usize::MAX,
            header_digest: false,
            data_digest: false,
            tsih: 0,
            cid,
            inbox: Vec::new(),
            stat_sn: None,
        }
    }

    /// Returns the header of a login request.
    pub fn login_header(&self, flags: u8, cmd_sn: u32) -> [u8; BHS_BYTES] {
        let mut bhs = [0; BHS_BYTES];
        (bhs[0], bhs[1]) = (0x43, flags);
        (bhs[8], bhs[13]) = (0x80, 1);
        bhs[14..16].copy_from_slice(&self.tsih.to_be_bytes());
        bhs[19] = 0x55;
        bhs[20..22].copy_from_slice(&self.cid.to_be_bytes());
        bhs[24..28].copy_from_slice(&cmd_sn.to_be_bytes());
        bhs
    }

    /// Logs in with these keys. Returns whether that succeeded.
    pub fn log_in(&mut self, keys: &[(&str, &str)], cmd_sn: u32) -> bool {
        let segment = SEGMENT_BYTES.to_string();
        let mut all = vec![
            ("InitiatorName", INITIATOR),
            ("TargetName", TARGET),
            ("SessionType", "Normal"),
            ("MaxRecvDataSegmentLength", &segment),
        ];
        all.extend_from_slice(keys);
        self.send(self.login_header(0x87, cmd_sn), &text(&all));
        self.pull(usize::MAX);
        let answer: Vec<u8> = std::mem::take(&mut self.inbox);
        if answer.len() < BHS_BYTES || answer[0] != 0x23 || answer[36] != 0 {
            return false;
        }
        self.tsih = u16::from_be_bytes([answer[14], answer[15]]);
        self.stat_sn = Some(word(&answer, 24).wrapping_add(1));
        let asked = |name| keys.iter().any(|(key, value)| *key == name && *value == "CRC32C");
        self.header_digest = asked("HeaderDigest");
        self.data_digest = asked("DataDigest");
        true
    }

    /// Returns the bytes of a PDU.
    pub fn frame(&self, mut bhs: [u8; BHS_BYTES], data: &[u8]) -> Vec<u8> {
        bhs[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        let mut bytes = bhs.to_vec();
        if self.header_digest {
            bytes.extend(crc32c::crc32c(&bhs).to_le_bytes());
        }
        let data = padded(data.to_vec());
        if self.data_digest && !data.is_empty() {
            bytes.extend(&data);
            bytes.extend(crc32c::crc32c(&data).to_le_bytes());
            return bytes;
        }
        bytes.extend(data);
        bytes
    }

    /// Sends a PDU.
    pub fn send(&mut self, bhs: [u8; BHS_BYTES], data: &[u8]) {
        let bytes = self.frame(bhs, data);
        self.push(&bytes);
    }

    /// Passes bytes to the target, as long as it accepts them.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let mut slices: Vec<IoSliceMut<'_>> = Vec::new();
            self.connection.receive_slices(&mut slices);
            assert!(slices.len() <= 257, "{} slices to receive into", slices.len());
            let most = (bytes.len() - done).min(self.chunk);
            let mut put = 0;
            for slice in &mut slices {
                let n = slice.len().min(most - put);
                slice[..n].copy_from_slice(&bytes[done + put..done + put + n]);
                put += n;
            }
            if put == 0 {
                break;
            }
            self.connection.received(put, self.now);
            done += put;
        }
    }

    /// Receives up to `bytes_max` bytes of the target's output.
    pub fn pull(&mut self, bytes_max: usize) {
        let mut left = bytes_max;
        while self.connection.has_output() && left > 0 {
            let mut slices: Vec<IoSlice<'_>> = Vec::new();
            let most = left.min(100_000);
            self.connection.transmit_slices(&mut slices, most);
            let mut bytes = 0;
            for slice in &slices {
                self.inbox.extend_from_slice(slice);
                bytes += slice.len();
            }
            assert!(bytes > 0 && bytes <= most && slices.len() <= 512);
            self.connection.transmitted(bytes);
            left -= bytes;
        }
    }

    /// Reads all received PDUs. Returns the tags, offsets and lengths of R2Ts.
    pub fn read(&mut self) -> Vec<(u32, u32, u32, u32)> {
        let mut asked = Vec::new();
        while let Some((bhs, bytes)) = self.next_pdu() {
            if let Some(want) = self.stat_sn.filter(|_| advances(&bhs)) {
                assert_eq!(word(&bhs, 24), want, "StatSN of opcode {:#x}", bhs[0]);
                self.stat_sn = Some(want.wrapping_add(1));
            }
            if bhs[0] == 0x31 {
                assert!(word(&bhs, 44) > 0, "an R2T for no data");
                asked.push((word(&bhs, 16), word(&bhs, 20), word(&bhs, 40), word(&bhs, 44)));
            }
            self.inbox.drain(..bytes);
        }
        let output_bytes = self.connection.output_bytes();
        assert!(output_bytes <= OUTPUT_BYTES + ANSWER_BYTES, "{output_bytes} bytes of output");
        assert!(self.connection.outstanding() <= OUTSTANDING_MAX);
        asked
    }

    /// Returns the next complete PDU in the inbox, and its length with padding and digests.
    fn next_pdu(&self) -> Option<([u8; BHS_BYTES], usize)> {
        let bhs = *self.inbox.first_chunk::<BHS_BYTES>()?;
        assert!(
            matches!(bhs[0], 0x20..=0x26 | 0x31 | 0x32 | 0x3f),
            "a target sends no opcode {:#x}",
            bhs[0]
        );
        assert_eq!(bhs[4], 0, "a target sends no additional header segments");
        let data_bytes = (word(&bhs, 4) & 0xff_ffff) as usize;
        assert!(data_bytes <= SEGMENT_BYTES, "{data_bytes} bytes in a PDU");
        let mut at = BHS_BYTES;
        if self.header_digest {
            let digest = self.inbox.get(at..at + 4)?;
            assert_eq!(digest, crc32c::crc32c(&bhs).to_le_bytes());
            at += 4;
        }
        let end = at + data_bytes.next_multiple_of(4);
        let data = self.inbox.get(at..end)?;
        if self.data_digest && data_bytes > 0 {
            let digest = self.inbox.get(end..end + 4)?;
            assert_eq!(digest, crc32c::crc32c(data).to_le_bytes());
            return Some((bhs, end + 4));
        }
        Some((bhs, end))
    }
}

/// Returns whether a PDU of the target has a StatSN (RFC 7143, 4.2.2.2): if it carries a status, or
/// is a response.
fn advances(bhs: &[u8; BHS_BYTES]) -> bool {
    match bhs[0] {
        0x20 => word(bhs, 16) != u32::MAX,
        0x25 => bhs[1] & 1 == 1,
        0x21..=0x24 | 0x26 | 0x32 | 0x3f => true,
        _ => false,
    }
}
