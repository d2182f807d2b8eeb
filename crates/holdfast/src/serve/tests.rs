//! The whole path: independent initiators, over loopback, to a pool in a file.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use block::{LimitedGroup, LogicalBlockSize, LunMap, SECTOR_BYTES, VolumeAttributes, VolumeLimits};
use front::Limited;
use iscsi::{Access, InitiatorAccess, Limits};
use parking_lot::Mutex;
use store::{Change, OpenOptions, VolumeChange};
use sys::FileDisk;

mod duties;
mod limits;
mod memory;
mod resets;
mod slow;
mod turns;
mod wire;

use super::*;
use front::DeviceSnapshot;
use front::counters::Class;

const TARGET: &str = "iqn.2026-01.example.holdfast:test";
const VOLUME_BYTES: u64 = 64 << 20;

/// Everybody may log in, and sees the same volumes.
struct Open {
    map: Mutex<Arc<LunMap>>,
    /// How often it was asked to eradicate what is due.
    looks: AtomicU32,
    /// Volumes that are gone since the last call.
    gone: Mutex<Vec<VolumeId>>,
}

impl Open {
    /// Changes the limits of the volume at LUN 1.
    fn limit(&self, limits: VolumeLimits) {
        let mut map = self.map.lock();
        let mut new = LunMap { generation: map.generation + 1, luns: map.luns.clone() };
        let volume = VolumeAttributes { limits, ..VolumeAttributes::clone(&map.luns[&1]) };
        new.luns.insert(1, Arc::new(volume));
        *map = Arc::new(new);
    }
}

impl Open {
    /// Puts all volumes into a volume group with these limits.
    fn limit_group(&self, limits: VolumeLimits) {
        let mut map = self.map.lock();
        let group = (!limits.is_none()).then_some(LimitedGroup { number: 1, limits });
        let luns = map.luns.iter().map(|(lun, volume)| {
            (*lun, Arc::new(VolumeAttributes { group, ..VolumeAttributes::clone(volume) }))
        });
        *map = Arc::new(LunMap { generation: map.generation + 1, luns: luns.collect() });
    }
}

impl Access for Open {
    fn initiator(&self, _: &str) -> Option<InitiatorAccess> {
        Some(InitiatorAccess::default())
    }
}

impl LunMaps for Open {
    /// Some initiators see other numbers, and some only a part.
    fn lun_map(&self, initiator_name: &str) -> Arc<LunMap> {
        let all = self.map.lock().clone();
        let seen: &[(u16, u16)] = match initiator_name.rsplit(':').next() {
            Some("swapped") => &[(1, 2), (5, 1)],
            Some("blind") => &[(2, 2)],
            _ => return all,
        };
        let luns = seen.iter().map(|(lun, of)| (*lun, all.luns[of].clone())).collect();
        Arc::new(LunMap { generation: all.generation, luns })
    }

    fn generation(&self) -> u64 {
        self.map.lock().generation
    }

    fn limits(&self, of: Limited) -> VolumeLimits {
        let map = self.map.lock();
        let found = map.luns.values().find_map(|attributes| match of {
            Limited::Volume(id) => (attributes.id == id).then_some(attributes.limits),
            Limited::Group(number) => {
                attributes.group.filter(|group| group.number == number).map(|group| group.limits)
            }
        });
        found.unwrap_or(VolumeLimits::NONE)
    }

    fn take_gone(&self) -> Vec<VolumeId> {
        std::mem::take(&mut self.gone.lock())
    }
}

impl Duties for Open {
    fn space_thresholds(&self) -> Vec<u8> {
        vec![80]
    }

    fn pass_time(&self, _: u64, _: u64) {}

    fn protect(&self, _: u64) {}

    fn eradicate(&self, _: u64) {
        self.looks.fetch_add(1, Ordering::Relaxed);
    }
}

/// Stores nothing.
struct Nowhere;

impl TargetRecords for Nowhere {
    fn load(&self) -> Result<(target::Start, target::KeptState), LoadError> {
        Ok((target::Start::PowerOn, target::KeptState::default()))
    }

    fn save_tokens(&self, _: &target::UnsavedRods) -> Result<(), scsi::SaveError> {
        Ok(())
    }

    fn save(&self, _: VolumeId, _: Option<&target::Kept>) -> Result<(), scsi::SaveError> {
        Ok(())
    }
}

/// An array that runs in this process.
struct Running {
    running: super::Running,
    open: Arc<Open>,
    thread: JoinHandle<Result<(), ServeError>>,
}

