//! MODE SENSE and MODE SELECT (SPC-4, 6.11 to 6.14, 7.5; SBC-3, 6.5). D_SENSE and SWP of the
//! control page can be changed; of all other fields MODE SELECT accepts only the current values.

use block::VolumeAttributes;
use target::Attention;

use crate::bytes::{be_u8, be_u16, parameter_list};
use crate::controls::Controls;
use crate::device::Context;
use crate::limits::{blocks, can_deallocate};
use crate::sense::Sense;
use crate::step::{Command, Outcome, Response, Step};

/// DPOFUA: DPO and FUA are supported (SBC-3, 6.5.1).
const DPO_FUA: u8 = 0x10;
/// WP: the medium is write protected.
const WRITE_PROTECT: u8 = 0x80;
/// The control page.
const CONTROL: u8 = 0x0a;
/// The pages, in the order in which "all pages" returns them.
const PAGES: [u8; 4] = [0x01, 0x08, CONTROL, 0x1c];

/// Which values of a page to return.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    Current,
    Changeable,
    Default,
}

/// Returns the changeable bits of the control page.
fn control_bits(controls: Controls) -> [(usize, u8); 2] {
    [(2, u8::from(controls.descriptor_sense) << 2), (4, u8::from(controls.write_protected) << 3)]
}

/// Returns the controls that a control page sets.
fn controls_of(page: &[u8]) -> Controls {
    Controls {
        descriptor_sense: be_u8(page, 2) & 0x04 != 0,
        write_protected: be_u8(page, 4) & 0x08 != 0,
    }
}

/// Returns a page in page 0 format (without subpages).
fn page(
    volume: &VolumeAttributes,
    controls: Controls,
    code: u8,
    control: Control,
) -> Option<Vec<u8>> {
    let (length, fields): (u8, &[(usize, u8)]) = match code {
        // Read-write error recovery: no field applies to a medium that corrects itself.
        0x01 => (0x0a, &[]),
        // Caching: WCE follows the array's durability; the host can't change it.
        0x08 if volume.write_cache => (0x12, &[(2, 0x04)]),
        0x08 => (0x12, &[]),
        // Control: a task set for each I_T nexus (TST 001b); GLTSD; unrestricted reordering;
        // unlimited busy timeout.
        CONTROL => (0x0a, &[(2, 0x22), (3, 0x10), (8, 0xff), (9, 0xff)]),
        // Informational exceptions: DEXCPT, none are reported.
        0x1c => (0x0a, &[(2, 0x08)]),
        _ => return None,
    };
    let mut out = vec![0; usize::from(length) + 2];
    out[0] = code;
    out[1] = length;
    if control != Control::Changeable {
        for &(at, value) in fields {
            out[at] = value;
        }
    }
    if code == CONTROL {
        let bits = match control {
            Control::Current => controls,
            Control::Changeable => Controls { descriptor_sense: true, write_protected: true },
            Control::Default => Controls::default(),
        };
        for (at, value) in control_bits(bits) {
            out[at] |= value;
        }
    }
    Some(out)
}

/// Returns a page of the unit: subpage 0, or the only subpage (thresholds, 1Ch/02h).
fn unit_page(
    context: &Context<'_>,
    controls: Controls,
    (code, subpage): (u8, u8),
    control: Control,
) -> Result<Option<Vec<u8>>, Sense> {
    let volume = context.volume()?;
    let with_values = control != Control::Changeable;
    Ok(match (code, subpage) {
        (0x1c, 0x02) => provisioning(context, volume, with_values),
        (0x01, 0) => {
            let mut out = page(volume, controls, code, control);
            let told = with_values && has_thresholds(context, volume);
            if let Some(byte) = out.as_mut().filter(|_| told).and_then(|page| page.get_mut(7)) {
                *byte |= 0x80; // LBPERE
            }
            out
        }
        (_, 0) => page(volume, controls, code, control),
        _ => None,
    })
}

