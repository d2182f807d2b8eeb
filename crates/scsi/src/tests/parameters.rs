//! Mode pages, log pages, sense data.

use super::world::{World, triple};
use crate::sense::{Sense, SenseKey};

fn mode_sense_6(page: u8) -> Vec<u8> {
    vec![0x1a, 0, page, 0, 255, 0]
}

#[test]
fn mode_sense_has_pages_and_block_descriptors() {
    let mut world = World::new();
    let all = world.good(&mode_sense_6(0x3f), &[]);
    assert_eq!(usize::from(all[0]), all.len() - 1);
    assert_eq!(all[1..12], [0, 0x10, 8, 0, 0, 8, 0, 0, 0, 2, 0]);
    let codes: Vec<u8> = {
        let (mut at, mut codes) = (12, Vec::new());
        while at < all.len() {
            codes.push(all[at]);
            at += 2 + usize::from(all[at + 1]);
        }
        codes
    };
    assert_eq!(codes, [0x01, 0x08, 0x0a, 0x1c]);
    let bare = world.good(&[0x1a, 0x08, 0x08, 0, 255, 0], &[]);
    assert_eq!((bare.len(), bare[3], bare[6] & 4), (24, 0, 0), "WCE is 0");
    let long = world.good(&[0x5a, 0x10, 0x0a, 0, 0, 0, 0, 1, 0, 0], &[]);
    assert_eq!((long[4], long[7], long[8 + 6]), (1, 16, 8));
    assert_eq!(long[24..28], [0x0a, 0x0a, 0x22, 0x10], "TST 001b, GLTSD");
    let changeable = world.good(&mode_sense_6(0x40 | 0x0a), &[]);
    assert_eq!(changeable[12 + 2..], [0x04, 0, 0x08, 0, 0, 0, 0, 0, 0, 0], "D_SENSE and SWP");
    assert_eq!(world.sense(&mode_sense_6(0xc0 | 0x0a), &[]), (5, 0x39, 0));
    assert_eq!(world.sense(&mode_sense_6(0x02), &[]), (5, 0x24, 0));
    assert_eq!(world.sense(&[0x1a, 0, 0x0a, 1, 255, 0], &[]), (5, 0x24, 0));
}

#[test]
fn mode_select_accepts_current_values_and_refuses_most_changes() {
    let mut world = World::new();
    let mut list = world.good(&mode_sense_6(0x3f), &[]);
    list[0] = 0;
    list[2] = 0;
    let select = |length: usize| vec![0x15, 0x10, 0, 0, length as u8, 0];
    world.good(&select(list.len()), &list);
    world.good(&select(0), &[]);
    let at = 12 + 12 + 20 + 3; // the queue algorithm, in the control page
    list[at] ^= 0x10;
    let response = world.run(&select(list.len()), &list);
    assert_eq!(triple(&response), (5, 0x26, 0));
    assert_eq!(response.sense.unwrap().bytes()[15..18], [0x80, 0, at as u8]);
    assert_eq!(world.sense(&select(list.len() - 3), &list), (5, 0x26, 0));
    list[at] ^= 0x10;
    assert_eq!(world.sense(&select(list.len() - 3), &list), (5, 0x1a, 0));
    assert_eq!(world.sense(&[0x15, 0x11, 0, 0, 4, 0], &[0; 4]), (5, 0x24, 0));
    assert_eq!(world.sense(&select(3), &[0; 3]), (5, 0x1a, 0));
    assert_eq!(world.sense(&select(12), &[0; 4]), (5, 0x1a, 0));
}

#[test]
fn log_sense_reports_space() {
    let mut world = World::new();
    let ask = |page| vec![0x4d, 0, page, 0, 0, 0, 0, 1, 0, 0];
    assert_eq!(world.good(&ask(0x40), &[]), [0, 0, 0, 3, 0, 0x0c, 0x19]);
    let page = world.good(&ask(0x4c), &[]);
    assert_eq!(page[..16], [0x0c, 0, 0, 24, 0, 1, 3, 8, 0, 0, 0, 7, 2, 0, 0, 0]);
    assert_eq!(page[16..24], [0, 2, 3, 8, 0, 0, 0, 3]);
    assert_eq!(world.sense(&ask(0x4d), &[]), (5, 0x24, 0));
}

