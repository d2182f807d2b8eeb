//! Volumes in memory that execute each [`VolumeRequest`], and check that it is allowed.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::{
    ArrayIdentity, DataIn, DataOut, FRAME_BYTES, LbaExtent, LbaState, LogicalBlockSize, LunMap,
    SECTOR_BYTES, SectorCount, SectorRange, SpaceUse, VolumeAttributes, VolumeError, VolumeId,
    VolumeReply, VolumeRequest,
};
use target::{HostPort, Kept, KeptRod, TokenKey, TokenMaker};

pub(crate) use super::cdbs::{cdb_10, cdb_16};
use crate::nexus::{InitiatorPort, Nexus};
use crate::step::{Command, Response, Status, Step};
use crate::{Cdb, DeviceServer, RodVolume, SaveError, Statistics, TargetPort, UnitStatistics};

const SECTOR: usize = SECTOR_BYTES as usize;

/// The internal volume for ROD tokens: 8 MiB.
pub(crate) const ROD_VOLUME: VolumeId = VolumeId(99);
const ROD_SECTORS: u64 = 8 * 2048;

#[derive(Debug, Clone)]
pub(crate) struct Disk {
    pub bytes: Vec<u8>,
    pub mapped: Vec<bool>,
}

impl Disk {
    fn span(range: SectorRange) -> std::ops::Range<usize> {
        let start = range.start.0 as usize * SECTOR;
        start..start + range.count.0 as usize * SECTOR
    }

    fn map(&mut self, range: SectorRange, mapped: bool) {
        let start = range.start.0 as usize;
        self.mapped[start..start + range.count.0 as usize].fill(mapped);
    }

    fn write(&mut self, range: SectorRange, data: &DataOut) {
        assert_eq!(data.len() as u64, range.bytes().unwrap());
        assert_eq!(data.phase(), range.start.offset_in_block_bytes());
        self.bytes[Self::span(range)].copy_from_slice(&data.to_vec());
        self.map(range, true);
    }
}

/// The front end's counters: for the first volume only.
#[derive(Debug)]
pub(crate) struct Counted;

impl Statistics for Counted {
    fn of(&self, volume: VolumeId) -> UnitStatistics {
        if volume != VolumeId(1) {
            return UnitStatistics::default();
        }
        let (read_us, write_us) = (30, 40);
        let (read_bytes, written_bytes) = (5 * 512, 9 * 512);
        UnitStatistics { reads: 3, writes: 4, read_bytes, written_bytes, read_us, write_us }
    }
}

/// An array: volume 1 (512e, LUN 0), volume 2 (512e, LUN 300), volume 3 (4Kn, LUN 2), each 1 MiB;
/// volume 4 belongs to another host.
pub(crate) struct World {
    pub server: DeviceServer,
    pub luns: Arc<LunMap>,
    pub disks: BTreeMap<VolumeId, Disk>,
    pub nexus: Arc<Nexus>,
    /// The failure of the next request.
    pub failure: Option<VolumeError>,
    /// The names of the executed requests.
    pub requests: Vec<&'static str>,
    /// The durable state of hosts.
    pub kept: BTreeMap<VolumeId, Kept>,
    /// The durable state of ROD tokens.
    pub kept_maker: Option<TokenMaker>,
    pub kept_rods: BTreeMap<u64, KeptRod>,
    /// The failure of the next save.
    pub save_failure: Option<SaveError>,
}

pub(crate) fn naa(id: u8) -> [u8; 16] {
    [0x60, 0x12, 0x34, 0x56, 0x70, 0, 0, id, 1, 2, 3, 4, 5, 6, 7, id]
}

pub(crate) fn volume(id: u8, logical_block: LogicalBlockSize) -> Arc<VolumeAttributes> {
    Arc::new(VolumeAttributes {
        id: VolumeId(id.into()),
        size: SectorCount(2048),
        logical_block,
        naa: naa(id),
        serial: format!("HF{id:08}"),
        group: None,
        write_cache: false,
        offloads: block::Offloads::ALL,
        limits: block::VolumeLimits::NONE,
    })
}

/// Takes the unit attentions about the time before the login, as if each unit had reported them.
pub(crate) fn skip_first_attentions(nexus: &Nexus, luns: &LunMap) {
    for volume in luns.luns.values() {
        nexus.take_attention(volume.id);
    }
}

/// Returns a device server as at the start of the array.
fn server(identity: ArrayIdentity, ports: Vec<TargetPort>, key: [u8; 32]) -> DeviceServer {
    let rods = RodVolume { id: ROD_VOLUME, size: SectorCount(ROD_SECTORS), key: TokenKey(key) };
    DeviceServer::new(identity, ports, rods, Arc::new(Counted))
}

impl World {
    /// Restarts the array, with these ports and this key of tokens.
    pub(crate) fn start(&mut self, ports: Vec<TargetPort>, key: [u8; 32]) {
        self.server = server(self.server.identity.clone(), ports, key);
    }

