//! The rows of the benchmark.

use serde::Serialize;

use super::options::Options;

/// The kind of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Reads: nothing must become durable.
    Read,
    /// Writes, or reads and writes.
    Write,
    /// Commands that all targets support equally.
    Command,
    /// EXTENDED COPY, which no peer here supports.
    Copy,
    /// Commands over 4 MiB, which a peer may execute block by block.
    Offload,
    /// Commands over 240 MiB, which finish in time only as metadata operations.
    LongOffload,
}

/// A row.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Row {
    /// Its name, for `--rows`.
    pub id: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Its kind.
    pub kind: Kind,
    /// The load generator's arguments.
    #[serde(skip)]
    load: &'static str,
    /// Whether the range it covers must be mapped first.
    #[serde(skip)]
    pub needs_mapped: bool,
    /// The goal: the least ratio of rates to tgt's (to durable 4 KiB writes, for offloads).
    pub goal: f64,
}

const fn row(
    id: &'static str,
    title: &'static str,
    kind: Kind,
    load: &'static str,
    goal: f64,
) -> Row {
    Row { id, title, kind, load, needs_mapped: false, goal }
}

const fn offload(id: &'static str, title: &'static str, kind: Kind, load: &'static str) -> Row {
    Row { id, title, kind, load, needs_mapped: !matches!(kind, Kind::Copy), goal: 0.8 }
}

/// The row with which offloads are compared.
pub const DURABLE_WRITE: &str = "write-4k-32";
/// The row of commands that do nothing.
pub const NOTHING: &str = "tur-32";

/// All rows, in the order in which they run.
pub const ROWS: &[Row] = &[
    row("read-4k-1", "4 KiB random read, depth 1", Kind::Read, "--rw randread --depth 1", 1.0),
    row("read-4k-32", "4 KiB random read, depth 32", Kind::Read, "--rw randread --depth 32", 1.0),
    row("write-4k-1", "4 KiB random write, depth 1", Kind::Write, "--rw randwrite --depth 1", 1.0),
    row(
        DURABLE_WRITE,
        "4 KiB random write, depth 32",
        Kind::Write,
        "--rw randwrite --depth 32",
        2.0,
    ),
    row(
        "read-32k",
        "32 KiB sequential read, depth 8",
        Kind::Read,
        "--rw read --block 32k --depth 8",
        1.0,
    ),
    row(
        "write-32k",
        "32 KiB sequential write, depth 8",
        Kind::Write,
        "--rw write --block 32k --depth 8",
        1.0,
    ),
    row(
        "read-256k",
        "256 KiB sequential read, depth 8",
        Kind::Read,
        "--rw read --block 256k --depth 8",
        1.0,
    ),
    row(
        "write-256k",
        "256 KiB sequential write, depth 8",
        Kind::Write,
        "--rw write --block 256k --depth 8",
        1.0,
    ),
    row(
        "mixed-8k",
        "8 KiB, 65/35, 40% sequential, depth 16",
        Kind::Write,
        "--rw mixed --block 8k --depth 16 --read-percent 65 --seq-percent 40",
        1.0,
    ),
    // The same number of commands in flight, over one, several and many sessions.
    row(
        "read-4k-sessions-1",
        "4 KiB random read, 1 session, depth 64",
        Kind::Read,
        "--rw randread --depth 64",
        1.0,
    ),
    row(
        "read-4k-sessions-8",
        "4 KiB random read, 8 sessions, depth 8 each",
        Kind::Read,
        "--rw randread --sessions 8 --depth 8",
        1.0,
    ),
    row(
        "read-4k-sessions-64",
        "4 KiB random read, 64 sessions, depth 1 each",
        Kind::Read,
        "--rw randread --sessions 64 --depth 1",
        1.0,
    ),
    row(
        "write-4k-sessions-1",
        "4 KiB random write, 1 session, depth 64",
        Kind::Write,
        "--rw randwrite --depth 64",
        2.0,
    ),
    row(
        "write-4k-sessions-8",
        "4 KiB random write, 8 sessions, depth 8 each",
        Kind::Write,
        "--rw randwrite --sessions 8 --depth 8",
        2.0,
    ),
    row(
        "write-4k-sessions-64",
        "4 KiB random write, 64 sessions, depth 1 each",
        Kind::Write,
        "--rw randwrite --sessions 64 --depth 1",
        2.0,
    ),
    row(NOTHING, "TEST UNIT READY, depth 32", Kind::Command, "--command tur --depth 32", 1.0),
    offload(
        "xcopy-4m",
        "EXTENDED COPY of 4 MiB, depth 32",
        Kind::Copy,
        "--command xcopy --length 4M --depth 32",
    ),
    offload(
        "xcopy-240m",
        "EXTENDED COPY of 240 MiB, depth 32",
        Kind::Copy,
        "--command xcopy --length 240M --depth 32",
    ),
    offload(
        "writesame-4m",
        "WRITE SAME of 4 MiB, depth 32",
        Kind::Offload,
        "--command writesame --length 4M --depth 32",
    ),
    offload(
        "writesame-240m",
        "WRITE SAME of 240 MiB, depth 32",
        Kind::LongOffload,
        "--command writesame --length 240M --depth 32",
    ),
    offload(
        "unmap-4m",
        "UNMAP of 4 MiB, depth 32",
        Kind::Offload,
        "--command unmap --length 4M --depth 32",
    ),
    offload(
        "unmap-240m",
        "UNMAP of 240 MiB, depth 32",
        Kind::LongOffload,
        "--command unmap --length 240M --depth 32",
    ),
];

/// The length of a long offload.
const LONG_BYTES: u64 = 240 << 20;

impl Row {
    /// Returns the load generator's arguments.
    pub fn arguments(&self, options: &Options) -> Vec<String> {
        let mut all: Vec<String> = self.load.split(' ').map(String::from).collect();
        all.extend([String::from("--seconds"), options.seconds.to_string()]);
        if self.kind == Kind::LongOffload {
            // Once over the volume, and no further: beyond its end there is nothing to do.
            let steps = (options.volume_bytes() - options.span) / LONG_BYTES;
            all.extend(["--ramp", "0", "--commands"].map(String::from));
            all.push(steps.to_string());
        }
        all
    }

    /// Returns whether it is compared with durable writes, not with a peer.
    pub fn is_offload(&self) -> bool {
        matches!(self.kind, Kind::Copy | Kind::Offload | Kind::LongOffload)
    }
}

/// Returns the arguments that copy the span over everything after it.
pub fn remap_arguments(volume_bytes: u64) -> Vec<String> {
    let commands = (volume_bytes / LONG_BYTES).to_string();
    let mut all: Vec<String> =
        "--command xcopy --length 240M --depth 16 --ramp 0 --seconds 120 --commands"
            .split(' ')
            .map(String::from)
            .collect();
    all.push(commands);
    all
}
