//! The practices: each is a function of the evidence.

use std::collections::{BTreeMap, BTreeSet};

use super::{Evidence, HostCheckRow, Verdict, timers};

/// The minimum number of commands for which shares of paths are meaningful.
const COMMANDS_MIN: u64 = 1_000;
/// The number of portals that a host should use, if the array has that many: two of each of two
/// controllers.
const PATHS_BEST: usize = 4;
/// The longest EXTENDED COPY that a host sends with the recommended setting, in bytes.
const COPY_BEST_BYTES: u64 = 16 << 20;
/// The minimum that a host must have written before the check reports that it reclaims nothing, in
/// bytes.
const WRITTEN_MIN_BYTES: u64 = 1 << 30;
/// The minimum MaxBurstLength that does not slow large writes down: the value that ESXi requests.
const BURST_BEST_BYTES: u32 = 262_144;
/// The minimum of zeros sent as data that the check reports, in bytes.
const ZEROS_MIN_BYTES: u64 = 64 << 20;
const MIB: f64 = (1 << 20) as f64;

pub(super) fn all(evidence: &Evidence) -> Vec<HostCheckRow> {
    let mut rows = vec![multipath(evidence)];
    rows.extend(both_controllers(evidence));
    rows.extend([
        host_ports(evidence),
        round_robin(evidence),
        offloads_on(evidence),
        copy_used(evidence),
        copy_size(evidence),
        zero_used(evidence),
        ats_used(evidence),
        reclaim_used(evidence),
        login(evidence),
        digests(evidence),
        queue_depth(evidence),
    ]);
    rows.extend(timers::all());
    rows
}

pub(super) struct How {
    pub(super) best: &'static str,
    pub(super) esxi: &'static str,
    pub(super) linux: &'static str,
}

pub(super) fn row(
    check: &str,
    verdict: Verdict,
    seen: impl Into<String>,
    how: How,
) -> HostCheckRow {
    let How { best, esxi, linux } = how;
    HostCheckRow {
        check: check.into(),
        verdict,
        seen: seen.into(),
        best: best.into(),
        esxi: esxi.into(),
        linux: linux.into(),
        windows: String::new(),
        unreported: false,
    }
}

fn judged(is_good: bool) -> Verdict {
    if is_good { Verdict::Good } else { Verdict::Improve }
}

fn multipath(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "Sessions on all portals, or four of them: two of each controller.",
        esxi: "Add each portal as a send target (esxcli iscsi adapter discovery sendtarget add -A \
               vmhbaN -a ADDR:PORT), bind two VMkernel ports, and rescan.",
        linux: "iscsiadm -m discovery -t sendtargets -p ADDR:PORT; iscsiadm -m node --login; \
                enable multipathd.",
    };
    let used: BTreeSet<u16> = evidence.sessions.iter().map(|session| session.portal).collect();
    let seen = match (used.len(), evidence.has_left) {
        (0, _) => "No session.".to_owned(),
        (count, false) => format!("Sessions on {count} of {} portals.", evidence.portals),
        (count, true) => {
            format!("It has left; it had sessions on {count} of {} portals.", evidence.portals)
        }
    };
    let verdict = match used.len() {
        0 => Verdict::Unseen,
        count => judged(count > 1 && count >= evidence.portals.min(PATHS_BEST)),
    };
    row("multipath", verdict, seen, how)
}

/// Checks, for an array with two controllers, that a host would continue without either.
fn both_controllers(evidence: &Evidence) -> Option<HostCheckRow> {
    if evidence.controllers.is_empty() {
        return None;
    }
    let how = How {
        best: "Sessions at both controllers: either may end at any time, or be stopped.",
        esxi: "Add the portals of the other one as send targets (esxcli iscsi adapter discovery \
               sendtarget add -A vmhbaN -a ADDR:PORT), and rescan.",
        linux: "iscsiadm -m discovery -t sendtargets -p ADDR:PORT of the other one; iscsiadm -m \
                node --login.",
    };
    let used: BTreeSet<u16> = evidence.sessions.iter().map(|session| session.portal).collect();
    let (reached, others): (Vec<_>, Vec<_>) =
        evidence.controllers.iter().partition(|(_, ports)| !ports.is_disjoint(&used));
    let (verdict, seen) = match (reached.as_slice(), others.as_slice()) {
        ([], _) => (Verdict::Unseen, "No session.".to_owned()),
        ([(one, _), ..], [(other, _), ..]) => {
            (Verdict::Improve, format!("Sessions at {one} only, none at {other}."))
        }
        (_, []) => (Verdict::Good, "Sessions at both.".to_owned()),
    };
    Some(row("both_controllers", verdict, seen, how))
}

