//! Which tasks a task management request aborts: selected by volume, and never beyond what its
//! sender sees.

use super::wire::{Initiator, on_arrays};

const ABORT_TASK_SET: u8 = 2;
const CLEAR_TASK_SET: u8 = 4;
const LUN_RESET: u8 = 5;
const WARM_RESET: u8 = 6;
const COLD_RESET: u8 = 7;
const SCSI_RESPONSE: u8 = 0x21;

/// Takes the unit attentions of the start and of logins, which don't matter here.
fn settle(initiator: &mut Initiator, luns: &[u8]) {
    for lun in luns {
        while initiator.ready(*lun).0 != 0 {}
    }
}

#[test]
fn a_target_reset_stays_within_what_its_sender_sees() {
    on_arrays(&[1, 2], |array| {
        let portal = array.running.portals[0];
        let mut writer = Initiator::login(portal, "writer");
        let mut blind = Initiator::login(portal, "blind");
        let mut seer = Initiator::login(portal, "seer");
        settle(&mut writer, &[1, 2]);
        settle(&mut blind, &[2]);
        settle(&mut seer, &[1, 2]);
        let hidden = writer.begin_write([0, 1]);
        let shared = writer.begin_write([0, 2]);
        assert_eq!(blind.manage(WARM_RESET), 0);
        writer.answer(&shared);
        writer.answer(&hidden);
        let (bhs, _) = writer.receive(SCSI_RESPONSE);
        assert_eq!((bhs[3], &bhs[16..20]), (0, &hidden[16..20]), "only the hidden one is answered");
        assert_eq!(writer.ready(1), (0, None));
        assert_eq!(writer.ready(2), (2, Some((6, 0x29, 0x02))));
        // An initiator that sees the unit aborts its tasks, and all are notified.
        let ended = writer.begin_write([0, 1]);
        assert_eq!(seer.manage(WARM_RESET), 0);
        writer.answer(&ended);
        assert_eq!(writer.ready(1), (2, Some((6, 0x29, 0x02))));
        // Nobody can end the sessions of others.
        assert_eq!(seer.manage(COLD_RESET), 5);
        settle(&mut blind, &[2]);
        settle(&mut writer, &[1, 2]);
        drop((writer, blind, seer));
    });
}

#[test]
fn a_task_set_belongs_to_a_volume_whatever_its_lun() {
    on_arrays(&[1, 2], |array| {
        let portal = array.running.portals[0];
        let mut writer = Initiator::login(portal, "writer");
        let mut swapped = Initiator::login(portal, "swapped");
        settle(&mut writer, &[1, 2]);
        settle(&mut swapped, &[1, 5]);
        // Volume 1 is LUN 5 there; the one at LUN 1 continues.
        for _ in 0..2 {
            let first = writer.begin_write([0, 1]);
            let second = writer.begin_write([0, 2]);
            assert_eq!(swapped.manage_at(LUN_RESET, [0x40, 5]), 0);
            writer.answer(&first);
            writer.answer(&second);
            let (bhs, _) = writer.receive(SCSI_RESPONSE);
            assert_eq!((bhs[3], &bhs[16..20]), (0, &second[16..20]));
            assert_eq!(writer.ready(1).0, 2, "it gets a unit attention");
            assert_eq!(writer.ready(2), (0, None));
            settle(&mut swapped, &[5]);
        }
        // A number has two encodings (SAM-5, 4.7.7).
        for (written, named, function) in
            [([0x40, 1], [0, 1], ABORT_TASK_SET), ([0, 1], [0x40, 1], CLEAR_TASK_SET)]
        {
            let one = writer.begin_write(written);
            assert_eq!(writer.manage_at(function, named), 0);
            writer.answer(&one);
            assert_eq!(writer.test_unit_ready(), (0, None), "what was aborted is not answered");
        }
        assert_eq!(writer.manage_at(LUN_RESET, [0, 77]), 2, "there is no such unit");
        drop((writer, swapped));
    });
}
