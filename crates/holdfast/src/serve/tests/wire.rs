//! Handmade PDUs (RFC 7143, 11) for what no tool sends.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{Running, TARGET, create_pool, serve};

const WRITE_10: [u8; 10] = [0x2a, 0, 0, 0, 0, 0, 0, 0, 8, 0];
const TEST_UNIT_READY: [u8; 10] = [0; 10];
/// Task management functions.
const ABORT_TASK_SET: u8 = 2;
const CLEAR_TASK_SET: u8 = 4;

/// Opcodes of PDUs from the target.
const SCSI_RESPONSE: u8 = 0x21;
const MANAGEMENT_RESPONSE: u8 = 0x22;
const LOGIN_RESPONSE: u8 = 0x23;
const R2T: u8 = 0x31;

/// Runs a test on a new pool, served once with each of these numbers of threads. Its result is
/// dropped after the array has ended.
pub(super) fn on_arrays<T>(threads: &[usize], mut test: impl FnMut(&Running) -> T) {
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("pool");
    create_pool(&pool);
    for threads in threads {
        let array = serve(&pool, *threads);
        let kept = test(&array);
        array.stop();
        drop(kept);
    }
}

/// A session of one connection.
pub(super) struct Initiator {
    stream: TcpStream,
    tag: u32,
    cmd_sn: u32,
    /// ASC and ASCQ of the first unit attention of LUN 1 and 2.
    first_attentions: [(u8, u8); 2],
}

impl Initiator {
    pub(super) fn login(portal: SocketAddr, name: &str) -> Self {
        let stream = TcpStream::connect(portal).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut this = Self { stream, tag: 0, cmd_sn: 1, first_attentions: [(0, 0); 2] };
        let keys = format!(
            "InitiatorName=iqn.2026-01.example:{name}\0TargetName={TARGET}\0SessionType=Normal\0\
             InitialR2T=Yes\0ImmediateData=No\0"
        );
        // A login request from the operational stage to full-feature phase.
        let mut bhs = [0; 48];
        (bhs[0], bhs[1]) = (0x43, 0x87);
        bhs[8..14].copy_from_slice(&[0x80, 0, 0, 0, 0, 1]);
        bhs[24..28].copy_from_slice(&this.cmd_sn.to_be_bytes());
        this.send(bhs, keys.as_bytes());
        let (bhs, _) = this.receive(LOGIN_RESPONSE);
        assert_eq!(bhs[36..38], [0, 0], "the login fails");
        this.first_attentions = [1, 2].map(|lun| this.first_attention(lun));
        this
    }

    /// Returns the unit attention that a LUN first reports in a new session.
    fn first_attention(&mut self, lun: u8) -> (u8, u8) {
        let (status, sense) = self.ready(lun);
        assert_eq!(status, 2);
        let (key, asc, ascq) = sense.unwrap();
        if key == 5 {
            return (asc, ascq); // no such unit
        }
        assert_eq!(self.ready(lun), (0, None));
        assert_eq!(key, 6);
        (asc, ascq)
    }

