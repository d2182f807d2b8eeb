//! Commands that transfer more than one request to a volume.

use block::request::limits::{COMMAND_BYTES_MAX, TRANSFER_BYTES_MAX};
use block::{DataIn, DataOut, VolumeError, VolumeId, VolumeReply, VolumeRequest};

use super::world::{World, cdb_16, pattern, triple};
use crate::blocks::long::STEP_BYTES_MAX;
use crate::step::{Command, Response, Status, Step};
use crate::{Cdb, data_out_phase};

const BLOCKS: u64 = 70_000;

/// LUN 0 with space for the longest commands, its bytes, and the requests that it received.
struct Long {
    world: World,
    bytes: Vec<u8>,
    requests: Vec<(bool, u64, u64)>,
    /// The request that fails, counted from 0.
    fails: Option<usize>,
    /// The request after which another nexus sends a PERSISTENT RESERVE OUT, and its CDB.
    preempts: Option<(usize, [u8; 10])>,
    /// A byte that the medium returns changed.
    flips: Option<usize>,
}

impl Long {
    fn new() -> Self {
        let mut world = World::new();
        let mut luns = (*world.luns).clone();
        let mut volume = (*luns.luns[&0]).clone();
        volume.size.0 = BLOCKS;
        luns.luns.insert(0, volume.into());
        world.luns = luns.into();
        let bytes = vec![0; BLOCKS as usize * 512];
        Self { world, bytes, requests: Vec::new(), fails: None, preempts: None, flips: None }
    }

    fn serve(&mut self, request: VolumeRequest) -> Result<VolumeReply, VolumeError> {
        let (writes, range) = match &request {
            VolumeRequest::Read { range, .. } => (false, *range),
            VolumeRequest::Write { range, .. } => (true, *range),
            other => panic!("{other:?}"),
        };
        assert!(range.bytes().unwrap() <= TRANSFER_BYTES_MAX);
        let start = range.start.0 as usize * 512;
        let span = start..start + range.bytes().unwrap() as usize;
        self.requests.push((writes, range.start.0, range.count.0));
        if self.fails == Some(self.requests.len() - 1) {
            return Err(VolumeError::Medium { sector: range.start });
        }
        let VolumeRequest::Write { data, .. } = request else {
            return Ok(VolumeReply::Data(DataIn::from_bytes(&self.bytes[span])));
        };
        assert_eq!(data.phase(), range.start.offset_in_block_bytes());
        self.bytes[span.clone()].copy_from_slice(&data.to_vec());
        if let Some(at) = self.flips.filter(|at| span.contains(at)) {
            self.bytes[at] ^= 1;
        }
        Ok(VolumeReply::Done)
    }

    fn run(&mut self, cdb: &[u8], data: &[u8]) -> Response {
        let data_out = DataOut::from_bytes(data, data_out_phase(cdb));
        let cdb = Cdb::new(cdb);
        let command = Command { lun: [0; 8], cdb, data_out, expected_in_bytes: 1 << 26 };
        let (nexus, luns) = (self.world.nexus.clone(), self.world.luns.clone());
        let mut step = self.world.server.execute(&nexus, &luns, command);
        loop {
            let (request, pending) = match step {
                Step::Done(response) => return response,
                Step::Request { request, pending } => (request, pending),
                step @ Step::Persist { .. } => return self.world.finish(&nexus, step),
            };
            let result = self.serve(request);
            if let Some((_, cdb)) = self.preempts.filter(|(at, _)| at + 1 == self.requests.len()) {
                self.reserve_as_other(&cdb);
            }
            step = self.world.server.resume(&nexus, pending, result);
        }
    }
}

impl Long {
    /// PERSISTENT RESERVE OUT of another nexus, after registering: it preempts key 1.
    fn reserve_as_other(&mut self, cdb: &[u8]) {
        let other = self.world.log_in(super::world::initiator("b"), 2);
        let mut list = vec![0; 24];
        for (cdb, own, action) in [(&[0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0][..], 0, 2), (cdb, 2, 1)] {
            (list[7], list[15]) = (own, action);
            let response = self.world.run_as(&other, 0, cdb, &list);
            assert_eq!(response.status, Status::Good, "{:?}", response.sense);
        }
    }
}