fn host_ports(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "At least two addresses of the host, of two network cards.",
        esxi: "esxcli iscsi networkportal add -A vmhbaN -n vmkN, for two VMkernel ports.",
        linux: "iscsiadm -m iface -I NAME --op new, for each network card, then discover again.",
    };
    let address = |peer: &str| peer.rsplit_once(':').map_or(peer, |(ip, _)| ip).to_owned();
    let from: BTreeSet<String> =
        evidence.sessions.iter().map(|session| address(&session.peer)).collect();
    let list = from.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
    let (verdict, seen) = match from.len() {
        0 => (Verdict::Unseen, "No session.".to_owned()),
        count if evidence.has_left => (judged(count > 1), format!("Sessions came from {list}.")),
        count => (judged(count > 1), format!("Sessions come from {list}.")),
    };
    row("host_ports", verdict, seen, how)
}

fn round_robin(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "Commands spread over all paths: round robin, one command a turn.",
        esxi: "esxcli storage nmp satp rule add -s VMW_SATP_ALUA -V HOLDFAST -M Holdfast -P \
               VMW_PSP_RR -O iops=1, then reclaim the devices or restart.",
        linux: "In multipath.conf: path_grouping_policy group_by_prio, path_selector \
                \"round-robin 0\", rr_min_io_rq 1.",
    };
    let mut by_portal: BTreeMap<u16, u64> = BTreeMap::new();
    for session in &evidence.sessions {
        *by_portal.entry(session.portal).or_default() += session.commands;
    }
    let total: u64 = by_portal.values().sum();
    if by_portal.len() < 2 || total < COMMANDS_MIN {
        let seen = match by_portal.len() {
            0 => "No session.".to_owned(),
            1 => "There is only one path.".to_owned(),
            _ => format!("{total} commands: too few to tell."),
        };
        return row("round_robin", Verdict::Unseen, seen, how);
    }
    let shares: Vec<String> = by_portal
        .iter()
        .map(|(portal, commands)| format!("portal {portal}: {}%", commands * 100 / total))
        .collect();
    let least = by_portal.values().min().copied().unwrap_or(0);
    // At least half of an even share: hosts start on different paths, and some commands are no I/O.
    let is_even = least * 2 * by_portal.len() as u64 >= total;
    row("round_robin", judged(is_even), format!("{}.", shares.join(", ")), how)
}

fn offloads_on(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "All offloads on for all volumes of the host.",
        esxi: "On the array: holdfast volume set VOLUME --offload all=on; holdfast array set \
               --offload all=on. Rescan.",
        linux: "On the array, as for ESXi; then rescan (iscsiadm -m session --rescan).",
    };
    let off = evidence.off.iter().copied().collect::<Vec<_>>().join(", ");
    let (verdict, seen) = match (evidence.volumes, off.is_empty()) {
        (0, _) => (Verdict::Unseen, "No volume is connected.".to_owned()),
        (count, true) => (Verdict::Good, format!("All are on for {count} volumes.")),
        (_, false) => (Verdict::Improve, format!("Off for some volumes: {off}.")),
    };
    row("offloads_on", verdict, seen, how)
}

/// Returns the row of an offload that the host uses, that was refused, or that was not observed.
fn used(evidence: &Evidence, check: &str, class: &str, how: How) -> HostCheckRow {
    let commands = evidence.commands(class);
    let (ok, failed) = (commands.ok, commands.failed);
    let (verdict, seen) = match (ok, failed) {
        (0, 0) => (Verdict::Unseen, "None was sent.".to_owned()),
        (0, _) => (Verdict::Improve, format!("All {failed} were refused.")),
        _ => (Verdict::Good, format!("{ok} succeeded, {failed} did not.")),
    };
    row(check, verdict, seen, how)
}

fn copy_used(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "Copies by EXTENDED COPY.",
        esxi: "esxcli system settings advanced set -i 1 -o /DataMover/HardwareAcceleratedMove",
        linux: "ddpt and libiscsi's programs send it; the kernel copies in software.",
    };
    used(evidence, "full_copy", "copy", how)
}

fn copy_size(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "EXTENDED COPY of 16 MiB and more.",
        esxi: "esxcli system settings advanced set -i 16384 -o /DataMover/MaxHWTransferSize; or a \
               claim rule of VAAI with -a -s -m 240, which uses what the array reports.",
        linux: "Nothing to set: programs choose the size.",
    };
    let copies = evidence.commands("copy");
    if copies.ok == 0 {
        return row("copy_size", Verdict::Unseen, "No copy was made.", how);
    }
    let mean = copies.bytes as f64 / copies.ok as f64 / MIB;
    let largest = copies.largest_bytes as f64 / MIB;
    let seen = format!("Up to {largest:.1} MiB, {mean:.1} MiB on average.");
    row("copy_size", judged(copies.largest_bytes >= COPY_BEST_BYTES), seen, how)
}

fn zero_used(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "Zeros by WRITE SAME, of any length.",
        esxi: "esxcli system settings advanced set -i 1 -o /DataMover/HardwareAcceleratedInit",
        linux: "blkdiscard --zeroout and fallocate use it by themselves.",
    };
    let zeros = evidence.commands("zero");
    let mut row = used(evidence, "block_zero", "zero", how);
    if zeros.ok > 0 {
        let mean = zeros.bytes as f64 / zeros.ok as f64 / MIB;
        let largest = zeros.largest_bytes as f64 / MIB;
        row.seen.push_str(&format!(" Up to {largest:.1} MiB, {mean:.1} MiB on average."));
    }
    let written: u64 = evidence.paths.iter().map(|path| path.zeros_written_bytes).sum();
    if written >= ZEROS_MIN_BYTES {
        // Some programs write zeros on any host: only a majority of zeros counts.
        if zeros.ok == 0 || written > zeros.bytes {
            row.verdict = Verdict::Improve;
        }
        let written = written as f64 / MIB;
        row.seen.push_str(&format!(" {written:.1} MiB of zeros were sent as data."));
    }
    row
}