fn block_descriptor(volume: &VolumeAttributes, long: bool) -> Vec<u8> {
    let block = (volume.logical_block.bytes() as u32).to_be_bytes();
    let count = blocks(volume);
    let mut out = Vec::with_capacity(16);
    if long {
        out.extend(count.to_be_bytes());
        out.extend([0; 4]);
        out.extend(block);
    } else {
        out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
        out.extend([0, block[1], block[2], block[3]]);
    }
    out
}

/// Returns the block descriptors and pages that a MODE SENSE requests.
fn body(context: &Context<'_>, command: &Command, long: bool) -> Result<(usize, Vec<u8>), Sense> {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let controls = context.server.controls.of(volume.id);
    let control = match cdb.u8(2) >> 6 {
        0 => Control::Current,
        1 => Control::Changeable,
        2 => Control::Default,
        _ => return Err(Sense::SAVING_NOT_SUPPORTED),
    };
    let (code, subpage) = (cdb.u8(2) & 0x3f, cdb.u8(3));
    let mut out = Vec::new();
    if !cdb.bit(1, 3) {
        out = block_descriptor(volume, long);
    }
    let descriptors = out.len();
    let codes = if code == 0x3f { &PAGES[..] } else { &[code] };
    let subpages: &[u8] = match (code, subpage) {
        (_, 0xff) => &[0x00, 0x02],
        (_, 0x00) => &[0x00],
        (0x1c, 0x02) => &[0x02],
        _ => return Err(Sense::cdb_bytes(3)),
    };
    let before = out.len();
    for names in codes.iter().flat_map(|&code| subpages.iter().map(move |&sub| (code, sub))) {
        out.extend(unit_page(context, controls, names, control)?.into_iter().flatten());
    }
    if out.len() == before {
        return Err(if subpage == 0x02 { Sense::cdb_bytes(3) } else { Sense::cdb_field(2, 5) });
    }
    Ok((descriptors, out))
}

/// Returns the DEVICE-SPECIFIC PARAMETER of the header (SBC-3, 6.5.1).
fn device_specific(context: &Context<'_>) -> Result<u8, Sense> {
    let controls = context.server.controls.of(context.volume()?.id);
    Ok(DPO_FUA | if controls.write_protected { WRITE_PROTECT } else { 0 })
}

pub(crate) fn sense_6(context: &Context<'_>, command: Command) -> Outcome {
    let (descriptors, body) = body(context, &command, false)?;
    let mut out = vec![(body.len() + 3) as u8, 0, device_specific(context)?, descriptors as u8];
    out.extend(body);
    Ok(Step::Done(Response::parameters(&out, command.cdb.u8(4).into())))
}

pub(crate) fn sense_10(context: &Context<'_>, command: Command) -> Outcome {
    let long = command.cdb.bit(1, 4);
    let (descriptors, body) = body(context, &command, long)?;
    let [high, low] = ((body.len() + 6) as u16).to_be_bytes();
    let long_lba = u8::from(long && descriptors > 0);
    let specific = device_specific(context)?;
    let mut out = vec![high, low, 0, specific, long_lba, 0, 0, descriptors as u8];
    out.extend(body);
    Ok(Step::Done(Response::parameters(&out, command.cdb.u16(7).into())))
}

