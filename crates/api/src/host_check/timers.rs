//! The recommended timers of a host. Hosts report none of them to the array, so none is judged.

use super::HostCheckRow;
use super::rows::{How, row};
use crate::Verdict;

/// The observation of all timers.
const UNREPORTED: &str = "Hosts do not report it.";

pub(super) fn all() -> [HostCheckRow; 3] {
    [nop(), path_lost(), no_path()]
}

fn unreported(check: &str, how: How, windows: &str) -> HostCheckRow {
    let (windows, unreported) = (windows.to_owned(), true);
    HostCheckRow { windows, unreported, ..row(check, Verdict::Unseen, UNREPORTED, how) }
}

/// The detection of a silent path: a path whose connection ends is detected at once.
fn nop() -> HostCheckRow {
    let how = How {
        best: "The host probes each path every 5 to 15 seconds, with no longer timeout.",
        esxi: "esxcli iscsi adapter param set -A vmhbaN -k NoopOutInterval -v 15; and -k \
               NoopOutTimeout -v 10 (the defaults)",
        linux: "node.conn[0].timeo.noop_out_interval = 5 and noop_out_timeout = 5 (iscsid.conf; \
                the defaults)",
    };
    let windows = "HKLM\\SYSTEM\\CurrentControlSet\\Control\\Class\\\
                   {4D36E97B-E325-11CE-BFC1-08002BE10318}\\NNNN\\Parameters: EnableNOPOut = 1";
    unreported("nop_timeout", how, windows)
}

/// How long commands wait for a lost path before they are sent over another one.
fn path_lost() -> HostCheckRow {
    let how = How {
        best: "If there are other paths, commands leave a lost path after 5 to 20 seconds.",
        esxi: "esxcli iscsi adapter param set -A vmhbaN -k RecoveryTimeout -v 10 (the default)",
        linux: "With multipath: fast_io_fail_tmo 5 (multipath.conf), which counts before \
                node.session.timeo.replacement_timeout = 20 (iscsid.conf). Without: 120, the \
                default.",
    };
    let windows = "LinkDownTime = 15 (the default), in the same place as EnableNOPOut";
    unreported("path_timeout", how, windows)
}

/// How long commands wait without any path: longer than both controllers need to return.
fn no_path() -> HostCheckRow {
    let how = How {
        best: "Without any path, commands wait for two minutes before they fail.",
        esxi: "esxcli system settings advanced set -i 140 -o /Misc/APDTimeout (the default)",
        linux: "no_path_retry 24 with polling_interval 5 (multipath.conf); prio alua and failback \
                immediate, so that paths of the owner are used again.",
    };
    let windows = "Set-MPIOSetting -NewPDORemovePeriod 120 -NewDiskTimeout 60; without MPIO \
                   MaxRequestHoldTime = 120, in the same place as EnableNOPOut";
    unreported("no_path_timeout", how, windows)
}
