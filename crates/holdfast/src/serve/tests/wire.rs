//! What no tool asks for: PDUs by hand (RFC 7143, 11), as an initiator sends them.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::{TARGET, create_pool, serve};

const WRITE_10: [u8; 10] = [0x2a, 0, 0, 0, 0, 0, 0, 0, 8, 0];
const TEST_UNIT_READY: [u8; 10] = [0; 10];

/// Opcodes of what the target sends.
const SCSI_RESPONSE: u8 = 0x21;
const MANAGEMENT_RESPONSE: u8 = 0x22;
const LOGIN_RESPONSE: u8 = 0x23;
const R2T: u8 = 0x31;

/// A session of one connection.
pub(super) struct Initiator {
    stream: TcpStream,
    tag: u32,
    cmd_sn: u32,
}

impl Initiator {
    pub(super) fn login(portal: SocketAddr, name: &str) -> Self {
        let stream = TcpStream::connect(portal).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut this = Self { stream, tag: 0, cmd_sn: 1 };
        let keys = format!(
            "InitiatorName=iqn.2026-01.example:{name}\0TargetName={TARGET}\0SessionType=Normal\0\
             InitialR2T=Yes\0ImmediateData=No\0"
        );
        // A login request from the operational stage to the full feature phase.
        let mut bhs = [0; 48];
        (bhs[0], bhs[1]) = (0x43, 0x87);
        bhs[8..14].copy_from_slice(&[0x80, 0, 0, 0, 0, 1]);
        bhs[24..28].copy_from_slice(&this.cmd_sn.to_be_bytes());
        this.send(bhs, keys.as_bytes());
        let (bhs, _) = this.receive(LOGIN_RESPONSE);
        assert_eq!(bhs[36..38], [0, 0], "the login fails");
        this
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

    /// A SCSI command to LUN 1, without data.
    fn command(&mut self, cdb: [u8; 10], flags: u8, bytes: u32) {
        self.command_to(1, cdb, flags, bytes);
    }

    /// A SCSI command without data; returns its task tag.
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

    /// TEST UNIT READY: the status, and sense key, ASC and ASCQ.
    fn test_unit_ready(&mut self) -> (u8, Option<(u8, u8, u8)>) {
        self.command(TEST_UNIT_READY, 0, 0);
        let (bhs, data) = self.receive(SCSI_RESPONSE);
        // Behind a length of two bytes the sense data stands in fixed format.
        (bhs[3], (data.len() > 15).then(|| (data[4] & 0x0f, data[14], data[15])))
    }

    /// An immediate task management request about LUN 1: its response.
    pub(super) fn manage(&mut self, function: u8) -> u8 {
        let mut bhs = [0; 48];
        (bhs[0], bhs[1], bhs[9]) = (0x42, 0x80 | function, 1);
        bhs[20..24].fill(0xff);
        bhs[24..28].copy_from_slice(&self.cmd_sn.to_be_bytes());
        self.send(bhs, &[]);
        self.receive(MANAGEMENT_RESPONSE).0[2]
    }
}

#[test]
fn clear_task_set_tells_the_others_whose_commands_it_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("pool");
    create_pool(&pool);
    for threads in [1, 2] {
        let array = serve(&pool, threads);
        let portal = array.running.portals[0];
        let mut writer = Initiator::login(portal, "writer");
        let mut idle = Initiator::login(portal, "idle");
        let mut clearer = Initiator::login(portal, "clearer");
        for initiator in [&mut writer, &mut idle, &mut clearer] {
            assert_eq!(initiator.test_unit_ready(), (0, None));
        }
        // Two writes wait for their data: one of another nexus, one of the one that clears.
        for initiator in [&mut writer, &mut clearer] {
            initiator.command(WRITE_10, 0x20, 4096);
            initiator.receive(R2T);
        }
        assert_eq!(clearer.manage(4), 0, "CLEAR TASK SET");
        assert_eq!(writer.test_unit_ready(), (2, Some((6, 0x2f, 0x00))));
        for initiator in [&mut writer, &mut idle, &mut clearer] {
            assert_eq!(initiator.test_unit_ready(), (0, None));
        }
        // ABORT TASK SET is about commands of one's own.
        writer.command(WRITE_10, 0x20, 4096);
        writer.receive(R2T);
        assert_eq!(clearer.manage(2), 0, "ABORT TASK SET");
        assert_eq!(writer.test_unit_ready(), (0, None));
        drop((writer, idle, clearer));
        array.stop();
    }
}