impl Running {
    fn url(&self, lun: u16) -> String {
        format!("iscsi://{}/{TARGET}/{lun}", self.running.portals[0])
    }

    fn stop(self) {
        self.running.shutdown.trigger();
        self.thread.join().unwrap().unwrap();
    }
}

fn create_pool(path: &Path) {
    let disk = FileDisk::create(path, 512 << 20).unwrap();
    Store::create(&disk, &[7; 64]).unwrap();
}

/// Serves two volumes, at LUN 1 and 2, which are created if they do not exist; the third is for
/// tokens.
fn serve(path: &Path, threads: usize) -> Running {
    serve_within(path, threads, Limits::default())
}

/// The same, with other limits on memory and time.
fn serve_within(path: &Path, threads: usize, limits: Limits) -> Running {
    let (options, access) = options(path, threads, limits);
    serve_with(options, access)
}

/// Serves with these options.
fn serve_with(options: ServeOptions, access: Arc<Open>) -> Running {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn(move || run(options, |running| sender.send(running).unwrap()));
    match receiver.recv_timeout(Duration::from_secs(20)) {
        Ok(running) => Running { running, open: access, thread },
        Err(_) => panic!("not serving: {:?}", thread.join()),
    }
}

fn options(path: &Path, threads: usize, limits: Limits) -> (ServeOptions, Arc<Open>) {
    let disk = Arc::new(FileDisk::open(path).unwrap());
    let files = vec![disk.clone()];
    let medium = segments::Shared::from(Arc::new(segments::Local::new(disk)));
    let store = Arc::new(Store::open(medium.clone(), OpenOptions::default()).unwrap());
    let mut ids: Vec<VolumeId> = store
        .config()
        .iter()
        .map(|(_, id)| VolumeId(u64::from_le_bytes(id[..8].try_into().unwrap())))
        .collect();
    let size = SectorCount(VOLUME_BYTES / SECTOR_BYTES);
    for number in ids.len() as u8..3 {
        let id = store.allocate_volume_id();
        let volumes = vec![VolumeChange::Create { id, size }];
        let config = vec![(vec![number], Some(id.0.to_le_bytes().to_vec()))];
        store.change(Change { volumes, config, ..Change::default() }).unwrap();
        ids.push(id);
    }
    let attributes = |(index, id): (usize, &VolumeId)| {
        let number = index as u16 + 1;
        let mut naa = [0x60; 16];
        naa[15] = number as u8;
        let attributes = VolumeAttributes {
            id: *id,
            size,
            logical_block: LogicalBlockSize::B512,
            naa,
            serial: format!("{number:016}"),
            group: None,
            write_cache: false,
            offloads: block::Offloads::ALL,
            limits: block::VolumeLimits::NONE,
        };
        (number, Arc::new(attributes))
    };
    let luns: BTreeMap<_, _> = ids[..2].iter().enumerate().map(attributes).collect();
    let map = Mutex::new(Arc::new(LunMap { generation: 1, luns }));
    let access = Arc::new(Open { map, looks: AtomicU32::default(), gone: Mutex::default() });
    let address = "127.0.0.1:0".parse().unwrap();
    let options = ServeOptions {
        connections: ConnectionLimits::MOST,
        medium,
        files,
        notices: Vec::new(),
        store,
        token_volume: (ids[2], size),
        identity: ArrayIdentity {
            vendor: "HOLDFAST".into(),
            product: "Holdfast".into(),
            revision: "0001".into(),
            target_name: TARGET.into(),
        },
        target_alias: String::new(),
        portals: [1, 2].map(|id| PortOptions { address, group: 1, id }).to_vec(),
        kept: Kept::default(),
        pair: None,
        handed: None,
        lease: None,
        access: access.clone(),
        luns: access.clone(),
        duties: access.clone(),
        reservations: Arc::new(Nowhere),
        limits,
        threads,
        prepare_ahead_bytes: 16 << 20,
        scrub: ScrubOptions { interval: None, rate_bytes: 1 << 30, now_ms: || 0 },
        optimize_interval: None,
    };
    (options, access)
}

/// Runs a tool that must end within a minute; returns `None` if it is not installed.
fn tool(name: &str, arguments: &[&str]) -> Option<Output> {
    let output = Command::new("timeout").arg("60").arg(name).args(arguments).output().unwrap();
    // The exit status of `timeout` if there is no such program (its manual page, "EXIT STATUS").
    if output.status.code() == Some(127) {
        eprintln!("{name} is not installed: this part is not tested");
        return None;
    }
    Some(output)
}

fn assert_ok(output: &Output) {
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {text}", output.status);
}