/// Runs a command of three requests whose nexus is preempted after one of them. Returns its status,
/// and the number of its requests.
fn preempted(action: u8, after: usize, cdb: &[u8], data: &[u8]) -> (Status, usize) {
    let mut long = Long::new();
    let mut list = vec![0; 24];
    list[15] = 1;
    let register = [0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0];
    assert_eq!(long.run(&register, &list).status, Status::Good);
    long.preempts = Some((after, [0x5f, action, 1, 0, 0, 0, 0, 0, 24, 0]));
    let response = long.run(cdb, data);
    assert!(response.status == Status::Good || response.data_in.is_empty());
    (response.status, long.requests.len())
}

/// PREEMPT and PREEMPT AND ABORT, both for a write exclusive reservation.
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;

#[test]
fn preempt_and_abort_ends_a_command_in_progress_and_preempt_does_not() {
    let (cdb, data) = (cdb_16(0x8a, 0, 0, 20_000), pattern(20_000 * 512, 3));
    assert_eq!(preempted(PREEMPT, 0, &cdb, &data), (Status::Good, 3));
    assert_eq!(preempted(PREEMPT_AND_ABORT, 0, &cdb, &data), (Status::TaskAborted, 1));
    assert_eq!(preempted(PREEMPT_AND_ABORT, 2, &cdb, &data), (Status::Good, 3));
}

/// Its first request may have waited until after PREEMPT AND ABORT completed.
#[test]
fn a_long_read_of_a_preempted_and_aborted_nexus_returns_no_data() {
    let cdb = cdb_16(0x88, 0, 0, 20_000);
    assert_eq!(preempted(PREEMPT, 0, &cdb, &[]), (Status::Good, 3));
    assert_eq!(preempted(PREEMPT_AND_ABORT, 0, &cdb, &[]), (Status::TaskAborted, 1));
    assert_eq!(preempted(PREEMPT_AND_ABORT, 2, &cdb, &[]), (Status::Good, 3));
}

#[test]
fn a_long_transfer_becomes_requests_that_end_between_blocks() {
    for (lba, blocks) in [(0, 65_536), (3, 20_000), (8, 8_193), (4_463, 65_533)] {
        let mut long = Long::new();
        let data = pattern(blocks as usize * 512, 7);
        let response = long.run(&cdb_16(0x8a, 0, lba, blocks), &data);
        assert_eq!(response.status, Status::Good, "{:?}", response.sense);
        assert_eq!(response.transfer_bytes_wanted, Some(data.len() as u64));
        let writes = std::mem::take(&mut long.requests);
        assert!(writes.len() > 1 && writes.iter().skip(1).all(|(_, start, _)| start % 8 == 0));
        let response = long.run(&cdb_16(0x88, 0, lba, blocks), &[]);
        assert_eq!(response.status, Status::Good, "{:?}", response.sense);
        assert!(response.data_in.to_vec() == data, "what was written is read");
        assert!(long.bytes[lba as usize * 512..][..data.len()] == data);
        let reads = long.requests.iter().map(|(_, start, count)| (true, *start, *count));
        assert_eq!(reads.collect::<Vec<_>>(), writes);
    }
}

#[test]
fn a_transfer_that_fits_one_request_is_not_split() {
    let mut long = Long::new();
    long.run(&cdb_16(0x8a, 0, 5, 8192), &pattern(8192 * 512, 1));
    long.run(&cdb_16(0x88, 0, 5, 8192), &[]);
    assert_eq!(long.requests, [(true, 5, 8192), (false, 5, 8192)]);
    let longest = (COMMAND_BYTES_MAX / 512) as u32;
    assert_eq!(triple(&long.run(&cdb_16(0x88, 0, 0, longest + 1), &[])), (5, 0x24, 0));
    assert_eq!(triple(&long.run(&cdb_16(0x8a, 0, 0, longest + 1), &[])), (5, 0x24, 0));
    assert_eq!(long.requests.len(), 2);
}

#[test]
fn a_failed_piece_ends_the_command_and_is_reported() {
    let mut long = Long::new();
    long.fails = Some(1);
    let response = long.run(&cdb_16(0x88, 0, 3, 30_000), &[]);
    assert_eq!(triple(&response), (3, 0x11, 0));
    assert_eq!(response.sense.unwrap().information, Some(8192), "where the second piece starts");
    assert!(response.data_in.is_empty());
    long.requests.clear();
    let response = long.run(&cdb_16(0x8a, 0, 0, 30_000), &pattern(30_000 * 512, 2));
    assert_eq!((response.status, long.requests.len()), (Status::CheckCondition, 2));
    assert_eq!(response.transfer_bytes_wanted, Some(30_000 * 512));
}