#[test]
fn sense_data_has_both_formats() {
    let mut world = World::new();
    let none = world.good(&[3, 0, 0, 0, 252, 0], &[]);
    assert_eq!(none.len(), 18);
    assert_eq!((none[0], none[2], none[12]), (0x70, 0, 0));
    assert_eq!(world.good(&[3, 1, 0, 0, 252, 0], &[]), [0x72, 0, 0, 0, 0, 0, 0, 0]);
    let far = Sense::new(SenseKey::MediumError, 0x11, 0).with_information(1 << 40);
    assert_eq!(far.bytes()[0], 0x70, "an LBA that does not fit is not valid");
    let bytes = far.descriptor_bytes();
    assert_eq!(bytes[..12], [0x72, 3, 0x11, 0, 0, 0, 0, 12, 0, 0x0a, 0x80, 0]);
    assert_eq!(bytes[12..20], (1_u64 << 40).to_be_bytes());
    for sense in [Sense::NONE, far, Sense::cdb_field(2, 5), Sense::parameter(1, 0)] {
        let (fixed, descriptors) = (sense.bytes().to_vec(), sense.descriptor_bytes());
        for bytes in [fixed, descriptors] {
            assert_eq!(usize::from(bytes[7]), bytes.len() - 8, "ADDITIONAL SENSE LENGTH");
        }
    }
    let field = Sense::cdb_field(2, 5).descriptor_bytes();
    assert_eq!(field[8..], [2, 6, 0, 0, 0xcd, 0, 2, 0]);
}

#[test]
fn a_unit_can_be_started_but_not_ejected() {
    let mut world = World::new();
    world.good(&[0x1b, 0, 0, 0, 1, 0], &[]);
    world.good(&[0x1b, 1, 0, 0, 0, 0], &[]);
    assert_eq!(world.sense(&[0x1b, 0, 0, 0, 2, 0], &[]), (5, 0x24, 0));
    assert_eq!(world.sense(&[0x1b, 0, 0, 0, 0x30, 0], &[]), (5, 0x24, 0));
    world.good(&[0x1e, 0, 0, 0, 1, 0], &[]);
    assert_eq!(world.good(&[0x37, 0, 0x1d, 0, 0, 0, 0, 0, 8, 0], &[]), [0, 0x1d, 0, 0]);
    assert_eq!(world.good(&[0xb7, 0x0d, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0], &[])[1], 0x0d);
    let functions = world.good(&[0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0], &[]);
    assert_eq!(functions, [0xd8, 0, 0, 0]);
}

#[test]
fn sense_data_takes_the_format_of_the_control_page_until_a_reset() {
    let mut world = World::new();
    let mut list = vec![0, 0, 0, 0];
    list.extend(&world.good(&[0x1a, 0x08, 0x0a, 0, 255, 0], &[])[4..]);
    list[4 + 2] |= 0x04;
    let select = [0x15, 0x10, 0, 0, list.len() as u8, 0];
    // A later page is invalid: nothing of the list takes effect.
    let both = [&list[..], &[0x1c, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
    assert_eq!(world.sense(&[0x15, 0x10, 0, 0, both.len() as u8, 0], &both), (5, 0x26, 0));
    assert_eq!(world.run(&mode_sense_6(0x02), &[]).sense_bytes()[0], 0x70);
    world.good(&select, &list);
    let bytes = world.run(&mode_sense_6(0x02), &[]).sense_bytes();
    assert_eq!((bytes[0], bytes[1..4].to_vec()), (0x72, vec![5, 0x24, 0]));
    // An LBA of more than 32 bits does not fit fixed format sense data.
    world.failure = Some(block::VolumeError::Medium { sector: block::Sector(1 << 33) });
    let bytes = world.run(&super::world::cdb_16(0x88, 0, 0, 1), &[]).sense_bytes();
    assert_eq!(bytes[8..20], [0, 0x0a, 0x80, 0, 0, 0, 0, 2, 0, 0, 0, 0]);
    // Each unit has its own page.
    assert_eq!(world.run_on(300, &mode_sense_6(0x02), &[]).sense_bytes()[0], 0x70);
    world.lun_reset(0);
    let bytes = world.run(&mode_sense_6(0x02), &[]).sense_bytes();
    assert_eq!((bytes[0], bytes[12]), (0x70, 0x29));
}

#[test]
fn log_sense_counts_commands() {
    let mut world = World::new();
    let supported = world.good(&[0x4d, 0, 0x40, 0, 0, 0, 0, 0, 255, 0], &[]);
    assert_eq!(supported, [0, 0, 0, 3, 0x00, 0x0c, 0x19]);
    let page = world.good(&[0x4d, 0, 0x59, 0, 0, 0, 0, 0, 255, 0], &[]);
    assert_eq!((page.len(), &page[..8]), (84, &[0x19, 0, 0, 80, 0, 1, 3, 64][..]));
    let count = |at: usize| u64::from_be_bytes(page[8 + 8 * at..16 + 8 * at].try_into().unwrap());
    assert_eq!([0, 1, 2, 3, 4, 5].map(count), [3, 4, 9, 5, 30, 40]);
    assert_eq!(page[72..], [0, 3, 3, 8, 0, 0, 0, 6, 0, 0, 0, 1]);
}
