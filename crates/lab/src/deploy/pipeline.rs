//! Chunks of the image on their way, a number at a time.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use libiscsi::{Capacity, Cdb, Completion, Config, Data, Naa, Poller, Session, Status};

use super::progress::Progress;
use super::{Image, Way};
use crate::copy::{self, Transfer};
use crate::load::{Silence, is_put_off};
use crate::target::{self, ConnectArgs};

/// Bytes of one READ or WRITE of the host, unless a fill says otherwise.
pub const HOST_IO_BYTES: u64 = 1 << 20;
/// How long a target may take to be there.
const PATIENCE: Duration = Duration::from_secs(10);

/// Fill a volume from an image.
#[derive(Clone, Debug, clap::Args)]
pub struct FillArgs {
    /// The logical unit.
    #[arg(long)]
    pub url: String,
    /// The image: a file whose length is a multiple of 1 MiB.
    #[arg(long)]
    pub image: PathBuf,
    /// Writes in flight.
    #[arg(long, default_value_t = 16)]
    pub depth: usize,
    /// Bytes of one write: whole logical blocks, 1M at most.
    #[arg(long, value_parser = crate::size::parse, default_value = "1M")]
    pub write_size: u64,
    /// How to connect.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Writes an image to a unit, and reads it back.
pub fn fill(args: &FillArgs) -> Result<(), String> {
    write_image(args, "fill the template")?;
    verify_image(args, "verify the template")
}

/// Writes an image to a unit, in writes of `write_size`; `what` is shown meanwhile.
pub fn write_image(args: &FillArgs, what: &str) -> Result<(), String> {
    whole(args, args.write_size, Job::Fill, what)
}

/// Reads a unit, 1 MiB at a time, and compares it with an image; `what` is shown meanwhile.
pub fn verify_image(args: &FillArgs, what: &str) -> Result<(), String> {
    whole(args, HOST_IO_BYTES, Job::Verify, what)
}

/// Does a job with the whole of an image, by one session.
fn whole(args: &FillArgs, host_io_bytes: u64, job: Job, what: &str) -> Result<(), String> {
    let image = Image::open(&args.image)?;
    let config = args.connect.config(&args.url)?;
    let plan =
        Plan { way: Way::Off, copies: 1, depth: args.depth, host_io_bytes, transfer_bytes: 0 };
    Pipeline::connect(&image, &config, &config, 1, plan)?.run(job, what)
}

/// What to do, and how wide.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// By whom the copies are made.
    pub way: Way,
    /// How many copies.
    pub copies: u64,
    /// Chunks on their way at once.
    pub depth: usize,
    /// Bytes of one READ or WRITE of the host.
    pub host_io_bytes: u64,
    /// Bytes of one EXTENDED COPY.
    pub transfer_bytes: u64,
}

/// What is done with each chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Job {
    /// Written from the image's file.
    Fill,
    /// Copied from the template, as the plan says.
    Deploy,
    /// Read, and compared with the image's file.
    Verify,
}

/// What the sessions of a pipeline have done so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// SCSI commands.
    pub commands: u64,
    /// TCP payload, both ways.
    pub wire_bytes: u64,
}

/// Sessions to the template and to the volume of clones, and chunks between them.
pub struct Pipeline<'a> {
    image: &'a Image,
    plan: Plan,
    template: Vec<Session>,
    clones: Vec<Session>,
    block_bytes: u32,
    devices: [Naa; 2],
    /// The piece of the image that was last compared with, and where it begins.
    expected: Vec<u8>,
    expected_at: Option<u64>,
    /// The longest time in which none of its commands was answered.
    gap: Duration,
}

impl<'a> Pipeline<'a> {
    /// Connects `sessions` times to each unit, and checks that all fits.
    pub fn connect(
        image: &'a Image,
        template: &Config,
        clones: &Config,
        sessions: usize,
        plan: Plan,
    ) -> Result<Self, String> {
        let (mut template, small) = target::connect_many(template, sessions, PATIENCE)?;
        let (mut clones, large) = target::connect_many(clones, sessions, PATIENCE)?;
        check_fit(image, small, large, plan)?;
        let devices = match plan.way {
            Way::On => [name(&mut template[0])?, name(&mut clones[0])?],
            Way::Off => [[0; 16]; 2],
        };
        Ok(Self {
            image,
            plan,
            template,
            clones,
            block_bytes: small.block_bytes,
            devices,
            expected: Vec::new(),
            expected_at: None,
            gap: Duration::ZERO,
        })
    }

    /// The longest time, within one of the jobs so far, in which no command was answered.
    pub fn gap(&self) -> Duration {
        self.gap
    }

    /// What the sessions have done so far.
    pub fn traffic(&self) -> Traffic {
        let mut traffic = Traffic::default();
        for session in self.template.iter().chain(&self.clones) {
            let wire = session.wire_bytes();
            traffic.commands += session.commands();
            traffic.wire_bytes += wire.sent + wire.received;
        }
        traffic
    }

