//! Paper 004: IBM FlashSystem V840.

use super::ChartKind::Bars;
use super::Quantity::{Seconds, Value};
use super::{Figure, Published};

pub(super) const I_ZERO: Figure = Figure {
    id: "I-zero",
    paper: "004 IBM, on Block Zero",
    title: "Make 50 VMs of 40 GB, and 200 VMs of 10 GB, eagerzeroedthick",
    published: &[
        Published::of("each of both, mean of three (charts)").gain("over 260% better"),
        Published::of("the host's and the network's work").on("none left"),
    ],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const I_COPY: Figure = Figure {
    id: "I-copy",
    paper: "004 IBM, on Full Copy",
    title: "Clone 50 VMs of 40 GB, and 200 VMs of 10 GB, eagerzeroedthick",
    published: &[
        Published::of("each of both, mean of three (charts)").gain("over 100% better"),
        Published::of("the host's and the network's work").on("none left"),
    ],
    chart: Bars,
    quantity: Seconds,
};

pub(super) const I_LOCK: Figure = Figure {
    id: "I-lock",
    paper: "004 IBM, on locking",
    title: "Make and remove snapshots in a loop beside a load: reservations, ATS, no locks",
    published: &[Published::of("IOPS of the load, against none locked")
        .off("17% lost")
        .on("none lost")],
    chart: Bars,
    quantity: Value,
};
