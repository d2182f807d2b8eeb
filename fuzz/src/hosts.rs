//! Hosts of a device server: nexuses, their volumes, and invariants of all answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::{
    ArrayIdentity, LogicalBlockSize, LunMap, Offloads, SectorCount, VolumeAttributes, VolumeError,
    VolumeId,
};
use scsi::{
    Cdb, Command, DeviceServer, InitiatorPort, Nexus, Response, RodVolume, SaveError, Statistics,
    Status, Step, Subject, TargetPort, TokenKey, UnitStatistics,
};

use crate::volumes::{OWN_SIZE, OWN_VOLUME, Volumes, data_out};

/// The maximum number of requests of a command: 32 MiB in steps of 1 MiB, each read and written,
/// and some more.
const STEPS_MAX: usize = 80;
/// The data that a host accepts in a response.
const EXPECTED_IN_BYTES: u64 = 1 << 20;

/// Counters that ignore everything.
#[derive(Debug)]
struct Uncounted;

impl Statistics for Uncounted {
    fn of(&self, _: VolumeId) -> UnitStatistics {
        UnitStatistics::default()
    }
}

/// The host's end of a session.
#[derive(Clone)]
struct Session {
    nexus: Arc<Nexus>,
    luns: Arc<LunMap>,
}

/// A device server, its volumes and its hosts.
pub struct Hosts {
    server: DeviceServer,
    volumes: Volumes,
    sessions: Vec<Session>,
    /// The fault of the next request to a volume.
    pub failure: Option<VolumeError>,
}

/// The NAA designator of a volume.
pub fn naa(id: u8) -> [u8; 16] {
    [0x60, 0x12, 0x34, 0x56, 0x70, 0, 0, id, 1, 2, 3, 4, 5, 6, 7, id]
}

fn volume(id: u8, sectors: u64, logical_block: LogicalBlockSize) -> Arc<VolumeAttributes> {
    Arc::new(VolumeAttributes {
        id: VolumeId(id.into()),
        size: SectorCount(sectors),
        logical_block,
        naa: naa(id),
        serial: format!("HF{id:08}"),
        group: None,
        write_cache: false,
        offloads: Offloads::ALL,
        limits: block::VolumeLimits::NONE,
    })
}

/// Volume 1 (512e, 1 MiB), 2 (512e, 64 TiB), 3 (4Kn, 1 MiB), and 4, a single block of 4Kn.
fn all_volumes() -> BTreeMap<u16, Arc<VolumeAttributes>> {
    use LogicalBlockSize::{B512, B4096};
    BTreeMap::from([
        (0, volume(1, 2048, B512)),
        (300, volume(2, (64 << 40) / 512, B512)),
        (2, volume(3, 2048, B4096)),
        (7, volume(4, 8, B4096)),
    ])
}

/// The LUNs to use, including one that does not exist, in the 8 bytes of SAM-5.
pub const LUNS: [[u8; 8]; 6] = [
    [0; 8],
    [0, 2, 0, 0, 0, 0, 0, 0],
    [0x41, 0x2c, 0, 0, 0, 0, 0, 0],
    [0, 7, 0, 0, 0, 0, 0, 0],
    [0, 9, 0, 0, 0, 0, 0, 0],
    [0xc1, 1, 0, 0, 0, 0, 0, 0],
];

impl Default for Hosts {
    fn default() -> Self {
        Self::new()
    }
}

impl Hosts {
    /// Creates three sessions: two of one host, to two ports, and one of a host with fewer volumes.
    pub fn new() -> Self {
        let identity = ArrayIdentity {
            vendor: "HOLDFAST".into(),
            product: "Array".into(),
            revision: "0001".into(),
            target_name: "iqn.2026-01.example:array".into(),
        };
        let port = |relative_id, group| TargetPort {
            relative_id,
            group,
            name: format!("iqn.2026-01.example:array,t,0x{group:04x}"),
        };
        let rods = RodVolume { id: OWN_VOLUME, size: OWN_SIZE, key: TokenKey([5; 32]) };
        let ports = vec![port(1, 1), port(2, 2)];
        let server = DeviceServer::new(identity, ports, rods, Arc::new(Uncounted));
        let mut few = all_volumes();
        few.remove(&300);
        let all = Arc::new(LunMap { generation: 1, luns: all_volumes() });
        let few = Arc::new(LunMap { generation: 1, luns: few });
        let mut hosts =
            Self { server, volumes: Volumes::default(), sessions: Vec::new(), failure: None };
        for (name, port, luns) in [("a", 1, &all), ("a", 2, &all), ("b", 1, &few)] {
            let nexus = hosts.server.new_nexus(initiator(name), port, luns);
            hosts.sessions.push(Session { nexus, luns: luns.clone() });
        }
        hosts
    }

    /// Runs a command to its end and checks the response.
    pub fn run(&mut self, session: usize, lun: [u8; 8], cdb: &[u8], data: &[u8]) -> Response {
        let Session { nexus, luns } = self.sessions[session % self.sessions.len()].clone();
        let (nexus, luns) = (&nexus, &luns);
        let command = Command {
            lun,
            cdb: Cdb::new(cdb),
            data_out: data_out(cdb, data),
            expected_in_bytes: EXPECTED_IN_BYTES,
        };
        let mut step = self.server.execute(nexus, luns, command);
        for _ in 0..STEPS_MAX {
            match step {
                Step::Done(response) => {
                    check_response(cdb, &response);
                    return response;
                }
                Step::Request { request, pending } => {
                    let result = match self.failure.take() {
                        Some(failure) => Err(failure),
                        None => self.volumes.serve(luns, request),
                    };
                    step = self.server.resume(nexus, pending, result);
                }
                Step::Persist { subject: Subject::Volume(volume), pending } => {
                    self.save(&[volume]);
                    step = self.server.resume_saved(pending);
                }
                Step::Persist { subject: Subject::Tokens, pending } => {
                    self.save_tokens();
                    step = self.server.resume_saved(pending);
                }
            }
        }
        panic!("a command does not end: {cdb:02x?}");
    }

