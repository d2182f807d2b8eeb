//! Chunks of the image, several in flight.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use super::answers::Answers;
use super::progress::Progress;
use super::{Image, Way};
use crate::copy::{SEGMENT_BYTES, TRANSFER_BYTES};
use crate::engine::{Engine, some_at_a_time};
use crate::host::{Device, Extent, Host, HostError, HostPlan, Settings};
use crate::target::ConnectArgs;

/// Bytes of one READ or WRITE of the host, unless a fill specifies otherwise.
pub const HOST_IO_BYTES: u64 = 1 << 20;

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
    /// Bytes of one write: a multiple of the logical block, 1M at most.
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

/// Does a job with the whole image, in one session.
fn whole(args: &FillArgs, host_io_bytes: u64, job: Job, what: &str) -> Result<(), String> {
    let image = Rc::new(Image::open(&args.image)?);
    let config = args.connect.config(&args.url)?;
    let plan =
        Plan { way: Way::Off, copies: 1, depth: args.depth, host_io_bytes, transfer_bytes: 0 };
    let (lun, portals) = (config.lun, vec![config.portal.clone()]);
    let host = HostPlan { name: "lab".into(), config, portals, settings: Settings::default() };
    let mut engine = Engine::new();
    let host = Host::connect_within(&engine.reactor(), &host)?;
    let what = what.to_owned();
    engine.run(async move {
        let unit = host.claim(lun).await.map_err(|error| error.to_string())?;
        let pipeline = Pipeline::new(&image, [&unit, &unit], plan, &Rc::default())?;
        pipeline.run(job, what).await
    })?
}

/// What to do, and with how much concurrency.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Who makes the copies.
    pub way: Way,
    /// How many copies.
    pub copies: u64,
    /// The number of chunks in flight.
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

/// A template, the volume of clones, and chunks between them.
#[derive(Debug)]
pub struct Pipeline {
    image: Rc<Image>,
    plan: Plan,
    template: Device,
    clones: Device,
    /// The last piece of the image that was compared, and its offset.
    expected: RefCell<(Option<u64>, Vec<u8>)>,
    answers: Rc<RefCell<Answers>>,
}

impl Pipeline {
    /// Creates one from the first of two units to the second; checks that everything fits.
    pub fn new(
        image: &Rc<Image>,
        [template, clones]: [&Device; 2],
        plan: Plan,
        answers: &Rc<RefCell<Answers>>,
    ) -> Result<Self, String> {
        check_fit(image.bytes(), template, clones, plan)?;
        Ok(Self {
            image: image.clone(),
            plan,
            template: template.clone(),
            clones: clones.clone(),
            expected: RefCell::default(),
            answers: answers.clone(),
        })
    }

    /// Does a job with every chunk of every copy; `what` is shown meanwhile.
    pub async fn run(&self, job: Job, what: String) -> Result<(), String> {
        let by_array = job == Job::Deploy && self.plan.way == Way::On;
        let chunk_bytes = if by_array { self.plan.transfer_bytes } else { self.plan.host_io_bytes };
        let (image_bytes, copies) = (self.image.bytes(), self.plan.copies);
        let chunks_per_copy = image_bytes.div_ceil(chunk_bytes);
        let work = Work { job, chunk_bytes, chunks_per_copy, copies, image_bytes };
        let total = image_bytes * copies;
        let (progress, done) = (RefCell::new(Progress::new(what, total)), Cell::new(0));
        self.answers.borrow_mut().begin(Instant::now());
        let chunks = (0..chunks_per_copy * copies).map(|chunk| {
            let (done, progress, place) = (&done, &progress, work.place(chunk));
            async move {
                self.one(job, place).await?;
                done.set(done.get() + place.bytes);
                progress.borrow_mut().show(done.get());
                Ok(())
            }
        });
        let ended = some_at_a_time(self.plan.depth, chunks).await;
        self.answers.borrow_mut().end(Instant::now());
        progress.into_inner().finish();
        ended
    }

    fn answered(&self) {
        self.answers.borrow_mut().answered(Instant::now());
    }

    async fn one(&self, job: Job, place: Place) -> Result<(), String> {
        let failed = |error: HostError| error.to_string();
        match job {
            Job::Fill => {
                let mut bytes = vec![0; place.bytes as usize];
                self.image.read(place.in_image, &mut bytes)?;
                self.clones.write(place.in_clones(), &bytes).await.map_err(failed)?;
            }
            Job::Verify => {
                let found = self.clones.read(place.in_clones(), place.bytes).await;
                let found = found.map_err(failed)?;
                self.answered();
                return self.compare(place, &found);
            }
            Job::Deploy if self.plan.way == Way::Off => {
                let bytes = self.template.read(place.in_image, place.bytes).await;
                let bytes = bytes.map_err(failed)?;
                self.answered();
                self.clones.write(place.in_clones(), &bytes).await.map_err(failed)?;
            }
            Job::Deploy => {
                self.clones.copy_from(&self.template, &segments(place)).await.map_err(failed)?;
            }
        }
        self.answered();
        Ok(())
    }

