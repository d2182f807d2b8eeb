//! Short commands: TEST UNIT READY, REQUEST SENSE, START STOP UNIT, SEND DIAGNOSTIC, PREVENT ALLOW
//! MEDIUM REMOVAL, READ DEFECT DATA.

use crate::device::{Context, Unit};
use crate::sense::Sense;
use crate::step::{Command, Outcome, Response, Step};
use crate::unit::{alua, attention};

/// TEST UNIT READY (SPC-4, 6.47).
pub(crate) fn test_unit_ready(context: &Context<'_>, _: Command) -> Outcome {
    match context.unit {
        Unit::Volume(_) | Unit::ReportLuns => Ok(Step::Done(Response::good())),
        Unit::Empty | Unit::Unknown => Err(Sense::NO_SUCH_UNIT),
    }
}

/// REQUEST SENSE (SPC-4, 6.39): returns and clears the next unit attention; otherwise why the path
/// is not accessible; otherwise NO SENSE; for a unit that does not exist, that it does not exist.
pub(crate) fn request_sense(context: &Context<'_>, command: Command) -> Outcome {
    let sense = match context.unit {
        Unit::Volume(volume) => {
            let attention = context.nexus.take_attention(volume.id).map(attention::sense);
            let state = || alua::sense(context.server.access_state(volume.id, context.nexus));
            attention.or_else(state).unwrap_or(Sense::NONE)
        }
        Unit::ReportLuns => Sense::NONE,
        Unit::Empty | Unit::Unknown => Sense::NO_SUCH_UNIT,
    };
    let length = usize::from(command.cdb.u8(4));
    Ok(Step::Done(if command.cdb.bit(1, 0) {
        Response::parameters(&sense.descriptor_bytes(), length)
    } else {
        Response::parameters(&sense.bytes(), length)
    }))
}

/// START STOP UNIT (SBC-3, 5.25). The unit is always started. Starting it does nothing, its medium
/// is not removable and can't be ejected, and one of many hosts can't stop it.
pub(crate) fn start_stop_unit(context: &Context<'_>, command: Command) -> Outcome {
    context.volume()?;
    let power = command.cdb.u8(4) >> 4;
    let (load_eject, start) = (command.cdb.bit(4, 1), command.cdb.bit(4, 0));
    if power > 0 {
        return Err(Sense::cdb_field(4, 7)); // power conditions are not supported
    }
    if load_eject {
        return Err(Sense::cdb_field(4, 1)); // RMB is 0
    }
    let _ = start; // a stop is accepted, and the unit stays ready
    Ok(Step::Done(Response::good()))
}

/// SEND DIAGNOSTIC (SPC-4, 6.42): the default self-test, which any unit that responds passes (a
/// pool that can't be used has no units). There are no other tests and no diagnostic pages, so no
/// parameter list.
pub(crate) fn send_diagnostic(context: &Context<'_>, command: Command) -> Outcome {
    context.volume()?;
    let cdb = &command.cdb;
    if cdb.u8(1) >> 5 != 0 {
        return Err(Sense::cdb_field(1, 7)); // SELF-TEST CODE: background and foreground tests
    }
    if cdb.u16(3) != 0 {
        return Err(Sense::cdb_bytes(3)); // PARAMETER LIST LENGTH
    }
    Ok(Step::Done(Response::good()))
}

/// PREVENT ALLOW MEDIUM REMOVAL (SBC-3, 5.9): the medium is not removable anyway.
pub(crate) fn prevent_allow(context: &Context<'_>, command: Command) -> Outcome {
    context.volume()?;
    if command.cdb.u8(4) & 0x02 != 0 {
        return Err(Sense::cdb_field(4, 1)); // obsolete values
    }
    Ok(Step::Done(Response::good()))
}

/// READ DEFECT DATA (10) (SBC-3, 5.17): returns an empty list; flash has no defect list of use to a
/// host.
pub(crate) fn read_defect_data_10(context: &Context<'_>, command: Command) -> Outcome {
    context.volume()?;
    let out = [0, command.cdb.u8(2) & 0x1f, 0, 0];
    Ok(Step::Done(Response::parameters(&out, command.cdb.u16(7).into())))
}

/// READ DEFECT DATA (12) (SBC-3, 5.18).
pub(crate) fn read_defect_data_12(context: &Context<'_>, command: Command) -> Outcome {
    context.volume()?;
    let out = [0, command.cdb.u8(1) & 0x1f, 0, 0, 0, 0, 0, 0];
    Ok(Step::Done(Response::parameters(&out, command.cdb.u32(6) as usize)))
}