    /// Makes changes of ROD tokens durable, or fails.
    fn save_tokens(&mut self) {
        if let Some(unsaved) = self.server.unsaved_tokens() {
            let failed = self.failure.take().map(|_| SaveError::Failed);
            self.server.saved_tokens(unsaved, failed.map_or(Ok(()), Err));
        }
    }

    /// Makes changes of these volumes durable, or fails.
    fn save(&mut self, volumes: &[VolumeId]) {
        for volume in volumes {
            if let Some(unsaved) = self.server.unsaved(*volume) {
                let failed = self.failure.take().map(|_| SaveError::Failed);
                self.server.saved(unsaved, failed.map_or(Ok(()), Err));
            }
        }
    }

    /// Runs a LOGICAL UNIT RESET.
    pub fn reset_unit(&mut self, session: usize, lun: [u8; 8]) {
        let luns = &self.sessions[session % self.sessions.len()].luns;
        let unsaved = self.server.lun_reset(luns, lun);
        self.save(&unsaved);
    }

    /// Advances the time by some seconds. Expired tokens are removed.
    pub fn wait(&mut self, now_s: u32) {
        self.server.set_time(u64::from(now_s) * 1000);
        let (volumes, luns) = (&mut self.volumes, &self.sessions[0].luns);
        while self.server.sweep_tokens(|request| volumes.serve(luns, request).is_ok()) {}
    }

    /// Runs a target reset.
    pub fn reset_target(&mut self, session: usize) {
        let luns = &self.sessions[session % self.sessions.len()].luns;
        let unsaved = self.server.target_reset(luns);
        self.save(&unsaved);
    }

    /// Ends a session, and starts a new one of the same host.
    pub fn reconnect(&mut self, session: usize) {
        let at = session % self.sessions.len();
        let unsaved = self.server.nexus_loss(&self.sessions[at].nexus);
        self.save(&unsaved);
        let session = &mut self.sessions[at];
        let (initiator, port) = [("a", 1), ("a", 2), ("b", 1)][at];
        session.nexus = self.server.new_nexus(self::initiator(initiator), port, &session.luns);
    }

    /// Resizes volume 1, in whole blocks of 4 KiB, and disconnects volume 4, as an administrator.
    pub fn change_map(&mut self, blocks: u64) {
        for session in &mut self.sessions {
            let mut luns = (*session.luns).clone();
            luns.generation += 1;
            luns.luns.remove(&7);
            luns.luns.insert(0, volume(1, 8 * blocks.clamp(1, 1 << 20), LogicalBlockSize::B512));
            session.luns = Arc::new(luns);
        }
    }

    /// Destroys volume 1 and its persistent state.
    pub fn destroy(&mut self) {
        self.server.volume_destroyed(VolumeId(1));
    }
}

fn initiator(name: &str) -> InitiatorPort {
    InitiatorPort { name: format!("iqn.2026-01.example:{name}"), isid: [0, 2, 0x3d, 0, 0, 1] }
}

/// Checks that sense data comes with CHECK CONDITION only, and not more data than requested.
fn check_response(cdb: &[u8], response: &Response) {
    assert_eq!(response.sense.is_some(), response.status == Status::CheckCondition);
    let data_bytes = response.data_in.len() as u64;
    let most = in_bytes_max(cdb);
    assert!(data_bytes <= most, "{data_bytes} bytes for {cdb:02x?}, which allows {most}");
    if let Some(sense) = &response.sense {
        assert_eq!(sense.bytes()[0] & 0x7e, 0x70);
        let descriptors = sense.descriptor_bytes();
        assert_eq!(usize::from(descriptors[7]) + 8, descriptors.len());
        assert!(descriptors.len() <= 252, "sense data is at most 252 bytes (SPC-4, 4.5)");
        assert!(response.data_in.is_empty(), "data with a CHECK CONDITION");
    }
}

/// Returns the maximum data of an answer: the allocation length, or the blocks to be read.
fn in_bytes_max(cdb: &[u8]) -> u64 {
    // The server reads missing bytes of a CDB as zeros.
    let mut fields = [0u8; 32];
    fields[..cdb.len().min(32)].copy_from_slice(&cdb[..cdb.len().min(32)]);
    let number = |range: std::ops::Range<usize>| {
        fields[range].iter().fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte))
    };
    match fields[0] {
        0x08 if fields[4] == 0 => 256 * 512 * 8,
        0x08 => number(4..5) * 4096,
        0x28 => number(7..9) * 4096,
        0xa8 => number(6..10) * 4096,
        0x88 => number(10..14) * 4096,
        0x03 | 0x1a => number(4..5),
        0x12 => number(3..5),
        0x25 => 8,
        0x37 | 0x4d | 0x5a | 0x5e => number(7..9),
        0xa0 | 0xa3 | 0xb7 => number(6..10),
        0x84 | 0x9e => number(10..14),
        _ => 0,
    }
}
