//! The cost of a record of the log on several devices, for several ways to make it durable:
//! `cargo run --release -p parity --example records -- FOLDER` (RFC 0013).
//!
//! A device is a file of 768 MiB in FOLDER, prewritten, used with `O_DIRECT` and io_uring; each
//! write is durable by itself. The files share one disk, so rates and latencies show how the ways
//! compare here, and not what six devices would do. Written bytes are counted.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use block::{FRAME_BYTES, Frame, FrameMut};
use parity::{Code, Stripe, code};
use sys::{FileDisk, Persist, Ring};

const DEVICE_BYTES: u64 = 768 << 20;
/// The size of the parts of a device for the log, and for each other use.
const PART_BYTES: u64 = 256 << 20;
const DEVICES: usize = 6;
const RUN: Duration = Duration::from_secs(2);
const RUNS: usize = 5;
/// Frames of a unit, for the ways with whole stripes: 1 MiB.
const UNIT_FRAMES: usize = 256;

/// A request to a device: the device, the offset in bytes, the number of frames.
type Request = (usize, u64, usize);

/// How a record is made durable.
#[derive(Clone, Copy)]
enum Way {
    /// On one device.
    Plain,
    /// (i) In the unit of a stripe, and in the rings of two other devices; parity when the stripe
    /// is full.
    Rings,
    /// (ii) On three devices, from which stripes are made later.
    Mirror,
    /// (iii) As a stripe of its own, over all devices, its frames row by row.
    Rows,
    /// (iii) The same column by column: a compressed group is on one device.
    Columns,
    /// (iii) The same over three devices.
    Narrow,
}

/// The hosts' load: records with a header and groups of this many frames each; the number of
/// commands in a record, and the number of records in flight.
struct Load {
    name: &'static str,
    header: usize,
    groups: usize,
    group: usize,
    commands: usize,
    host_bytes: usize,
    at_once: usize,
}

impl Load {
    const fn new(name: &'static str, shape: [usize; 3], hosts: [usize; 3]) -> Self {
        let ([header, groups, group], [commands, host_bytes, at_once]) = (shape, hosts);
        Self { name, header, groups, group, commands, host_bytes, at_once }
    }

    fn frames(&self) -> usize {
        self.header + self.groups * self.group
    }

    /// Returns how many rows of `k` columns the record takes, if no group is in two columns.
    fn rows_by_columns(&self, k: usize) -> usize {
        let end = |rows: usize| {
            let place = |at: usize| {
                if at % rows + self.group > rows { at.next_multiple_of(rows) } else { at }
            };
            (0..self.groups).fold(self.header, |at, _| place(at) + self.group)
        };
        let least = self.frames().div_ceil(k).max(self.group);
        (least..).find(|rows| end(*rows) <= k * rows).expect("all fit with enough rows")
    }
}

/// A header is one block, or two with 128 fingerprints and those of the previous record. In the
/// last loads data is compressed by half: a group of 8 blocks takes 4.
const LOADS: [Load; 6] = [
    Load::new("4 KiB, depth 1", [1, 1, 1], [1, 4 << 10, 1]),
    Load::new("4 KiB, depth 32", [1, 8, 1], [8, 32 << 10, 4]),
    Load::new("256 KiB, depth 8", [2, 128, 1], [2, 512 << 10, 4]),
    Load::new("32 KiB/2, depth 1", [1, 1, 4], [1, 32 << 10, 1]),
    Load::new("32 KiB/2, depth 32", [1, 8, 4], [8, 256 << 10, 4]),
    Load::new("256 KiB/2, depth 8", [2, 16, 4], [2, 512 << 10, 4]),
];

/// The devices, and the requests in flight.
struct Devices {
    rings: Vec<Ring>,
    /// Requests that have not ended, by what they are a part of.
    open: HashMap<u64, usize>,
    frame: Frame,
}