    /// Does a job with every chunk of every copy.
    pub fn run(&mut self, job: Job, what: &str) -> Result<(), String> {
        let by_array = job == Job::Deploy && self.plan.way == Way::On;
        let chunk_bytes = if by_array { self.plan.transfer_bytes } else { self.plan.host_io_bytes };
        let chunks_per_copy = self.image.bytes().div_ceil(chunk_bytes);
        let chunks = chunks_per_copy * self.plan.copies;
        let copies = self.plan.copies;
        let mut work = Work { job, chunk_bytes, chunks_per_copy, copies, spare: Vec::new() };
        let mut progress = Progress::new(what.to_owned(), self.image.bytes() * self.plan.copies);
        let mut poller = Poller::new();
        let (mut next, mut done) = (0, 0);
        let mut silence = Silence::since(Instant::now());
        while done < chunks {
            while next < chunks && next - done < self.plan.depth.max(1) as u64 {
                self.start(&mut work, next)?;
                next += 1;
            }
            let mut all: Vec<_> = self.template.iter_mut().chain(self.clones.iter_mut()).collect();
            poller.poll(&mut all, 1000);
            done += self.collect(&mut work, &mut silence)?;
            progress.show((done * chunk_bytes).min(self.image.bytes() * self.plan.copies));
        }
        progress.finish();
        self.gap = self.gap.max(silence.until(Instant::now()));
        Ok(())
    }

    /// The first command of a chunk.
    fn start(&mut self, work: &mut Work, chunk: u64) -> Result<(), String> {
        let place = work.place(chunk, self.image.bytes());
        match work.job {
            Job::Fill => {
                let mut buffer = work.buffer(place.bytes);
                self.image.read(place.in_image, &mut buffer)?;
                self.write(chunk, place, buffer)
            }
            Job::Verify => {
                let cdb = self.read_cdb(place.in_clones(self.image.bytes()), place.bytes);
                let buffer = work.buffer(place.bytes);
                submit(&mut self.clones, cdb, Data::In(buffer), chunk)
            }
            Job::Deploy if self.plan.way == Way::Off => {
                let cdb = self.read_cdb(place.in_image, place.bytes);
                let buffer = work.buffer(place.bytes);
                submit(&mut self.template, cdb, Data::In(buffer), chunk)
            }
            Job::Deploy => self.copy(chunk, place),
        }
    }

    fn copy(&mut self, chunk: u64, place: Place) -> Result<(), String> {
        let block = u64::from(self.block_bytes);
        let transfer = Transfer {
            source_lba: place.in_image / block,
            destination_lba: place.in_clones(self.image.bytes()) / block,
            blocks: place.bytes / block,
        };
        let (cdb, data) = copy::command(&self.devices, transfer, self.block_bytes);
        submit(&mut self.clones, cdb, data, chunk)
    }

    fn write(&mut self, chunk: u64, place: Place, buffer: Vec<u8>) -> Result<(), String> {
        let block = u64::from(self.block_bytes);
        let lba = place.in_clones(self.image.bytes()) / block;
        let cdb = Cdb::write_16(lba, (place.bytes / block) as u32);
        submit(&mut self.clones, cdb, Data::Out(buffer), chunk)
    }

    fn read_cdb(&self, offset: u64, bytes: u64) -> Cdb {
        let block = u64::from(self.block_bytes);
        Cdb::read_16(offset / block, (bytes / block) as u32)
    }

    /// Takes what has ended. Returns how many chunks are finished.
    fn collect(&mut self, work: &mut Work, silence: &mut Silence) -> Result<u64, String> {
        let mut finished = 0;
        for index in 0..self.template.len() {
            while let Some(end) = next_end(&mut self.template[index])? {
                if end.status == Status::Good {
                    silence.ended_one(Instant::now());
                    let place = work.place(end.token, self.image.bytes());
                    self.write(end.token, place, end.buffer)?;
                } else {
                    self.start(work, end.token)?;
                }
            }
        }
        for index in 0..self.clones.len() {
            while let Some(mut end) = next_end(&mut self.clones[index])? {
                if end.status != Status::Good {
                    self.start(work, end.token)?;
                    continue;
                }
                silence.ended_one(Instant::now());
                if work.job == Job::Verify {
                    self.compare(work.place(end.token, self.image.bytes()), &end)?;
                    spoil(&mut end.buffer);
                }
                if work.job != Job::Deploy || self.plan.way == Way::Off {
                    work.spare.push(end.buffer);
                }
                finished += 1;
            }
        }
        Ok(finished)
    }