fn ats_used(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "Locks by COMPARE AND WRITE, never by reservations of the whole volume.",
        esxi: "esxcli system settings advanced set -i 1 -o /VMFS3/HardwareAcceleratedLocking; and \
               -i 1 -o /VMFS3/UseATSForHBOnVMFS5",
        linux: "sanlock and LVM do not lock so: nothing to set.",
    };
    let reserves: u64 = evidence.paths.iter().map(|path| path.reserves).sum();
    let mut row = used(evidence, "ats", "compare_and_write", how);
    if reserves > 0 {
        row.verdict = Verdict::Improve;
        row.seen.push_str(&format!(" {reserves} reservations of whole volumes."));
    }
    row
}

fn reclaim_used(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "Unused space is returned by UNMAP.",
        esxi: "VMFS 6: esxcli storage vmfs reclaim config set -l DATASTORE -p low. VMFS 5: esxcli \
               storage vmfs unmap -l DATASTORE -n BLOCKS (up to 1% of the free space), and for \
               guests esxcli system settings advanced set -i 1 -o /VMFS3/EnableBlockDelete",
        linux: "systemctl enable --now fstrim.timer; for LVM issue_discards = 1.",
    };
    let written = evidence.commands("write").bytes;
    let mut row = used(evidence, "reclaim", "delete", how);
    if row.verdict == Verdict::Unseen && written >= WRITTEN_MIN_BYTES {
        row.verdict = Verdict::Improve;
        let written = written >> 30;
        row.seen = format!("None was sent, though {written} GiB were written since the start.");
    }
    row
}

fn login(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "MaxBurstLength of 256 KiB and more, and data with its command (ImmediateData).",
        esxi: "esxcli iscsi adapter param set -A vmhbaN -k MaxBurstLength -v 262144; and -k \
               ImmediateData -v true",
        linux: "node.session.iscsi.MaxBurstLength = 16776192 and \
                node.session.iscsi.ImmediateData = Yes (iscsid.conf).",
    };
    let Some(least) = evidence.sessions.iter().map(|s| s.terms).min_by_key(|t| t.burst_bytes)
    else {
        return row("login_parameters", Verdict::Unseen, "No session.", how);
    };
    let immediate = evidence.sessions.iter().all(|session| session.terms.immediate_data);
    let seen = format!(
        "MaxBurstLength {}, FirstBurstLength {}, ImmediateData {}.",
        least.burst_bytes,
        least.first_burst_bytes,
        if immediate { "Yes" } else { "No" }
    );
    let is_good = least.burst_bytes >= BURST_BEST_BYTES && immediate;
    row("login_parameters", judged(is_good), seen, how)
}

fn digests(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "The same on all paths: none on a network of its own, CRC32C across others.",
        esxi: "esxcli iscsi adapter param set -A vmhbaN -k DataDigest -v prohibited (or required); \
               the same for HeaderDigest",
        linux: "node.conn[0].iscsi.DataDigest = None (or CRC32C), and HeaderDigest (iscsid.conf).",
    };
    let kinds: BTreeSet<(bool, bool)> =
        evidence.sessions.iter().map(|s| (s.terms.header_digest, s.terms.data_digest)).collect();
    let name = |(header, data): &(bool, bool)| match (header, data) {
        (false, false) => "none",
        (true, false) => "headers",
        (false, true) => "data",
        (true, true) => "headers and data",
    };
    let list = kinds.iter().map(name).collect::<Vec<_>>().join("; ");
    let (verdict, seen) = match kinds.len() {
        0 => (Verdict::Unseen, "No session.".to_owned()),
        count => (judged(count == 1), format!("CRC32C: {list}.")),
    };
    row("digests", verdict, seen, how)
}

fn queue_depth(evidence: &Evidence) -> HostCheckRow {
    let how = How {
        best: "Enough for the load, and less than a session may have in flight.",
        esxi: "esxcli system module parameters set -m iscsi_vmk -p iscsivmk_LunQDepth=128; more \
               sessions where that is not enough.",
        linux: "node.session.queue_depth and node.session.cmds_max (iscsid.conf).",
    };
    let most = evidence.sessions.iter().max_by_key(|session| session.queue_most);
    let Some(most) = most.filter(|session| session.commands > 0) else {
        return row("queue_depth", Verdict::Unseen, "No command.", how);
    };
    let (queue, window) = (most.queue_most, u64::from(most.terms.commands));
    let seen = format!("Up to {queue} commands in flight, of {window} that a session may have.");
    row("queue_depth", judged(queue < window), seen, how)
}
