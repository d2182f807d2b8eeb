//! The loop that loads, reconnects, settles and verifies.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::time::{Duration, Instant};

use libiscsi::{Cdb, Completion, Config, Data, Naa, Poller, Session, Status, unmap_parameters};

use super::choose::Chooser;
use super::journal::Journal;
use super::model::{Model, Outcome};
use super::operation::{Action, BLOCK_BYTES, Operation, REGION_BLOCKS, ZeroBy, regions_of};
use super::{Kind, Summary, VerifyArgs};
use crate::copy::{self, Transfer};
use crate::load::is_put_off;
use crate::random::Random;
use crate::target;

/// Tokens of reads have this bit; the rest is a separate number.
const READ_TOKEN: u64 = 1 << 63;
/// Blocks of one read of the final verification.
const VERIFY_BLOCKS: u64 = REGION_BLOCKS;

/// Returns the name of the first session, the same for each run with this journal. A session
/// replaces the previous one: once it has begun, no command of the previous one is executed any
/// longer, and the result of those without a response can be determined.
fn isid_of(journal: &Path) -> u32 {
    let mut hasher = DefaultHasher::new();
    journal.hash(&mut hasher);
    // The random part has 24 bits; the lowest ones are the number of the session.
    (hasher.finish() as u32) & 0x00ff_ff00
}

/// Runs what the arguments request.
pub fn run(args: &VerifyArgs) -> Result<Summary, String> {
    let isid = Some(isid_of(&args.journal));
    let config = Config { isid, ..args.connect.config(&args.url)? };
    let (journal, model, next_id) = Journal::open(&args.journal, args.span, args.seed)?;
    let mut load = Load {
        args,
        config,
        sessions: Vec::new(),
        unit: Unit::default(),
        chooser: Chooser {
            kinds: args.kinds.clone(),
            blocks: model.block_count(),
            random: Random::new(args.seed ^ next_id.rotate_left(17)),
        },
        journal,
        model,
        next_id,
        reads: HashMap::new(),
        next_read: 0,
        summary: Summary::default(),
    };
    load.connect()?;
    load.settle_all()?;
    if args.verify {
        load.verify_all()?;
    } else {
        load.run()?;
    }
    Ok(load.summary)
}

/// The identity and size of the unit.
#[derive(Clone, Copy, Debug, Default)]
struct Unit {
    /// Logical blocks in a block of the model.
    scale: u64,
    block_bytes: u32,
    naa: Naa,
}

struct Load<'a> {
    args: &'a VerifyArgs,
    config: Config,
    sessions: Vec<Session>,
    unit: Unit,
    chooser: Chooser,
    journal: Journal,
    model: Model,
    next_id: u64,
    /// Reads in flight: first block and number of blocks.
    reads: HashMap<u64, (u64, u64)>,
    next_read: u64,
    summary: Summary,
}

