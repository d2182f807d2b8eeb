//! The main job, end to end, on a running array.

use std::path::PathBuf;
use std::time::Duration;

use libiscsi::Config;

use super::array::Array;
use super::pipeline::{self, Job, Pipeline, Plan};
use super::table::{Row, Table};
use super::{Image, Way};
use crate::report;
use crate::target::{self, ConnectArgs};

/// The volume that the copies go to.
const CLONES: &str = "clones";
/// Where the host sees the template.
const TEMPLATE_LUN: u16 = 1;
/// Where the host sees the clones.
const CLONES_LUN: u16 = 2;

/// Deploy a template from one volume of a Holdfast array to another, both ways.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoArgs {
    /// The `holdfast` program.
    #[arg(long)]
    pub holdfast: PathBuf,
    /// The pool that the array serves, by which the program finds it.
    #[arg(long)]
    pub pool: PathBuf,
    /// The array's iSCSI portal, `address:port`.
    #[arg(long)]
    pub portal: String,
    /// The host, as the array knows it; its name is `--initiator`.
    #[arg(long, default_value = "lab")]
    pub host: String,
    /// The image that is deployed.
    #[arg(long)]
    pub image: PathBuf,
    /// How many copies to make, each a deployment of its own.
    #[arg(long, value_delimiter = ',', default_value = "1,8,32")]
    pub counts: Vec<u64>,
    /// Bytes of one EXTENDED COPY.
    #[arg(long, value_parser = crate::size::parse, default_value = "16M")]
    pub transfer_size: u64,
    /// Reads, writes or copies in flight.
    #[arg(long, default_value_t = 16)]
    pub depth: usize,
    /// Sessions to each volume.
    #[arg(long, default_value_t = 2)]
    pub sessions: usize,
    /// Deploy the last of the counts again, off and on, as long as this file is there; and verify
    /// every copy once more when it is gone.
    #[arg(long, value_name = "FILE")]
    pub as_long_as: Option<PathBuf>,
    /// Write the table here, as JSON.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// How to connect.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Fills the template, deploys it, verifies every copy, and prints the table.
pub fn run(args: &DemoArgs) -> Result<(), String> {
    let image = Image::open(&args.image)?;
    let mut demo = Demo {
        args,
        array: Array { program: args.holdfast.clone(), pool: args.pool.clone() },
        target: discover(args)?,
        image,
        gap: Duration::ZERO,
        made: Vec::new(),
    };
    demo.fill_template()?;
    let rows = demo.deploy_all()?;
    let verified_again_bytes = match args.as_long_as {
        Some(_) => demo.verify_again()?,
        None => 0,
    };
    let table = Table {
        image_bytes: demo.image.bytes(),
        transfer_bytes: args.transfer_size,
        rows,
        gap_seconds: demo.gap.as_secs_f64(),
        verified_again_bytes,
    };
    println!("{table}");
    match &args.json {
        Some(path) => report::write_json(path, &table),
        None => Ok(()),
    }
}

struct Demo<'a> {
    args: &'a DemoArgs,
    array: Array,
    target: String,
    image: Image,
    /// The longest time in which no command was answered.
    gap: Duration,
    /// Volumes of copies, and how many are in each.
    made: Vec<(String, u64)>,
}