    fn send(&mut self, mut bhs: [u8; 48], data: &[u8]) {
        self.tag += 1;
        bhs[5..8].copy_from_slice(&(data.len() as u32).to_be_bytes()[1..]);
        bhs[16..20].copy_from_slice(&self.tag.to_be_bytes());
        let mut bytes = bhs.to_vec();
        bytes.extend(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        self.stream.write_all(&bytes).unwrap();
    }

    pub(super) fn receive(&mut self, opcode: u8) -> ([u8; 48], Vec<u8>) {
        let mut bhs = [0; 48];
        self.stream.read_exact(&mut bhs).unwrap();
        let length = u32::from_be_bytes([0, bhs[5], bhs[6], bhs[7]]) as usize;
        let mut data = vec![0; length.next_multiple_of(4)];
        self.stream.read_exact(&mut data).unwrap();
        assert_eq!(bhs[0] & 0x3f, opcode);
        (bhs, data)
    }

    /// Sends a SCSI command to LUN 1, without data.
    fn command(&mut self, cdb: [u8; 10], flags: u8, bytes: u32) {
        self.command_to(1, cdb, flags, bytes);
    }

    /// Sends a SCSI command without data; returns its task tag.
    pub(super) fn command_to(&mut self, lun: u8, cdb: [u8; 10], flags: u8, bytes: u32) -> u32 {
        let mut bhs = [0; 48];
        (bhs[0], bhs[1], bhs[9]) = (0x01, 0x80 | flags, lun);
        bhs[20..24].copy_from_slice(&bytes.to_be_bytes());
        bhs[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        bhs[32..42].copy_from_slice(&cdb);
        self.cmd_sn += 1;
        self.send(bhs, &[]);
        self.tag
    }

    /// Sends the data that an R2T solicits, in one PDU.
    pub(super) fn answer(&mut self, r2t: &[u8; 48]) {
        let mut bhs = [0; 48];
        (bhs[0], bhs[1]) = (0x05, 0x80);
        let bytes = u32::from_be_bytes(r2t[44..48].try_into().unwrap()) as usize;
        bhs[20..24].copy_from_slice(&r2t[20..24]);
        bhs[40..44].copy_from_slice(&r2t[40..44]);
        // Data has the tag of its command.
        let tag = std::mem::replace(&mut self.tag, 0);
        self.tag = u32::from_be_bytes(r2t[16..20].try_into().unwrap()) - 1;
        self.send(bhs, &vec![7; bytes]);
        self.tag = tag;
    }

    /// Begins a write to a LUN in this encoding, up to its R2T.
    pub(super) fn begin_write(&mut self, lun: [u8; 2]) -> [u8; 48] {
        let mut bhs = [0; 48];
        (bhs[0], bhs[1]) = (0x01, 0xa0);
        bhs[8..10].copy_from_slice(&lun);
        bhs[20..24].copy_from_slice(&4096_u32.to_be_bytes());
        bhs[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        bhs[32..42].copy_from_slice(&WRITE_10);
        self.cmd_sn += 1;
        self.send(bhs, &[]);
        self.receive(R2T).0
    }

    /// Sends TEST UNIT READY to LUN 1.
    pub(super) fn test_unit_ready(&mut self) -> (u8, Option<(u8, u8, u8)>) {
        self.ready(1)
    }

    /// Sends TEST UNIT READY: returns the status, and sense key, ASC and ASCQ.
    pub(super) fn ready(&mut self, lun: u8) -> (u8, Option<(u8, u8, u8)>) {
        self.command_to(lun, TEST_UNIT_READY, 0, 0);
        let (bhs, data) = self.receive(SCSI_RESPONSE);
        // Sense data in fixed format follows a length of two bytes.
        (bhs[3], (data.len() > 15).then(|| (data[4] & 0x0f, data[14], data[15])))
    }

    /// Returns a command without data, to be sent later.
    fn command_bytes(&mut self, lun: u8, cdb: [u8; 10]) -> [u8; 48] {
        let mut bhs = [0; 48];
        (bhs[0], bhs[1], bhs[9]) = (0x01, 0x80, lun);
        bhs[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        bhs[32..42].copy_from_slice(&cdb);
        self.cmd_sn += 1;
        self.tag += 1;
        bhs[16..20].copy_from_slice(&self.tag.to_be_bytes());
        bhs
    }

    /// Returns an immediate task management request for LUN 1, to be sent later.
    fn management_bytes(&mut self, function: u8) -> [u8; 48] {
        let mut bhs = [0; 48];
        (bhs[0], bhs[1], bhs[9]) = (0x42, 0x80 | function, 1);
        bhs[20..24].fill(0xff);
        bhs[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        self.tag += 1;
        bhs[16..20].copy_from_slice(&self.tag.to_be_bytes());
        bhs
    }

    /// Returns the opcode of the next PDU.
    fn next_opcode(&mut self) -> u8 {
        let mut bhs = [0; 48];
        self.stream.read_exact(&mut bhs).unwrap();
        let length = u32::from_be_bytes([0, bhs[5], bhs[6], bhs[7]]) as usize;
        self.stream.read_exact(&mut vec![0; length.next_multiple_of(4)]).unwrap();
        bhs[0] & 0x3f
    }

    /// Sends an immediate task management request for LUN 1. Returns its response.
    pub(super) fn manage(&mut self, function: u8) -> u8 {
        self.manage_at(function, [0, 1])
    }

    /// The same for a LUN in this encoding.
    pub(super) fn manage_at(&mut self, function: u8, lun: [u8; 2]) -> u8 {
        let mut bytes = self.management_bytes(function);
        bytes[8..10].copy_from_slice(&lun);
        self.stream.write_all(&bytes).unwrap();
        self.receive(MANAGEMENT_RESPONSE).0[2]
    }
}

#[test]
fn a_session_gets_a_power_on_or_a_nexus_loss_attention() {
    on_arrays(&[2, 2], |array| {
        let portal = array.running.portals[0];
        let first = Initiator::login(portal, "one");
        assert_eq!(first.first_attentions, [(0x29, 0x00); 2], "power on");
        // The next one replaces it: the first is lost before it begins.
        let second = Initiator::login(portal, "one");
        assert_eq!(second.first_attentions, [(0x29, 0x07); 2], "nexus loss");
        assert_eq!(Initiator::login(portal, "two").first_attentions, [(0x29, 0x00); 2]);
        drop((first, second));
    });
}

/// A hundred VERIFYs that the store answers at once are work for many turns: what arrives after
/// them, an abort or commands of another host, is processed between them.
#[test]
fn many_long_verifies_do_not_delay_an_abort() {
    on_arrays(&[1], |array| {
        let mut loud = Initiator::login(array.running.portals[0], "loud");
        let verify = [0x2f, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0];
        const VERIFIES: usize = 100;
        // In one piece, so that the target receives the abort together with the last of them.
        let mut burst: Vec<u8> =
            (0..VERIFIES).flat_map(|_| loud.command_bytes(1, verify)).collect();
        burst.extend(loud.management_bytes(2));
        loud.stream.write_all(&burst).unwrap();
        let mut answered = 0;
        while loud.next_opcode() == SCSI_RESPONSE {
            answered += 1;
        }
        // A turn reads 4 MiB and each VERIFY is 32 MiB: few are done while the burst is received.
        assert!(
            answered < VERIFIES / 2,
            "{answered} of {VERIFIES} were done before ABORT TASK SET"
        );
        assert_eq!(loud.ready(1), (0, None));
        drop(loud);
    });
}

#[test]
fn no_data_is_solicited_at_a_lun_without_a_volume() {
    on_arrays(&[1], |array| {
        let mut one = Initiator::login(array.running.portals[0], "one");
        // WRITE (10), and an unknown CDB.
        for opcode in [0x2a, 0xff] {
            let cdb = [opcode, 0, 0, 0, 0, 0, 0, 0x80, 0, 0];
            one.command_to(77, cdb, 0x20, 16 << 20);
            let (bhs, data) = one.receive(SCSI_RESPONSE);
            assert_eq!((bhs[1], bhs[3]), (0x82, 2), "an underflow, and CHECK CONDITION");
            assert_eq!(bhs[44..48], (16_u32 << 20).to_be_bytes(), "of all of it");
            assert_eq!((data[4] & 0x0f, data[14]), (5, 0x25), "LOGICAL UNIT NOT SUPPORTED");
        }
        drop(one);
    });
}

#[test]
fn the_attribute_aca_is_refused() {
    on_arrays(&[1], |array| {
        let mut one = Initiator::login(array.running.portals[0], "one");
        for (attribute, status) in [(1, 0), (2, 0), (3, 0), (4, 2)] {
            one.command(TEST_UNIT_READY, attribute, 0);
            let (bhs, data) = one.receive(SCSI_RESPONSE);
            assert_eq!(bhs[3], status, "attribute {attribute}");
            if status == 2 {
                assert_eq!(
                    (data[4] & 0x0f, data[14], data[15]),
                    (5, 0x49, 0),
                    "INVALID MESSAGE ERROR"
                );
            }
        }
        drop(one);
    });
}

/// Each nexus has its own task set (TST 001b), so CLEAR TASK SET equals ABORT TASK SET.
#[test]
fn clear_task_set_aborts_only_the_senders_commands() {
    on_arrays(&[1, 2], |array| {
        let portal = array.running.portals[0];
        let mut writer = Initiator::login(portal, "writer");
        let mut clearer = Initiator::login(portal, "clearer");
        for function in [CLEAR_TASK_SET, ABORT_TASK_SET] {
            // Two writes wait for their data: one of another nexus, one of the nexus that clears.
            let others = writer.begin_write([0, 1]);
            let own = clearer.begin_write([0, 1]);
            assert_eq!(clearer.manage(function), 0);
            writer.answer(&others);
            let (bhs, _) = writer.receive(SCSI_RESPONSE);
            assert_eq!((bhs[3], &bhs[16..20]), (0, &others[16..20]));
            clearer.answer(&own);
            for initiator in [&mut writer, &mut clearer] {
                assert_eq!(initiator.test_unit_ready(), (0, None), "no unit attention");
            }
        }
        drop((writer, clearer));
    });
}
