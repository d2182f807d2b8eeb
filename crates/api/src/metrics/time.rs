//! Metrics of the clock.

use super::Exposition;
use crate::Interface;

/// Adds whether each time server answers, and the clock's offset from it.
pub(super) fn time(interface: &Interface, page: &mut Exposition) {
    let all = interface.watch.time_servers();
    let help = "Whether the time server answers.";
    let mut up = page.gauge("holdfast_time_server_up", help);
    for one in &all {
        up.count(&[("server", &one.server)], u64::from(one.offset_s.is_some()));
    }
    let help = "The offset of the time server from the clock, in seconds.";
    let mut offset = page.gauge("holdfast_clock_offset_seconds", help);
    for (one, offset_s) in all.iter().filter_map(|one| Some((one, one.offset_s?))) {
        offset.add(&[("server", &one.server)], offset_s);
    }
}