impl Demo<'_> {
    fn config(&self, lun: u16) -> Config {
        Config { lun, target: self.target.clone(), ..base_config(self.args) }
    }

    fn plan(&self, way: Way, copies: u64) -> Plan {
        Plan {
            way,
            copies,
            depth: self.args.depth,
            host_io_bytes: pipeline::HOST_IO_BYTES,
            transfer_bytes: self.args.transfer_size,
        }
    }

    fn fill_template(&mut self) -> Result<(), String> {
        let config = self.config(TEMPLATE_LUN);
        let plan = self.plan(Way::Off, 1);
        let mut pipeline =
            Pipeline::connect(&self.image, &config, &config, self.args.sessions, plan)?;
        pipeline.run(Job::Fill, "fill the template from the image")?;
        pipeline.run(Job::Verify, "read the template back and compare")?;
        self.gap = self.gap.max(pipeline.gap());
        Ok(())
    }

    /// Each count both ways; then the last one again, as long as that is wanted.
    fn deploy_all(&mut self) -> Result<Vec<Row>, String> {
        let (counts, as_long_as) = (&self.args.counts, &self.args.as_long_as);
        let last = counts.last().copied().unwrap_or(1);
        let mut rows = Vec::new();
        for way in [Way::Off, Way::On] {
            for copies in counts {
                let stays = way == Way::On && *copies == last && as_long_as.is_none();
                rows.push(self.deploy(way, *copies, stays)?);
            }
        }
        while as_long_as.as_ref().is_some_and(|file| file.exists()) {
            for way in [Way::Off, Way::On] {
                rows.push(self.deploy(way, last, false)?);
            }
        }
        Ok(rows)
    }

    /// One deployment to a new volume, which is kept under another name afterwards: destroying it
    /// would free its space while the next deployment is measured. The last one `stays` connected.
    fn deploy(&mut self, way: Way, copies: u64, stays: bool) -> Result<Row, String> {
        let size = (self.image.bytes() * copies).to_string();
        self.array.run(&["volume", "create", CLONES, "--size", &size])?;
        self.connect(CLONES)?;
        let row = self.deploy_to_volume(way, copies)?;
        if !stays {
            self.disconnect(CLONES)?;
            let name = match way {
                Way::Off => format!("{CLONES}-off-{copies}"),
                Way::On => format!("{CLONES}-on-{copies}"),
            };
            let is_taken = self.made.iter().any(|(made, _)| *made == name);
            let name = if is_taken { format!("{name}-{}", self.made.len()) } else { name };
            self.array.run(&["volume", "rename", CLONES, &name])?;
            self.made.push((name, copies));
        }
        Ok(row)
    }

    fn connect(&self, volume: &str) -> Result<(), String> {
        let lun = CLONES_LUN.to_string();
        self.array.run(&["connect", volume, &self.args.host, "--lun", &lun]).map(drop)
    }

    fn disconnect(&self, volume: &str) -> Result<(), String> {
        self.array.run(&["disconnect", volume, &self.args.host]).map(drop)
    }

    fn deploy_to_volume(&mut self, way: Way, copies: u64) -> Result<Row, String> {
        let (template, clones) = (self.config(TEMPLATE_LUN), self.config(CLONES_LUN));
        let plan = self.plan(way, copies);
        let mut pipeline =
            Pipeline::connect(&self.image, &template, &clones, self.args.sessions, plan)?;
        let by = match way {
            Way::Off => "host reads and writes",
            Way::On => "EXTENDED COPY",
        };
        let before = self.array.space()?;
        let (seconds, traffic) =
            pipeline::deploy(&mut pipeline, &format!("deploy {copies} by {by}"))?;
        let after = self.array.space()?;
        let start = std::time::Instant::now();
        pipeline.run(Job::Verify, &format!("verify {copies}, byte for byte"))?;
        self.gap = self.gap.max(pipeline.gap());
        Ok(Row {
            way,
            copies,
            seconds,
            wire_bytes: traffic.wire_bytes,
            commands: traffic.commands,
            data_bytes: growth(before.data_bytes, after.data_bytes),
            allocated_bytes: growth(before.allocated_bytes, after.allocated_bytes),
            verify_seconds: start.elapsed().as_secs_f64(),
        })
    }

    /// Compares every copy with the image once more, and the template: how many bytes.
    fn verify_again(&self) -> Result<u64, String> {
        let template = self.config(TEMPLATE_LUN);
        self.verify(&template, 1, "verify the template once more")?;
        let mut verified = self.image.bytes();
        for (name, copies) in &self.made {
            self.connect(name)?;
            self.verify(&self.config(CLONES_LUN), *copies, &format!("verify {name} once more"))?;
            self.disconnect(name)?;
            verified += self.image.bytes() * copies;
        }
        Ok(verified)
    }

    fn verify(&self, config: &Config, copies: u64, what: &str) -> Result<(), String> {
        let plan = self.plan(Way::Off, copies);
        let mut pipeline =
            Pipeline::connect(&self.image, config, config, self.args.sessions, plan)?;
        pipeline.run(Job::Verify, what)
    }
}

fn growth(before: u64, after: u64) -> i64 {
    i64::try_from(i128::from(after) - i128::from(before)).unwrap_or(i64::MAX)
}

fn base_config(args: &DemoArgs) -> Config {
    Config {
        portal: args.portal.clone(),
        initiator: args.connect.initiator.clone(),
        timeout_s: args.connect.timeout_s,
        ..Config::default()
    }
}

/// The name of the array's target.
fn discover(args: &DemoArgs) -> Result<String, String> {
    let first = target::discover(&args.portal, &args.connect)?.into_iter().next();
    first.map(|target| target.name).ok_or_else(|| format!("no target behind {}", args.portal))
}
