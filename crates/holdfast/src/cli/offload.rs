//! Offloads by the names in the documentation of hosts.

use api::{OffloadChange, OffloadSettings};
use block::Offload;

/// Some offloads, and whether to switch them on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switch {
    offloads: Vec<Offload>,
    on: bool,
}

fn name(offload: Offload) -> &'static str {
    match offload {
        Offload::CompareAndWrite => "ats",
        Offload::ExtendedCopy => "full-copy",
        Offload::WriteSame => "block-zero",
        Offload::Unmap => "reclaim",
        Offload::TokenCopy => "odx",
    }
}

/// Parses `full-copy=off`.
///
/// # Errors
/// One line that shows the form of a switch.
pub fn parse(text: &str) -> Result<Switch, String> {
    let refuse = || {
        let names = Offload::ALL.map(name).join(", ");
        format!("{text:?} is not a switch; write OFFLOAD=on or OFFLOAD=off, of {names} or all")
    };
    let (which, state) = text.split_once('=').ok_or_else(refuse)?;
    let on = match state {
        "on" => true,
        "off" => false,
        _ => return Err(refuse()),
    };
    let is_meant = |offload: &Offload| which == "all" || which == name(*offload);
    let offloads: Vec<Offload> = Offload::ALL.into_iter().filter(is_meant).collect();
    if offloads.is_empty() { Err(refuse()) } else { Ok(Switch { offloads, on }) }
}

/// Returns the request to the array: the last switch for each offload counts.
pub fn change(switches: &[Switch]) -> OffloadChange {
    let mut change = OffloadChange::default();
    for Switch { offloads, on } in switches {
        for offload in offloads {
            *change.of(*offload) = Some(*on);
        }
    }
    change
}

/// Returns `all on`, or the offloads that are off: `no ats, full-copy`.
pub fn text(settings: &OffloadSettings) -> String {
    let each = settings.each();
    let off: Vec<&str> =
        each.iter().filter(|(_, on)| !on).map(|(offload, _)| name(*offload)).collect();
    if off.is_empty() { "all on".into() } else { format!("no {}", off.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_parsed_and_the_last_one_wins() {
        let switches = ["all=off", "ats=on"].map(|text| parse(text).unwrap());
        let change = change(&switches);
        assert_eq!((change.compare_and_write, change.extended_copy), (Some(true), Some(false)));
        for offload in Offload::ALL {
            assert_eq!(parse(&format!("{}=off", name(offload))).unwrap().offloads, [offload]);
        }
        for bad in ["", "ats", "ats=", "ats=1", "=on", "teleport=on"] {
            assert!(parse(bad).unwrap_err().contains("full-copy"), "{bad}");
        }
    }

    #[test]
    fn offloads_that_are_off_are_listed() {
        let all = OffloadSettings::from(block::Offloads::ALL);
        assert_eq!(text(&all), "all on");
        let some = OffloadSettings { unmap: false, compare_and_write: false, ..all };
        assert_eq!(text(&some), "no ats, reclaim");
    }
}