#[test]
fn each_piece_of_a_long_write_is_verified_before_the_next() {
    let mut long = Long::new();
    let data = pattern(20_000 * 512, 4);
    let response = long.run(&cdb_16(0x8e, 0x02, 1, 20_000), &data);
    assert_eq!(response.status, Status::Good, "{:?}", response.sense);
    assert!(long.bytes[512..][..data.len()] == data);
    let (mut written, mut verified) = (1, 1);
    for (writes, start, count) in &long.requests {
        if *writes {
            assert_eq!((*start, verified), (written, written), "all before it was read back");
            written += count;
        } else {
            assert_eq!(*start, verified);
            assert!(count * 512 <= STEP_BYTES_MAX);
            verified += count;
        }
    }
    assert_eq!((written, verified), (20_001, 20_001));
}

#[test]
fn a_miswritten_byte_is_reported_at_its_offset_in_the_data_sent() {
    let mut long = Long::new();
    long.flips = Some(10_000 * 512 + 7);
    let response = long.run(&cdb_16(0x8e, 0x02, 0, 20_000), &pattern(20_000 * 512, 4));
    assert_eq!(triple(&response), (0xe, 0x1d, 0));
    assert_eq!(response.sense.unwrap().information, Some(10_000 * 512 + 7));
}

#[test]
fn verify_runs_in_small_steps_and_is_limited_like_a_transfer() {
    let longest = (COMMAND_BYTES_MAX / 512) as u32;
    for flags in [0x00, 0x02, 0x06] {
        let mut long = Long::new();
        let bytes = [0, longest as usize * 512, 0, 512][usize::from(flags >> 1)];
        let response = long.run(&cdb_16(0x8f, flags, 3, longest), &vec![0; bytes]);
        assert_eq!(response.status, Status::Good, "{:?}", response.sense);
        let steps = long.requests.len() as u64;
        assert!((32..=33).contains(&steps), "{steps} steps");
        assert!(long.requests.iter().all(|(_, _, count)| count * 512 <= STEP_BYTES_MAX));
        assert_eq!(long.requests.iter().map(|(_, _, count)| count).sum::<u64>(), longest.into());
        // MAXIMUM TRANSFER LENGTH constrains VERIFICATION LENGTH (SBC-3, 5.38), with or without
        // data.
        let response = long.run(&cdb_16(0x8f, flags, 0, longest + 1), &vec![0; bytes + 512]);
        assert_eq!(triple(&response), (5, 0x24, 0));
        assert_eq!(response.sense.unwrap().field.unwrap().byte, 10);
        assert_eq!(long.requests.len() as u64, steps, "nothing is read for it");
    }
    let mut twelve = vec![0xaf, 0, 0, 0, 0, 0];
    twelve.extend((longest + 1).to_be_bytes());
    twelve.extend([0, 0]);
    assert_eq!(triple(&Long::new().run(&twelve, &[])), (5, 0x24, 0));
    assert_eq!(crate::verified_blocks(&Cdb::new(&twelve)), Some(u64::from(longest) + 1));
    assert_eq!(crate::verified_blocks(&Cdb::new(&cdb_16(0x88, 0, 0, 9))), None);
}

#[test]
fn a_reply_of_a_wrong_length_is_an_error() {
    let long = Long::new();
    let (nexus, luns) = (long.world.nexus.clone(), long.world.luns.clone());
    let cdb = Cdb::new(&cdb_16(0x88, 0, 0, 10_000));
    let data_out = DataOut::default();
    let command = Command { lun: [0; 8], cdb, data_out, expected_in_bytes: 0 };
    let step = long.world.server.execute(&nexus, &luns, command);
    let Step::Request { request, pending } = step else { panic!("no request") };
    assert!(pending.gathers());
    assert!(matches!(request, VolumeRequest::Read { volume: VolumeId(1), .. }));
    let reply = Ok(VolumeReply::Data(DataIn::from_bytes(&[0; 512])));
    let Step::Done(response) = long.world.server.resume(&nexus, pending, reply) else {
        panic!("the command continues")
    };
    assert_eq!(response.status, Status::CheckCondition);
}
