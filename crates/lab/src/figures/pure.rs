//! Papers 000, 001 and 003: Pure Storage.

use super::ChartKind::{Bars, Lines};
use super::Quantity::{Seconds, Value};
use super::{Figure, Published};

pub(super) const P_9: Figure = Figure {
    id: "P-9",
    paper: "000 Pure, fig. 9-12",
    title: "Deploy one VM from a template to another datastore: 100 GB zeroedthick, 50 GB of data",
    published: &[
        Published::of("the deployment").off("over 2 min").on("7 s").gain("about 5×, in its words"),
        Published::of("a VM of 50 GB, as usual").off("many minutes").on("about 10 s"),
        Published::of("IOPS and MB/s of the host (charts, one scale for both)")
            .gain("greatly reduced for as long as it takes"),
    ],
    chart: Lines,
    quantity: Seconds,
};

pub(super) const P_13: Figure = Figure {
    id: "P-13",
    paper: "000 Pure, fig. 13",
    title: "Deploy 1, 2, 4, 8 and 16 VMs from a template at once",
    published: &[
        Published::of("16 VMs at once").off("4.5 min").on("35 s").gain("about 8×"),
        Published::of("one VM").gain("about 5×"),
        Published::of("with more VMs at once")
            .off("time, IOPS and MB/s grow almost linearly")
            .on("they grow much slower"),
    ],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const B_SCALE: Figure = Figure {
    id: "B-scale",
    paper: "001 and 003 Pure, on Full Copy",
    title: "Deploy 32, 64 and 128 VMs, 16 copies in flight",
    published: &[
        Published::of("128 VMs").on("3 min 39 s"),
        Published::of("32 VMs").on("56 s"),
        Published::of("each VM by itself, of 32 and of 128").on("13 to 17 s"),
        Published::of("1, 32, 64 and 128 VMs (chart)").on("linear in the count"),
    ],
    chart: Lines,
    quantity: Seconds,
};

pub(super) const P_14: Figure = Figure {
    id: "P-14",
    paper: "000 Pure, fig. 14",
    title: "Storage vMotion: powered off, idle, under load (32 KB, mostly random, write heavy)",
    published: &[
        Published::of("powered off, and idle (chart)").gain("both equally"),
        Published::of("under load (chart)").gain("somewhat slower, still substantial"),
    ],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const P_15: Figure = Figure {
    id: "P-15",
    paper: "000 Pure, fig. 15",
    title: "Deploy 75 GB: thin, zeroedthick, eagerzeroedthick; extents of 1 MB against 16 MB",
    published: &[
        Published::of("thick disks, vSphere 5.x (chart)").on("much faster than thin ones"),
        Published::of("thin disks, vSphere 5.x (chart)")
            .on("1 MB a command, regardless of the configuration")
            .gain("less than for thick ones"),
        Published::of("all three, vSphere 6.0 (chart)").on("no difference"),
        Published::of("thin disks, vSphere 6.0 against 5.x (chart)").off("better, too"),
    ],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const P_16: Figure = Figure {
    id: "P-16",
    paper: "000 Pure, fig. 16",
    title: "Make eagerzeroedthick disks of four sizes",
    published: &[Published::of("each size (chart)").gain("about 6× on average, at every size")],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const P_17: Figure = Figure {
    id: "P-17",
    paper: "000 Pure, fig. 17",
    title: "Make four 100 GB eagerzeroedthick disks at once",
    published: &[Published::of("four at once, against one")
        .off("3.5× the time")
        .on("1.6× the time")],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const P_18: Figure = Figure {
    id: "P-18",
    paper: "000 Pure, fig. 18",
    title: "Sequential 32 KB writes to new blocks: thin, zeroedthick, eagerzeroedthick",
    published: &[
        Published::of("latency, against eagerzeroedthick").off("30% more").on("20% more"),
        Published::of("IOPS and MB/s, against eagerzeroedthick").off("23% less").on("17% less"),
        Published::of("thin against zeroedthick").off("zeroedthick slightly ahead"),
        Published::of("eagerzeroedthick ahead in IOPS, another place in its text")
            .on("30% of thin, 20% of zeroedthick"),
    ],
    chart: Bars,
    quantity: Value,
};

pub(super) const P_6: Figure = Figure {
    id: "P-6",
    paper: "000 Pure, fig. 6-7; 001",
    title: "Boot storm: 150 VMs powered on at once beside a VM that loads five disks",
    published: &[Published::of("IOPS and MB/s of the load over time (charts)")
        .off("deeply disrupted, vary wildly")
        .on("hardly disturbed")],
    chart: Lines,
    quantity: Value,
};

pub(super) const P_19: Figure = Figure {
    id: "P-19",
    paper: "000 Pure, fig. 19",
    title: "Reclaim 1, 4 and 8 TB of free space, by blocks an iteration (1 MB each)",
    published: &[
        Published::of("from 200 to about 40,000 blocks (chart)").on("falls steeply"),
        Published::of("more than 40,000 blocks (chart)").on("falls little"),
        Published::of("what the time depends on").on("free space, not the volume's size"),
    ],
    chart: Lines,
    quantity: Seconds,
};