impl Devices {
    fn open(folder: &Path) -> std::io::Result<Self> {
        let open = |number| {
            let disk = FileDisk::create(&folder.join(format!("device-{number}")), DEVICE_BYTES)?;
            disk.prepare_ahead(0, DEVICE_BYTES)?;
            Ok(Ring::new(Arc::new(disk), 64))
        };
        let rings = (0..DEVICES).map(open).collect::<std::io::Result<_>>()?;
        let frame = FrameMut::from_bytes(&[0xa5; FRAME_BYTES]).freeze();
        Ok(Self { rings, open: HashMap::new(), frame })
    }

    fn start(&mut self, id: u64, writes: bool, requests: &[Request]) {
        *self.open.entry(id).or_default() += requests.len();
        for (device, offset_bytes, frames) in requests {
            let ring = &mut self.rings[*device];
            let queued = if writes {
                let frames = vec![self.frame.clone(); *frames];
                ring.write(id, *offset_bytes, frames, Persist::Itself)
            } else {
                let frames = (0..*frames).map(|_| FrameMut::stale()).collect();
                ring.read(id, *offset_bytes, frames)
            };
            queued.expect("within the device");
            ring.submit().expect("io_uring accepts it");
        }
    }

    /// Waits until something has ended; adds what has ended completely.
    fn wait(&mut self, ended: &mut Vec<u64>) {
        let busy = self.rings.iter_mut().find(|ring| ring.in_flight() > 0);
        busy.expect("something is in flight").wait().expect("io_uring waits");
        let mut done = Vec::new();
        for ring in &mut self.rings {
            ring.complete(&mut done).expect("io_uring reports completions");
        }
        for completion in done {
            completion.result.expect("the device accepts it");
            let left = self.open.get_mut(&completion.user_data).expect("it was counted");
            *left -= 1;
            if *left == 0 {
                self.open.remove(&completion.user_data);
                ended.push(completion.user_data);
            }
        }
    }
}

/// The log of one way, with the location of the next record.
struct Log {
    way: Way,
    stripe: Stripe,
    code: Arc<dyn Code>,
    /// Frames written so far: of records; of rings; of full stripes, each of their data.
    position: usize,
    ring_position: usize,
    striped: usize,
}

impl Log {
    fn new(way: Way, devices: usize) -> Self {
        let (data, parity) = match way {
            Way::Plain => (1, 0),
            Way::Narrow => (1, 2),
            _ => (devices - 2, 2),
        };
        let stripe = Stripe::new(data, parity).expect("a valid stripe");
        let code = code(stripe).unwrap_or_else(|error| panic!("{error}"));
        Self { way, stripe, code, position: 0, ring_position: 0, striped: 0 }
    }

    /// Returns the offset of a frame in a part of a device, which the log uses cyclically.
    fn offset_bytes(part: u64, frame: usize, frames: usize) -> u64 {
        let frames_in_part = PART_BYTES as usize / FRAME_BYTES - frames;
        part * PART_BYTES + (frame % frames_in_part * FRAME_BYTES) as u64
    }

    /// Returns what a record writes before it is acknowledged, and what is written for it later.
    fn append(&mut self, load: &Load, frame: &Frame) -> (Vec<Request>, Vec<Request>) {
        let n = load.frames();
        let (k, shards) = (self.stripe.data(), self.stripe.shards());
        let at = self.position;
        match self.way {
            Way::Rings => {
                self.position += n;
                let home = at / UNIT_FRAMES % shards;
                let ring = |other| ((home + other) % shards, 1, self.ring_position, n + 1);
                let mut now = vec![(home, 0, at / k, n), ring(1), ring(2)];
                self.ring_position += n + 1;
                let now =
                    now.drain(..).map(|(d, part, at, n)| (d, Self::offset_bytes(part, at, n), n));
                (now.collect(), self.stripes(2, frame))
            }
            Way::Mirror => {
                self.position += n;
                let first = at / UNIT_FRAMES % shards;
                let offset = Self::offset_bytes(0, at, n);
                let now = (0..3).map(|other| ((first + other) % shards, offset, n)).collect();
                (now, self.stripes(shards, frame))
            }
            Way::Plain | Way::Rows | Way::Columns | Way::Narrow => {
                let rows = self.rows(load);
                self.position += rows;
                let mut frames = vec![frame.clone(); n];
                frames.resize(rows * k, Frame::zeros());
                let columns: Vec<&[Frame]> = frames.chunks(rows).collect();
                drop(self.code.encode(&columns).expect("the columns are of one length"));
                let offset = Self::offset_bytes(0, at, rows);
                ((0..shards).map(|device| (device, offset, rows)).collect(), Vec::new())
            }
        }
    }