    /// Restarts the array with space for tokens that no test uses up.
    pub(crate) fn start_roomy(&mut self) {
        let (identity, ports) = (self.server.identity.clone(), self.server.target.ports().to_vec());
        let rods = RodVolume { id: ROD_VOLUME, size: SectorCount(1 << 37), key: TokenKey([5; 32]) };
        self.server = DeviceServer::new(identity, ports, rods, Arc::new(Counted));
    }

    pub(crate) fn new() -> Self {
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
        let server = server(identity, vec![port(1, 1), port(2, 2)], [5; 32]);
        let mut luns = LunMap { generation: 1, ..LunMap::default() };
        luns.luns.insert(0, volume(1, LogicalBlockSize::B512));
        luns.luns.insert(300, volume(2, LogicalBlockSize::B512));
        luns.luns.insert(2, volume(3, LogicalBlockSize::B4096));
        let disk = Disk { bytes: vec![0; 2048 * SECTOR], mapped: vec![false; 2048] };
        let mut disks: BTreeMap<_, _> = (1..=4).map(|id| (VolumeId(id), disk.clone())).collect();
        let sectors = ROD_SECTORS as usize;
        let bytes = vec![0; sectors * SECTOR];
        disks.insert(ROD_VOLUME, Disk { bytes, mapped: vec![false; sectors] });
        let luns = Arc::new(luns);
        let nexus = server.new_nexus(initiator("a"), 1, &luns);
        skip_first_attentions(&nexus, &luns);
        Self {
            server,
            luns,
            disks,
            nexus,
            failure: None,
            requests: Vec::new(),
            kept: BTreeMap::new(),
            kept_maker: None,
            kept_rods: BTreeMap::new(),
            save_failure: None,
        }
    }

    /// Logs in a nexus that has already received the unit attentions about its past.
    pub(crate) fn log_in(&self, initiator: impl Into<HostPort>, target_port: u16) -> Arc<Nexus> {
        let nexus = self.server.new_nexus(initiator, target_port, &self.luns);
        skip_first_attentions(&nexus, &self.luns);
        nexus
    }

    /// Runs a command of the first nexus to LUN 0.
    pub(crate) fn run(&mut self, cdb: &[u8], data: &[u8]) -> Response {
        self.run_on(0, cdb, data)
    }

    /// Runs a command of the first nexus.
    pub(crate) fn run_on(&mut self, lun: u16, cdb: &[u8], data: &[u8]) -> Response {
        let nexus = self.nexus.clone();
        self.run_as(&nexus, lun, cdb, data)
    }

    pub(crate) fn run_as(&mut self, nexus: &Nexus, lun: u16, cdb: &[u8], data: &[u8]) -> Response {
        let step = self.start_as(nexus, lun, cdb, data);
        self.finish(nexus, step)
    }

    /// Starts a command without continuing it.
    pub(crate) fn start_as(&mut self, nexus: &Nexus, lun: u16, cdb: &[u8], data: &[u8]) -> Step {
        let command = Command {
            lun: crate::lun::encode(lun),
            cdb: Cdb::new(cdb),
            data_out: DataOut::from_bytes(data, crate::data_out_phase(cdb)),
            expected_in_bytes: 1 << 20,
        };
        let luns = self.luns.clone();
        self.server.execute(nexus, &luns, command)
    }

    /// Ends the session of a nexus, and saves the changes.
    pub(crate) fn nexus_loss(&mut self, nexus: &Nexus) {
        self.server.nexus_loss(nexus).into_iter().for_each(|volume| self.save(volume));
    }

    /// Resets the unit with this number, and saves the changes.
    pub(crate) fn lun_reset(&mut self, lun: u16) {
        let luns = self.luns.clone();
        let unsaved = self.server.lun_reset(&luns, crate::lun::encode(lun));
        unsaved.into_iter().for_each(|volume| self.save(volume));
    }

    /// Resets these units by a hard reset, and saves the changes.
    pub(crate) fn target_reset(&mut self, luns: &Arc<LunMap>) {
        self.server.target_reset(luns).into_iter().for_each(|volume| self.save(volume));
    }

    pub(crate) fn finish(&mut self, nexus: &Nexus, mut step: Step) -> Response {
        loop {
            match step {
                Step::Done(response) => {
                    assert_eq!(response.sense.is_some(), response.status == Status::CheckCondition);
                    return response;
                }
                Step::Request { request, pending } => {
                    let result = match self.failure.take() {
                        Some(failure) => Err(failure),
                        None => self.serve(request),
                    };
                    step = self.server.resume(nexus, pending, result);
                }
                Step::Persist { subject, pending } => {
                    self.save_subject(subject);
                    step = self.server.resume_saved(pending);
                }
            }
        }
    }

    /// Runs a command that must end with GOOD.
    pub(crate) fn good(&mut self, cdb: &[u8], data: &[u8]) -> Vec<u8> {
        let response = self.run(cdb, data);
        assert_eq!(response.status, Status::Good, "{:?} of {cdb:02x?}", response.sense);
        response.data_in.to_vec()
    }