impl Load<'_> {
    fn run(&mut self) -> Result<(), String> {
        let end = Instant::now() + Duration::from_secs_f64(self.args.seconds.clamp(0.0, 1e6));
        let mut poller = Poller::new();
        loop {
            let over = Instant::now() >= end;
            if !over {
                self.refill()?;
            }
            self.journal.flush()?;
            let mut all: Vec<_> = self.sessions.iter_mut().collect();
            poller.poll(&mut all, 200);
            self.collect()?;
            if self.sessions.iter().any(Session::is_lost) {
                self.recover()?;
            }
            if over && self.sessions.iter().all(|session| session.in_flight() == 0) {
                return self.journal.flush();
            }
        }
    }

    /// Starts operations until every session has its share in flight.
    fn refill(&mut self) -> Result<(), String> {
        for index in 0..self.sessions.len() {
            while self.sessions[index].in_flight() < self.args.depth.max(1)
                && !self.sessions[index].is_lost()
            {
                if !self.submit_one(index)? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Sends one operation, if a free region is found. Returns whether it did.
    fn submit_one(&mut self, session: usize) -> Result<bool, String> {
        for _ in 0..20 {
            let kind = self.chooser.kind();
            if kind == Kind::Read {
                let (first, count) = self.chooser.small(32);
                let regions: Vec<u64> = regions_of(first..first + count).collect();
                if self.model.are_free(&regions) {
                    self.model.lock(&regions, true);
                    self.send_read(session, first, count)?;
                    return Ok(true);
                }
                continue;
            }
            let action = self.chooser.action(kind);
            if action.fits(self.model.block_count()) && self.model.are_free(&action.regions()) {
                self.send(session, action)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn send(&mut self, session: usize, action: Action) -> Result<(), String> {
        let operation = Operation { id: self.next_id, action };
        self.next_id += 1;
        let (cdb, data) = self.command(&operation);
        self.model.start(operation);
        self.journal.start(&operation)?;
        let sent = self.sessions[session].submit(cdb, data, operation.id);
        if sent.is_err() {
            self.finish(operation.id, &Outcome::NotDone)?;
        }
        Ok(())
    }

    fn send_read(&mut self, session: usize, first: u64, count: u64) -> Result<(), String> {
        self.next_read += 1;
        let token = self.next_read | READ_TOKEN;
        self.reads.insert(token, (first, count));
        let (cdb, data) = self.read_command(first, count);
        if self.sessions[session].submit(cdb, data, token).is_err() {
            self.end_read(token);
        }
        Ok(())
    }

    fn read_command(&self, first: u64, count: u64) -> (Cdb, Data) {
        let scale = self.unit.scale;
        let cdb = Cdb::read_16(first * scale, (count * scale) as u32);
        (cdb, Data::In(vec![0; (count * BLOCK_BYTES) as usize]))
    }

    fn command(&self, operation: &Operation) -> (Cdb, Data) {
        let Unit { scale, block_bytes, naa } = self.unit;
        match operation.action {
            Action::Write { first, count } => {
                let data = self.new_bytes(operation);
                (Cdb::write_16(first * scale, (count * scale) as u32), Data::Out(data))
            }
            Action::Compare { block } => {
                let mut data = vec![0; BLOCK_BYTES as usize];
                self.model.render(self.model.content(block), &mut data);
                data.extend(self.new_bytes(operation));
                (Cdb::compare_and_write(block * scale, scale as u8), Data::Out(data))
            }
            Action::Zero { first, count, by: ZeroBy::WriteSame } => {
                let cdb = Cdb::write_same_16(first * scale, (count * scale) as u32, false);
                (cdb, Data::Out(vec![0; block_bytes as usize]))
            }
            Action::Zero { first, count, by: ZeroBy::Unmap } => {
                let list = unmap_parameters(&[(first * scale, (count * scale) as u32)]);
                (Cdb::unmap(list.len() as u16), Data::Out(list))
            }
            Action::Copy { source, destination, count } => {
                let transfer = Transfer {
                    source_lba: source * scale,
                    destination_lba: destination * scale,
                    blocks: count * scale,
                };
                copy::command(&[naa, naa], transfer, block_bytes)
            }
        }
    }

    /// Returns the bytes that an operation writes.
    fn new_bytes(&self, operation: &Operation) -> Vec<u8> {
        let effects = self.model.effects(operation);
        let mut data = vec![0; effects.len() * BLOCK_BYTES as usize];
        let blocks = data.chunks_exact_mut(BLOCK_BYTES as usize);
        for (bytes, (_, content)) in blocks.zip(effects) {
            self.model.render(content, bytes);
        }
        data
    }

    fn collect(&mut self) -> Result<(), String> {
        for index in 0..self.sessions.len() {
            while let Some(completion) = self.sessions[index].next_completion() {
                self.complete(completion)?;
            }
        }
        Ok(())
    }

    fn complete(&mut self, completion: Completion) -> Result<(), String> {
        let token = completion.token;
        let unanswered = matches!(completion.status, Status::Cancelled | Status::Timeout);
        if token & READ_TOKEN != 0 {
            let Some((first, _)) = self.end_read(token) else { return Ok(()) };
            return match &completion.status {
                Status::Good => {
                    self.summary.reads += 1;
                    self.model.check(first, &completion.buffer)
                }
                status if unanswered || is_put_off(status) => Ok(()),
                status => Err(format!("a read of block {first} ended with {status}")),
            };
        }
        match &completion.status {
            Status::Good => {
                self.summary.acknowledged += 1;
                self.finish(token, &Outcome::Done)
            }
            status if is_put_off(status) => {
                self.summary.put_off += 1;
                self.finish(token, &Outcome::NotDone)
            }
            Status::Timeout => Err(format!("operation {token} timed out")),
            // It stays in flight, and is settled when the target is back.
            _ if unanswered => Ok(()),
            status => Err(format!("operation {token} ended with {status}")),
        }
    }

    fn finish(&mut self, id: u64, outcome: &Outcome) -> Result<(), String> {
        self.model.finish(id, outcome)?;
        self.journal.finish(id, outcome)
    }

    fn end_read(&mut self, token: u64) -> Option<(u64, u64)> {
        let (first, count) = self.reads.remove(&token)?;
        let regions: Vec<u64> = regions_of(first..first + count).collect();
        self.model.lock(&regions, false);
        Some((first, count))
    }

    /// Handles the loss of the target: responses that were received count, the rest is settled when
    /// it is back.
    fn recover(&mut self) -> Result<(), String> {
        self.collect()?;
        self.sessions.clear();
        for token in self.reads.keys().copied().collect::<Vec<_>>() {
            self.end_read(token);
        }
        self.summary.reconnects += 1;
        self.connect()?;
        self.settle_all()
    }

    fn connect(&mut self) -> Result<(), String> {
        let patience = Duration::from_secs(self.args.patience_s);
        let start = Instant::now();
        loop {
            match self.try_connect(patience) {
                Ok(()) => return Ok(()),
                Err(error) if start.elapsed() >= patience => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    fn try_connect(&mut self, patience: Duration) -> Result<(), String> {
        let (mut sessions, capacity) =
            target::connect_many(&self.config, self.args.sessions, patience)?;
        let span = self.model.block_count() * BLOCK_BYTES;
        if capacity.bytes() < span {
            return Err(format!("the unit is smaller than the span of {span} bytes"));
        }
        let naa = sessions[0].naa().map_err(|error| error.to_string())?;
        if naa.is_none() && self.args.kinds.contains(&Kind::Copy) {
            return Err(String::from(
                "the unit has no NAA type 6 identifier, so it can't be copied",
            ));
        }
        let scale = BLOCK_BYTES / u64::from(capacity.block_bytes);
        if scale == 0 {
            return Err(String::from("the unit's logical blocks are longer than 4 KiB"));
        }
        self.unit = Unit { scale, block_bytes: capacity.block_bytes, naa: naa.unwrap_or_default() };
        self.sessions = sessions;
        Ok(())
    }

    /// Reads blocks, and waits. Reconnects if the target dies meanwhile.
    fn read(&mut self, first: u64, count: u64) -> Result<Vec<u8>, String> {
        loop {
            let (cdb, data) = self.read_command(first, count);
            match self.sessions[0].execute(cdb, data) {
                Ok(end) if end.status == Status::Good => return Ok(end.buffer),
                Ok(end) if is_put_off(&end.status) => {}
                Err(libiscsi::Error::Lost) | Ok(Completion { status: Status::Cancelled, .. }) => {
                    self.sessions.clear();
                    self.summary.reconnects += 1;
                    self.connect()?;
                }
                Ok(end) => {
                    return Err(format!("a read of block {first} ended with {}", end.status));
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Determines how each operation without a response ended. Those that touch a region are alone
    /// there, so their order does not matter.
    fn settle_all(&mut self) -> Result<(), String> {
        for operation in self.model.pending() {
            let written = operation.action.written();
            let found = self.read(written.start, written.end - written.start)?;
            let outcome = self.model.settle(&operation, &found)?;
            match outcome {
                Outcome::Done => self.summary.settled_done += 1,
                Outcome::NotDone => self.summary.settled_not_done += 1,
                Outcome::Part(_) => self.summary.settled_in_part += 1,
            }
            self.finish(operation.id, &outcome)?;
        }
        self.journal.flush()
    }

    /// Compares the whole span with the model; reports the first ten locations that differ.
    fn verify_all(&mut self) -> Result<(), String> {
        let mut wrong = Vec::new();
        let mut first = 0;
        while first < self.model.block_count() {
            let count = VERIFY_BLOCKS.min(self.model.block_count() - first);
            let found = self.read(first, count)?;
            if let Err(reason) = self.model.check(first, &found) {
                wrong.push(reason);
            }
            self.summary.verified_blocks += count;
            first += count;
        }
        if wrong.is_empty() {
            return Ok(());
        }
        let shown = wrong.iter().take(10).cloned().collect::<Vec<_>>().join("\n  ");
        Err(format!("{} MiB of the span differ:\n  {shown}", wrong.len()))
    }
}
