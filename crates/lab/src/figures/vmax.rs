//! Paper 002: EMC VMAX. V2 is VMAX, V3 is VMAX3 and VMAX All Flash.

use super::ChartKind::{Bars, Lines};
use super::Quantity::{Seconds, Value};
use super::{Figure, Published};

pub(super) const V_25: Figure = Figure {
    id: "V-25",
    paper: "002 VMAX, fig. 25",
    title: "Full Copy at 4, 16 and 240 MB (8 segments): thick, thin, clone of a clone of thin",
    published: &[
        Published::of("larger transfers (chart)").on("faster"),
        Published::of("clone of the clone of a thin disk (chart)").on("almost as fast as thick"),
        Published::of("thin disks before vSphere 6").on("1 MB a command, at every setting"),
    ],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const V_30: Figure = Figure {
    id: "V-30",
    paper: "002 VMAX, fig. 30",
    title: "Deploy from a template: 40 GB disk, 25 GB of data, at 4 and 16 MB",
    published: &[
        Published::of("the deployment (chart)").gain("faster than a software copy"),
        Published::of("what the time depends on")
            .off("the data, not the disk's size")
            .on("the data, not the disk's size"),
        Published::of("the host's CPU and memory").gain("no significant difference"),
    ],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const V_31: Figure = Figure {
    id: "V-31",
    paper: "002 VMAX, fig. 31-33",
    title: "Clone a VM: cold, hot, hot under heavy read load",
    published: &[Published::of("all three (charts)").gain("significant")],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const V_34: Figure = Figure {
    id: "V-34",
    paper: "002 VMAX, fig. 34",
    title: "Four clones of one cold VM at once",
    published: &[Published::of("four at once (chart)").gain("a benefit, as for one")],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const V_35: Figure = Figure {
    id: "V-35",
    paper: "002 VMAX, fig. 35",
    title: "Storage vMotion of a VM",
    published: &[Published::of("the move (chart)").gain("far quicker")],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const V_36: Figure = Figure {
    id: "V-36",
    paper: "002 VMAX, fig. 36",
    title: "Make eagerzeroedthick disks of 10, 20, 40, 60, 100 and 200 GB",
    published: &[Published::of("each size (chart)").gain("significant, the same at every size")],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const V_37: Figure = Figure {
    id: "V-37",
    paper: "002 VMAX, fig. 37",
    title: "The host's write rate while an eagerzeroedthick disk is made",
    published: &[
        Published::of("write rate of the host")
            .off("over 150,000 KB/s")
            .on("about 587 KB/s")
            .gain("250× less"),
        Published::of("for how long").off("2 min").on("about 2 s"),
    ],
    chart: Lines,
    quantity: Value,
};

pub(super) const V_38: Figure = Figure {
    id: "V-38",
    paper: "002 VMAX, fig. 38-39",
    title: "First writes to a 10 GB zeroedthick disk: 8 KB, 40% sequential, 35% write, 5 min",
    published: &[
        Published::of("response time and connections").gain("30% better"),
        Published::of("transactions a second").gain("15% more"),
    ],
    chart: Bars,
    quantity: Value,
};

pub(super) const V_48: Figure = Figure {
    id: "V-48",
    paper: "002 VMAX, fig. 48",
    title: "Reclaim with 200 blocks an iteration against 1% of the free space",
    published: &[
        Published::of("1% of the free space, against 200 blocks (chart)").on("faster"),
        Published::of("double the space, either way").on("about double the time"),
    ],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const V_51: Figure = Figure {
    id: "V-51",
    paper: "002 VMAX, fig. 51",
    title: "Reclaim 75, 150 and 300 GB",
    published: &[
        Published::of("300 GB, ESXi 5.1").on("202 s"),
        Published::of("150 GB, ESXi 5.1").on("100 s"),
        Published::of("75, 150 and 300 GB, V2 and V3 (chart)").on("linear in the space"),
    ],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const V_52: Figure = Figure {
    id: "V-52",
    paper: "002 VMAX, fig. 52",
    title: "Reclaim on volumes with synchronous and asynchronous replication",
    published: &[
        Published::of("against V-51 (chart)").on("significant impact, and less even"),
        Published::of("asynchronous against synchronous (chart)").on("less time"),
    ],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const V_53: Figure = Figure {
    id: "V-53",
    paper: "002 VMAX, fig. 53",
    title: "Reclaim on a volume with a clone or snapshot session",
    published: &[Published::of("against V-51").on("a little more than double the time")],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const V_55: Figure = Figure {
    id: "V-55",
    paper: "002 VMAX, fig. 54-55",
    title: "Reclaim while the front-end ports are loaded to about 50%",
    published: &[Published::of("against V-51 (chart)").on("relatively minor impact")],
    chart: Bars,
    quantity: Seconds,
};