/// Executes a MODE SELECT whose parameter list has a header of `header` bytes.
fn select(context: &Context<'_>, command: &Command, length: usize, header: usize) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let done = Response::good().wanting(Some(length as u64));
    if cdb.bit(1, 0) {
        return Err(Sense::cdb_field(1, 0)); // SP: saving is not supported
    }
    if !cdb.bit(1, 4) {
        return Err(Sense::cdb_field(1, 4)); // PF: only pages in the standard's format
    }
    if length == 0 {
        return Ok(Step::Done(done));
    }
    let list = parameter_list(&command.data_out, length)?;
    if list.len() < header {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let (long, descriptors) = if header == 4 {
        (false, usize::from(be_u8(&list, 3)))
    } else {
        (be_u8(&list, 4) & 1 != 0, usize::from(be_u16(&list, 6)))
    };
    let mut at = header;
    if descriptors > 0 {
        let want = block_descriptor(volume, long);
        if descriptors != want.len() {
            return Err(Sense::parameter(header - 1, 0));
        }
        let got = list.get(at..at + descriptors).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
        check_descriptor(got, &want, at)?;
        at += descriptors;
    }
    // All pages are checked before any takes effect.
    let mut controls = context.server.controls.of(volume.id);
    while at < list.len() {
        at = take_page(context, &mut controls, &list, at)?;
    }
    if context.server.controls.set(volume.id, controls) {
        let own = context.nexus.id();
        context.server.target.attend_others(own, volume.id, Attention::Settings);
    }
    Ok(Step::Done(done))
}

/// Checks a block descriptor: it must contain the current block length, and the current number of
/// blocks, or 0 for all of them (SBC-3, 6.5.2).
fn check_descriptor(got: &[u8], want: &[u8], at: usize) -> Result<(), Sense> {
    let count = if got.len() == 16 { 8 } else { 4 };
    let (got_count, got_rest) = got.split_at(count);
    let (want_count, want_rest) = want.split_at(count);
    if got_count != want_count && got_count.iter().any(|&byte| byte != 0) {
        return Err(Sense::parameter(at, 0));
    }
    if got_rest != want_rest {
        return Err(Sense::parameter(at + count, 0));
    }
    Ok(())
}

/// Applies the page at `at`, if it changes only what can be changed; returns the offset of the
/// next.
fn take_page(
    context: &Context<'_>,
    controls: &mut Controls,
    list: &[u8],
    at: usize,
) -> Result<usize, Sense> {
    // With SPF the second byte is the subpage, and the length has two bytes (SPC-4, 7.5.7).
    let (first, has_subpage) = (be_u8(list, at), be_u8(list, at) & 0x40 != 0);
    let subpage = if has_subpage { be_u8(list, at + 1) } else { 0 };
    if has_subpage && subpage == 0 {
        return Err(Sense::parameter(at, 0)); // page 0 has page 0 format
    }
    let names = (first & 0x3f, subpage);
    let page = |control| unit_page(context, *controls, names, control);
    let unknown = Sense::parameter(at, 0);
    let (want, free) = page(Control::Current)?.zip(page(Control::Changeable)?).ok_or(unknown)?;
    let header = if has_subpage { 4 } else { 2 };
    if at + header > list.len() {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    if let Some(differs) = (1..header).find(|&byte| be_u8(list, at + byte) != want[byte]) {
        return Err(Sense::parameter(at + differs, 0));
    }
    let got = list.get(at..at + want.len()).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
    // PS (bit 7 of byte 0) is reserved here and ignored; the length was checked.
    let differs = |at: &usize| (got[*at] ^ want[*at]) & !free[*at] != 0;
    if let Some(byte) = (header..want.len()).find(differs) {
        return Err(Sense::parameter(at + byte, 0));
    }
    if names == (CONTROL, 0) {
        *controls = controls_of(got);
    }
    Ok(at + want.len())
}

pub(crate) fn select_6(context: &Context<'_>, command: Command) -> Outcome {
    select(context, &command, command.cdb.u8(4).into(), 4)
}

pub(crate) fn select_10(context: &Context<'_>, command: Command) -> Outcome {
    select(context, &command, command.cdb.u16(7).into(), 8)
}

/// Returns whether hosts get unit attentions for thresholds on this volume: LBPERE.
fn has_thresholds(context: &Context<'_>, volume: &VolumeAttributes) -> bool {
    can_deallocate(volume) && !context.server.thresholds.is_empty()
}

/// Returns the logical block provisioning mode page; `None` for a volume without provisioning
/// management.
fn provisioning(
    context: &Context<'_>,
    volume: &VolumeAttributes,
    with_values: bool,
) -> Option<Vec<u8>> {
    can_deallocate(volume).then(|| context.server.thresholds.mode_page(with_values))
}