    /// Returns the rows that a record takes for itself.
    fn rows(&self, load: &Load) -> usize {
        match self.way {
            Way::Columns => load.rows_by_columns(self.stripe.data()),
            _ => load.frames().div_ceil(self.stripe.data()),
        }
    }

    /// Returns the writes of stripes that have become full by this many units.
    fn stripes(&mut self, units: usize, frame: &Frame) -> Vec<Request> {
        let stripe_frames = self.stripe.data() * UNIT_FRAMES;
        let mut later = Vec::new();
        while self.position - self.striped >= stripe_frames {
            let unit = vec![frame.clone(); UNIT_FRAMES];
            drop(self.code.encode(&vec![&unit[..]; self.stripe.data()]).expect("of one length"));
            let at = Self::offset_bytes(2, self.striped / self.stripe.data(), UNIT_FRAMES);
            later.extend((0..units).map(|device| (device, at, UNIT_FRAMES)));
            self.striped += stripe_frames;
        }
        later
    }
}

/// Returns the processor time of this thread, in seconds.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux has it");
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).expect("it is a number") / 1e9
}

/// Returns latency (p50, p99; in us), rate per second, and processor time of each (us).
fn run(
    devices: &mut Devices,
    at_once: usize,
    mut start: impl FnMut(&mut Devices, u64),
    mut end: impl FnMut(),
) -> [f64; 4] {
    let (begun, cpu) = (Instant::now(), cpu_s());
    let (mut next, mut started, mut latencies) = (0u64, HashMap::new(), Vec::new());
    let mut ended = Vec::new();
    while begun.elapsed() < RUN || !devices.open.is_empty() {
        while begun.elapsed() < RUN && started.len() < at_once {
            started.insert(next, Instant::now());
            start(devices, next);
            next += 1;
        }
        if devices.open.is_empty() {
            break;
        }
        devices.wait(&mut ended);
        for id in ended.drain(..) {
            if let Some(at) = started.remove(&id) {
                end();
                latencies.push(at.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    latencies.sort_by(f64::total_cmp);
    let count = latencies.len();
    let per_s = count as f64 / begun.elapsed().as_secs_f64();
    [latencies[count / 2], latencies[count * 99 / 100], per_s, (cpu_s() - cpu) * 1e6 / count as f64]
}

/// Returns the median of each figure.
fn medians(mut runs: Vec<[f64; 4]>) -> [f64; 4] {
    std::array::from_fn(|figure| {
        runs.sort_by(|a, b| a[figure].total_cmp(&b[figure]));
        runs[runs.len() / 2][figure]
    })
}

const WAYS: [(Way, &str); 6] = [
    (Way::Plain, "one device"),
    (Way::Rings, "(i) rings"),
    (Way::Mirror, "(ii) mirror, destage"),
    (Way::Rows, "(iii) by rows"),
    (Way::Columns, "(iii) by columns"),
    (Way::Narrow, "(iii) 1 + 2"),
];

fn measure_writes(devices: &mut Devices) {
    println!("\nrecords on {DEVICES} devices: p50 us, p99 us, commands in a second, CPU us each");
    for load in &LOADS {
        let mut logs = WAYS.map(|(way, _)| Log::new(way, DEVICES));
        let mut found = WAYS.map(|_| Vec::new());
        // In turns, so that other load of the machine affects all of them.
        for _ in 0..RUNS {
            for (log, found) in logs.iter_mut().zip(&mut found) {
                let start = |devices: &mut Devices, id| {
                    let (now, later) = log.append(load, &devices.frame);
                    devices.start(id, true, &now);
                    if !later.is_empty() {
                        devices.start(u64::MAX - id, true, &later);
                    }
                };
                found.push(run(devices, load.at_once, start, || ()));
            }
        }
        for ((_, name), found) in WAYS.iter().zip(found) {
            let [p50, p99, per_s, cpu] = medians(found);
            let (per_s, cpu) = (per_s * load.commands as f64, cpu / load.commands as f64);
            println!("{:<18} {name:<21} {p50:>6.0} {p99:>6.0} {per_s:>7.0} {cpu:>6.1}", load.name);
        }
    }
}

fn measure_reads(devices: &mut Devices) {
    let stripe = Stripe::new(DEVICES - 2, 2).expect("a valid stripe");
    let code = code(stripe).unwrap_or_else(|error| panic!("{error}"));
    let kinds: [(&str, usize, usize, usize); 5] = [
        ("4 KiB block: one device", 1, 1, 0),
        ("4 KiB block, degraded: 4 devices", 4, 1, 1),
        ("group of 16 KiB: one device", 1, 4, 0),
        ("group of 16 KiB: 4 KiB of 4 devices", 4, 1, 0),
        ("group of 16 KiB, degraded: 16 KiB of 4 devices", 4, 4, 4),
    ];
    println!("\nreads of {DEVICES} devices: p50 us, p99 us, reads in a second, CPU us each");
    for at_once in [1, 32] {
        let mut found = kinds.map(|_| Vec::new());
        let mut state = 1u64;
        for _ in 0..RUNS {
            for ((_, parts, frames, lost), found) in kinds.iter().zip(&mut found) {
                let start = |devices: &mut Devices, id| {
                    state =
                        state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let at = Log::offset_bytes(0, (state >> 33) as usize, *frames);
                    let first = (state >> 20) as usize;
                    let request = |part: usize| ((first + part) % DEVICES, at, *frames);
                    devices.start(id, false, &(0..*parts).map(request).collect::<Vec<_>>());
                };
                // Decoding takes the same time for any content.
                let shard = vec![devices.frame.clone(); *lost];
                let mut left = vec![Some(&shard[..]); stripe.shards()];
                left[0] = None;
                let end = || {
                    if *lost > 0 {
                        drop(code.reconstruct(&left, &[0]).expect("one is lost"));
                    }
                };
                found.push(run(devices, at_once, start, end));
            }
        }
        for ((name, ..), found) in kinds.iter().zip(found) {
            let [p50, p99, per_s, cpu] = medians(found);
            println!(
                "depth {at_once:>2}  {name:<47} {p50:>6.0} {p99:>6.0} {per_s:>7.0} {cpu:>6.1}"
            );
        }
    }
}

/// Prints written bytes per byte of the host, requests before the acknowledgement, and used space.
fn count() {
    println!("written bytes / host's, writes before the acknowledgement, taken bytes / host's");
    for devices in [3, 4, 6, 10, 18] {
        for load in &LOADS {
            print!("n = {devices:>2}  {:<18}", load.name);
            for (way, _) in WAYS {
                let mut log = Log::new(way, devices);
                let (now, _) = log.append(load, &Frame::zeros());
                let (k, shards) = (log.stripe.data() as f64, log.stripe.shards() as f64);
                let (frames, rows) = (load.frames() as f64, log.rows(load) as f64);
                let (later, taken) = match way {
                    Way::Rings => (frames * 2.0 / k, frames * shards / k),
                    Way::Mirror => (frames * shards / k, frames * shards / k),
                    Way::Plain | Way::Rows | Way::Columns | Way::Narrow => (0.0, rows * shards),
                };
                let written = now.iter().map(|request| request.2 as f64).sum::<f64>() + later;
                let host_frames = (load.host_bytes / FRAME_BYTES) as f64;
                let (written, taken) = (written / host_frames, taken / host_frames);
                print!("  {written:>5.2} {:>2} {taken:>5.2}", now.len());
            }
            println!();
        }
    }
}

fn main() -> std::io::Result<()> {
    let folder = std::env::args().nth(1).expect("name the folder for the files");
    count();
    let folder = Path::new(&folder).join("devices-of-a-measurement");
    std::fs::create_dir_all(&folder)?;
    let mut devices = Devices::open(&folder)?;
    measure_writes(&mut devices);
    measure_reads(&mut devices);
    drop(devices);
    std::fs::remove_dir_all(folder)
}
