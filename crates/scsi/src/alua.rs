//! Target port groups (SPC-4, 5.15 and 6.37). All groups are active and optimized until a second
//! controller exists; states change without the host's doing (implicit), so SET TARGET PORT GROUPS
//! is not supported.

use std::collections::BTreeMap;

use crate::response::{Command, Response, Step};
use crate::sense::Sense;
use crate::server::Context;
use crate::table::Outcome;

/// Active/optimized, as state and as support bit.
const ACTIVE_OPTIMIZED: u8 = 0x00;
const ACTIVE_OPTIMIZED_SUPPORTED: u8 = 0x01;

pub(crate) fn report(context: &Context<'_>, command: Command) -> Outcome {
    let cdb = &command.cdb;
    let mut out = match cdb.u8(1) >> 5 {
        0 => vec![0; 4],
        1 => vec![0, 0, 0, 0, 0x10, 0, 0, 0],
        _ => return Err(Sense::cdb_field(1, 7)),
    };
    let mut groups: BTreeMap<u16, Vec<u16>> = BTreeMap::new();
    for port in &context.server.ports {
        groups.entry(port.group).or_default().push(port.relative_id);
    }
    for (group, ports) in &groups {
        let [high, low] = group.to_be_bytes();
        let count = ports.len().min(255);
        out.extend([ACTIVE_OPTIMIZED, ACTIVE_OPTIMIZED_SUPPORTED, high, low, 0, 0, 0]);
        out.push(count as u8);
        for port in &ports[..count] {
            let [high, low] = port.to_be_bytes();
            out.extend([0, 0, high, low]);
        }
    }
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    Ok(Step::Done(Response::parameters(&out, cdb.u32(6) as usize)))
}