    /// Returns the key and code of the CHECK CONDITION.
    pub(crate) fn sense(&mut self, cdb: &[u8], data: &[u8]) -> (u8, u8, u8) {
        triple(&self.run(cdb, data))
    }

    fn disk(&mut self, volume: VolumeId, range: SectorRange) -> &mut Disk {
        let own = volume == ROD_VOLUME;
        let size = SectorCount(if own { ROD_SECTORS } else { 2048 });
        assert!(range.fits(size) && !range.is_empty(), "{range:?}");
        let reachable = self.luns.luns.values().any(|seen| seen.id == volume);
        assert!(own || reachable, "volume {volume} is not the initiator's");
        self.disks.get_mut(&volume).unwrap()
    }

    pub(crate) fn serve(&mut self, request: VolumeRequest) -> Result<VolumeReply, VolumeError> {
        use VolumeRequest as R;
        self.requests.push(match &request {
            R::Read { .. } => "read",
            R::Write { fua: true, .. } => "write fua",
            R::Write { .. } => "write",
            R::CompareAndWrite { .. } => "compare and write",
            R::Zero { .. } => "zero",
            R::Fill { .. } => "fill",
            R::Unmap { .. } => "unmap",
            R::Copy { .. } => "copy",
            R::Flush { .. } => "flush",
            R::Extents { .. } => "extents",
            R::Space { .. } => "space",
        });
        match request {
            R::Read { volume, range } => {
                let bytes = &self.disk(volume, range).bytes[Disk::span(range)];
                return Ok(VolumeReply::Data(DataIn::from_bytes(bytes)));
            }
            R::Write { volume, range, data, .. } => self.disk(volume, range).write(range, &data),
            R::CompareAndWrite { volume, range, expected, data, .. } => {
                let disk = self.disk(volume, range);
                assert_eq!(expected.phase(), range.start.offset_in_block_bytes());
                let held = &disk.bytes[Disk::span(range)];
                let differs = held.iter().zip(expected.to_vec()).position(|(a, b)| *a != b);
                if let Some(offset_bytes) = differs {
                    return Err(VolumeError::Miscompare { offset_bytes });
                }
                disk.write(range, &data);
            }
            R::Zero { volume, range, .. } => {
                let disk = self.disk(volume, range);
                disk.bytes[Disk::span(range)].fill(0);
                disk.map(range, true);
            }
            R::Fill { volume, range, pattern, .. } => {
                let disk = self.disk(volume, range);
                for at in Disk::span(range) {
                    disk.bytes[at] = pattern[at % FRAME_BYTES];
                }
                disk.map(range, true);
            }
            R::Unmap { volume, ranges } => {
                for range in ranges {
                    let disk = self.disk(volume, range);
                    disk.bytes[Disk::span(range)].fill(0);
                    disk.map(range, false);
                }
            }
            R::Copy { segments } => {
                for segment in segments {
                    let range = |start| SectorRange { start, count: segment.count };
                    let (from, to) =
                        (range(segment.source_start), range(segment.destination_start));
                    let bytes = self.disk(segment.source, from).bytes[Disk::span(from)].to_vec();
                    let disk = self.disk(segment.destination, to);
                    disk.bytes[Disk::span(to)].copy_from_slice(&bytes);
                    disk.map(to, true);
                }
            }
            R::Flush { .. } => {}
            R::Extents { volume, range, limit } => {
                return Ok(VolumeReply::Extents(extents(self.disk(volume, range), range, limit)));
            }
            R::Space { .. } => {
                return Ok(VolumeReply::Space(SpaceUse {
                    pool_capacity_bytes: 10 << 20,
                    pool_used_bytes: 3 << 20,
                    volume_mapped_bytes: 0,
                }));
            }
        }
        Ok(VolumeReply::Done)
    }
}

fn extents(disk: &Disk, range: SectorRange, limit: usize) -> Vec<LbaExtent> {
    let mut out: Vec<LbaExtent> = Vec::new();
    for sector in range.start.0..range.start.0 + range.count.0 {
        let mapped = disk.mapped[sector as usize];
        let state = if mapped { LbaState::Mapped } else { LbaState::Deallocated };
        let full = out.len() == limit;
        match out.last_mut() {
            Some(last) if last.state == state => last.range.count.0 += 1,
            _ if full => break,
            _ => out.push(LbaExtent { range: SectorRange::new(sector, 1), state }),
        }
    }
    out
}

pub(crate) fn initiator(name: &str) -> InitiatorPort {
    InitiatorPort { name: format!("iqn.2026-01.example:{name}"), isid: [0, 2, 0x3d, 0, 0, 1] }
}

pub(crate) fn triple(response: &Response) -> (u8, u8, u8) {
    let sense = response.sense.unwrap_or_else(|| panic!("{response:?} has no sense data"));
    (sense.key as u8, sense.asc, sense.ascq)
}

/// Returns bytes that differ from location to location.
pub(crate) fn pattern(len: usize, seed: u8) -> Vec<u8> {
    (0..len).map(|at| (at / 3) as u8 ^ seed).collect()
}