    fn compare(&self, place: Place, found: &[u8]) -> Result<(), String> {
        let (at, expected) = &mut *self.expected.borrow_mut();
        if *at != Some(place.in_image) || expected.len() != found.len() {
            *at = None;
            expected.resize(found.len(), 0);
            self.image.read(place.in_image, expected)?;
            *at = Some(place.in_image);
        }
        if found != *expected {
            let at = found.iter().zip(&*expected).position(|(a, b)| a != b);
            let at = place.in_image + at.unwrap_or(0) as u64;
            return Err(format!("copy {} differs from the image at byte {at}", place.copy));
        }
        Ok(())
    }
}

/// Returns the segments of one EXTENDED COPY.
fn segments(place: Place) -> Vec<Extent> {
    let segment = |at: u64| Extent {
        source: place.in_image + at,
        destination: place.in_clones() + at,
        bytes: SEGMENT_BYTES.min(place.bytes - at),
    };
    (0..place.bytes).step_by(SEGMENT_BYTES as usize).map(segment).collect()
}

/// The chunks of one run.
struct Work {
    job: Job,
    chunk_bytes: u64,
    chunks_per_copy: u64,
    copies: u64,
    image_bytes: u64,
}

/// The location of a chunk.
#[derive(Clone, Copy)]
struct Place {
    copy: u64,
    image_bytes: u64,
    in_image: u64,
    bytes: u64,
}

impl Place {
    /// Returns the location in the volume of clones, where the copies are adjacent.
    fn in_clones(self) -> u64 {
        self.copy * self.image_bytes + self.in_image
    }
}

impl Work {
    /// Returns the location of a chunk. Copies are made one after the other, as a host makes them.
    /// They are verified together, one piece of the image in all of them and then the next: still
    /// every byte is read.
    fn place(&self, chunk: u64) -> Place {
        let (copy, piece) = match self.job {
            Job::Verify => (chunk % self.copies, chunk / self.copies),
            Job::Fill | Job::Deploy => (chunk / self.chunks_per_copy, chunk % self.chunks_per_copy),
        };
        let (image_bytes, in_image) = (self.image_bytes, piece * self.chunk_bytes);
        let bytes = self.chunk_bytes.min(image_bytes - in_image);
        Place { copy, image_bytes, in_image, bytes }
    }
}

fn check_fit(
    image_bytes: u64,
    template: &Device,
    clones: &Device,
    plan: Plan,
) -> Result<(), String> {
    let block = template.block_bytes();
    if block != clones.block_bytes() {
        return Err(String::from("template and clones have different logical block lengths"));
    }
    if template.bytes() < image_bytes || clones.bytes() < image_bytes * plan.copies {
        return Err(format!("{} copies of the image do not fit", plan.copies));
    }
    let host_io = plan.host_io_bytes;
    if host_io == 0 || host_io > HOST_IO_BYTES || !host_io.is_multiple_of(block) {
        return Err(format!("--write-size must be a multiple of {block} bytes, 1M at most"));
    }
    let transfer = plan.transfer_bytes;
    if plan.way == Way::On
        && (transfer == 0 || !transfer.is_multiple_of(HOST_IO_BYTES) || transfer > TRANSFER_BYTES)
    {
        return Err(String::from("--transfer-size must be a multiple of 1M, 240M at most"));
    }
    if plan.way == Way::On && !template.may_copy_to(clones) {
        return Err(String::from("the array can't copy: it reports no NAA type 6 identifier"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_every_copy_is_in_one_chunk() {
        for job in [Job::Fill, Job::Deploy, Job::Verify] {
            let work = Work { job, chunk_bytes: 3, chunks_per_copy: 4, copies: 2, image_bytes: 10 };
            let mut seen = [0; 20];
            for chunk in 0..8 {
                let place = work.place(chunk);
                (0..place.bytes).for_each(|at| seen[(place.in_clones() + at) as usize] += 1);
            }
            assert_eq!(seen, [1; 20], "{job:?}");
        }
    }

    #[test]
    fn a_long_transfer_is_eight_segments() {
        let (image_bytes, bytes) = (TRANSFER_BYTES * 3, TRANSFER_BYTES);
        let place = Place { copy: 1, image_bytes, in_image: bytes, bytes };
        let segments = segments(place);
        assert_eq!(segments.len(), 8);
        let last = Extent {
            source: bytes + 7 * SEGMENT_BYTES,
            destination: 4 * bytes + 7 * SEGMENT_BYTES,
            bytes: SEGMENT_BYTES,
        };
        assert_eq!(segments[7], last);
    }
}