/// Creates a file as long as a volume, with data, zeros and patterns.
fn sample(path: &Path) {
    let mut state = 1u64;
    let mut bytes = vec![0; VOLUME_BYTES as usize];
    for (index, chunk) in bytes.chunks_mut(8192).enumerate() {
        match index % 4 {
            0 => chunk.fill(index as u8),
            1 => {}
            _ => chunk.fill_with(|| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as u8
            }),
        }
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn data_written_by_qemu_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (pool, file) = (dir.path().join("pool"), dir.path().join("sample"));
    let file_name = file.to_str().unwrap();
    create_pool(&pool);
    sample(&file);
    for threads in [1, 2] {
        let array = serve(&pool, threads);
        let url = array.url(threads as u16);
        let options = ["convert", "-n", "-f", "raw", "-O", "raw", "-t", "none", "-m", "8", "-W"];
        let arguments: Vec<&str> = options.into_iter().chain([file_name, &url]).collect();
        let Some(output) = tool("qemu-img", &arguments) else { return array.stop() };
        assert_ok(&output);
        let compare = ["compare", "-f", "raw", "-F", "raw", file_name, &url];
        assert_ok(&tool("qemu-img", &compare).unwrap());
        let totals = array.running.counters.totals();
        let moved = |class: Class| totals[class as usize].bytes;
        assert!(
            moved(Class::Write) + moved(Class::Zero) + moved(Class::Delete) >= VOLUME_BYTES / 2
        );
        assert!(totals[Class::Read as usize].ok > 0);
        assert!(array.running.counters.wire().received_bytes > VOLUME_BYTES / 4);
        let DeviceSnapshot { reads, writes } = array.running.counters.device();
        assert!(writes.ok() > 0 && writes.bytes >= 1 << 20, "{writes:?}");
        assert!(writes.ok_latency_us > 0 && reads.ok_latency_us >= reads.ok(), "{reads:?}");
        assert_eq!((reads.failed, writes.failed, reads.under_way), (0, 0, 0));
        array.stop();
    }
    let array = serve(&pool, 2);
    for lun in [1, 2] {
        let url = array.url(lun);
        let compare = ["compare", "-f", "raw", "-F", "raw", file_name, &url];
        assert_ok(&tool("qemu-img", &compare).unwrap());
    }
    array.stop();
}

#[test]
fn zeros_sent_as_data_are_counted_where_write_same_would_do() {
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("pool");
    create_pool(&pool);
    let array = serve(&pool, 2);
    for (write, counted) in
        [("-P 0 0 60k", 0), ("-P 1 0 1M", 0), ("-P 0 1M 1M", 1 << 20), ("-P 0 0 64k", 17 << 16)]
    {
        let write = format!("write {write}");
        let Some(output) = tool("qemu-io", &["-f", "raw", "-c", &write, &array.url(1)]) else {
            break;
        };
        assert_ok(&output);
        let zeros = array.running.counters.paths().iter().map(|path| path.zeros_bytes).sum::<u64>();
        assert_eq!(zeros, counted, "{write}");
    }
    array.stop();
}

#[test]
fn libiscsi_finds_the_target_and_its_volumes() {
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("pool");
    create_pool(&pool);
    let array = serve(&pool, 2);
    let portal = format!("iscsi://{}", array.running.portals[1]);
    if let Some(output) = tool("iscsi-ls", &["-s", &portal]) {
        assert_ok(&output);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains(TARGET) && text.contains("Lun:1"), "{text}");
        assert_ok(&tool("iscsi-inq", &[&array.url(2)]).unwrap());
    }
    array.stop();
}

#[test]
fn bytes_that_are_not_iscsi_close_only_their_own_connection() {
    let dir = tempfile::tempdir().unwrap();
    let pool = dir.path().join("pool");
    create_pool(&pool);
    let array = serve(&pool, 2);
    let portal = array.running.portals[0];
    for seed in 0..64u8 {
        let mut stream = TcpStream::connect(portal).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let bytes: Vec<u8> = (0..500u32).map(|n| (n as u8).wrapping_mul(seed | 1)).collect();
        // The array may close before it has accepted everything.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
        }
    }
    if let Some(output) = tool("iscsi-inq", &[&array.url(1)]) {
        assert_ok(&output);
    }
    array.stop();
}

#[test]
fn an_address_in_use_is_reported() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let error = listen::bind(&[address], Kept::default(), None).unwrap_err();
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(matches!(listen::bind(&[], Kept::default(), None), Err(ServeError::PortalCount(0))));
}