    fn compare(&mut self, place: Place, end: &Completion) -> Result<(), String> {
        if self.expected_at != Some(place.in_image) {
            self.expected_at = None;
            self.expected.resize(place.bytes as usize, 0);
            self.image.read(place.in_image, &mut self.expected)?;
            self.expected_at = Some(place.in_image);
        }
        if end.residual != 0 || end.buffer != self.expected {
            let at = end.buffer.iter().zip(&self.expected).position(|(a, b)| a != b);
            let at = place.in_image + at.unwrap_or(0) as u64;
            return Err(format!("copy {} differs from the image at byte {at}", place.copy));
        }
        Ok(())
    }
}

/// The chunks of one run.
struct Work {
    job: Job,
    chunk_bytes: u64,
    chunks_per_copy: u64,
    copies: u64,
    spare: Vec<Vec<u8>>,
}

/// Where a chunk is.
#[derive(Clone, Copy)]
struct Place {
    copy: u64,
    in_image: u64,
    bytes: u64,
}

impl Place {
    /// The place in the volume of clones, where the copies are adjacent.
    fn in_clones(self, image_bytes: u64) -> u64 {
        self.copy * image_bytes + self.in_image
    }
}

impl Work {
    /// Copies are made one after the other, as a host makes them. They are verified together, one
    /// piece of the image in all of them and then the next: still every byte is read.
    fn place(&self, chunk: u64, image_bytes: u64) -> Place {
        let (copy, piece) = match self.job {
            Job::Verify => (chunk % self.copies, chunk / self.copies),
            Job::Fill | Job::Deploy => (chunk / self.chunks_per_copy, chunk % self.chunks_per_copy),
        };
        let in_image = piece * self.chunk_bytes;
        let bytes = self.chunk_bytes.min(image_bytes - in_image);
        Place { copy, in_image, bytes }
    }

    fn buffer(&mut self, bytes: u64) -> Vec<u8> {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.resize(bytes as usize, 0);
        buffer
    }
}

/// Makes sure that a buffer that held the right bytes does not pass for another copy's, should the
/// target send less than it says: no sector of it is right any more.
fn spoil(buffer: &mut [u8]) {
    for sector in buffer.chunks_mut(512) {
        sector[0] ^= 0xff;
    }
}

/// The end of a command that ended well or was put off; an error for any other end.
fn next_end(session: &mut Session) -> Result<Option<Completion>, String> {
    let end = session.next_completion();
    match &end {
        Some(end) if end.status != Status::Good && !is_put_off(&end.status) => {
            Err(format!("a command ended with {}", end.status))
        }
        None if session.is_lost() => Err(String::from("the connection to the target is lost")),
        _ => Ok(end),
    }
}

/// Sends a command by the session that has least to do.
fn submit(sessions: &mut [Session], cdb: Cdb, data: Data, token: u64) -> Result<(), String> {
    let session = sessions
        .iter_mut()
        .min_by_key(|session| session.in_flight())
        .ok_or("there is no session")?;
    session.submit(cdb, data, token).map_err(|error| error.to_string())
}

fn name(session: &mut Session) -> Result<Naa, String> {
    let naa = session.naa().map_err(|error| error.to_string())?;
    naa.ok_or_else(|| String::from("the unit has no NAA type 6 name, so nothing can copy it"))
}

fn check_fit(
    image: &Image,
    template: Capacity,
    clones: Capacity,
    plan: Plan,
) -> Result<(), String> {
    if template.block_bytes != clones.block_bytes {
        return Err(String::from("template and clones have different logical blocks"));
    }
    if template.bytes() < image.bytes() || clones.bytes() < image.bytes() * plan.copies {
        return Err(format!("{} copies of the image do not fit", plan.copies));
    }
    let (block, host_io) = (u64::from(template.block_bytes), plan.host_io_bytes);
    if host_io == 0 || host_io > HOST_IO_BYTES || !host_io.is_multiple_of(block) {
        return Err(format!("a write is a multiple of {block} bytes, 1M at most"));
    }
    let transfer = plan.transfer_bytes;
    if plan.way == Way::On
        && (transfer == 0
            || !transfer.is_multiple_of(HOST_IO_BYTES)
            || transfer > copy::TRANSFER_BYTES)
    {
        return Err(String::from("a transfer is a multiple of 1M, 240M at most"));
    }
    Ok(())
}

/// A deployment, timed: seconds and traffic of the copying alone.
pub fn deploy(pipeline: &mut Pipeline<'_>, what: &str) -> Result<(f64, Traffic), String> {
    let before = pipeline.traffic();
    let start = Instant::now();
    pipeline.run(Job::Deploy, what)?;
    let seconds = start.elapsed().as_secs_f64();
    let after = pipeline.traffic();
    let traffic = Traffic {
        commands: after.commands - before.commands,
        wire_bytes: after.wire_bytes - before.wire_bytes,
    };
    Ok((seconds, traffic))
}
