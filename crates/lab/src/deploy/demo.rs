//! The demonstration, end to end, on a running array.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use libiscsi::Config;

use super::answers::{self, Answers};
use super::array::Array;
use super::locking::{self, Locking};
use super::paths::Paths;
use super::pipeline::{self, Job, Pipeline, Plan};
use super::table::{Row, Table};
use super::{Image, Way};
use crate::engine::{Engine, Reactor, Task};
use crate::host::{Device, Host, HostPlan, Settings};
use crate::report;
use crate::target::{self, ConnectArgs};

/// The volume for the copies.
const CLONES: &str = "clones";
/// The LUN of the template.
const TEMPLATE_LUN: u16 = 1;
/// The LUN of the clones.
const CLONES_LUN: u16 = 2;
/// The volume of the host that takes a lock, and its LUN.
const LOCK: &str = "lock";
const LOCK_LUN: u16 = 4;

/// Deploy a template from one volume of a Holdfast array to another, with and without offload.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoArgs {
    /// The `holdfast` program.
    #[arg(long)]
    pub holdfast: PathBuf,
    /// The pool that the array serves; `holdfast` finds the array by it.
    #[arg(long)]
    pub pool: PathBuf,
    /// The array's iSCSI portals, `address:port`. The host has paths through each portal. It uses
    /// the paths that the array prefers, and the others if these fail.
    #[arg(long, value_delimiter = ',', required = true)]
    pub portal: Vec<String>,
    /// The name of the host object on the array; its initiator is `--initiator`.
    #[arg(long, default_value = "lab")]
    pub host: String,
    /// The image to deploy.
    #[arg(long)]
    pub image: PathBuf,
    /// The numbers of copies; each number is a separate deployment.
    #[arg(long, value_delimiter = ',', default_value = "1,8,32")]
    pub counts: Vec<u64>,
    /// Bytes of one EXTENDED COPY.
    #[arg(long, value_parser = crate::size::parse, default_value = "16M")]
    pub transfer_size: u64,
    /// Reads, writes or copies in flight.
    #[arg(long, default_value_t = 16)]
    pub depth: usize,
    /// Sessions through each portal.
    #[arg(long, default_value_t = 2)]
    pub sessions: usize,
    /// While this file exists, repeat the deployment of the last count without and with offload;
    /// after its removal, verify every copy again.
    #[arg(long, value_name = "FILE")]
    pub as_long_as: Option<PathBuf>,
    /// A file with the events of the array, one per line: milliseconds since 1970, a blank, and the
    /// event. For each event the longest time without a response is printed. A second host
    /// repeatedly takes a lock by COMPARE AND WRITE on a volume of its own.
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
    /// Write the table to this file as JSON.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// How to connect.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Fills the template, deploys it, verifies every copy, and prints the table.
pub fn run(args: &DemoArgs) -> Result<(), String> {
    let image = Rc::new(Image::open(&args.image)?);
    let array = Array { program: args.holdfast.clone(), pool: args.pool.clone() };
    let (mut engine, plan) = (Engine::new(), host_plan(args)?);
    let reactor = engine.reactor();
    let host = Host::connect_within(&reactor, &plan)?;
    let locking = match args.events {
        Some(_) => Some(Host::connect_within(&reactor, &plan)?),
        None => None,
    };
    let (args, json) = (args.clone(), args.json.clone());
    let demo = Demo { args, array, image, reactor, host, answers: Rc::default(), made: Vec::new() };
    let table = engine.run(demo.run(locking))??;
    println!("{table}");
    if let Some(path) = &json {
        report::write_json(path, &table)?;
    }
    match &table.paths {
        Some(paths) if paths.errors > 0 => {
            Err(format!("{} commands ended with an error", paths.errors))
        }
        _ => Ok(()),
    }
}

/// Returns a host with paths through each portal.
fn host_plan(args: &DemoArgs) -> Result<HostPlan, String> {
    let first = args.portal.first().ok_or("name a portal")?;
    let found = target::discover(first, &args.connect)?.into_iter().next();
    let target = found.ok_or_else(|| format!("portal {first} reports no target"))?.name;
    let config = Config {
        target,
        lun: TEMPLATE_LUN,
        initiator: args.connect.initiator.clone(),
        timeout_s: args.connect.timeout_s,
        ..Config::default()
    };
    // Interleaved, so that successive paths are to different controllers.
    let portals = vec![args.portal.clone(); args.sessions.max(1)].concat();
    Ok(HostPlan { name: args.host.clone(), config, portals, settings: Settings::default() })
}

struct Demo {
    args: DemoArgs,
    array: Array,
    image: Rc<Image>,
    reactor: Reactor,
    host: Host,
    answers: Rc<RefCell<Answers>>,
    /// Volumes of copies, and the number of copies in each.
    made: Vec<(String, u64)>,
}

impl Demo {
    async fn run(mut self, locking: Option<Host>) -> Result<Table, String> {
        let locking = match locking {
            Some(host) => Some(self.begin_locking(&host).await?),
            None => None,
        };
        let template = self.claim(TEMPLATE_LUN).await?;
        let fill = Pipeline::new(
            &self.image,
            [&template, &template],
            self.plan(Way::Off, 1),
            &self.answers,
        )?;
        fill.run(Job::Fill, "fill the template from the image".into()).await?;
        fill.run(Job::Verify, "read back and compare the template".into()).await?;
        let rows = self.deploy_all(&template).await?;
        let verified_again_bytes = match self.args.as_long_as {
            Some(_) => self.verify_again(&template).await?,
            None => 0,
        };
        let paths = match locking {
            Some((locking, task)) => {
                locking.stop();
                task.await?;
                Some(self.paths(&locking)?)
            }
            None => None,
        };
        Ok(Table {
            image_bytes: self.image.bytes(),
            transfer_bytes: self.args.transfer_size,
            rows,
            gap_seconds: self.answers.borrow().longest().as_secs_f64(),
            verified_again_bytes,
            paths,
        })
    }

    /// Starts a second host that takes a lock repeatedly.
    async fn begin_locking(
        &self,
        host: &Host,
    ) -> Result<(Rc<Locking>, Task<Result<(), String>>), String> {
        let size = locking::UNIT_BYTES.to_string();
        self.verb(&["volume", "create", LOCK, "--size", &size]).await?;
        self.connect(LOCK, LOCK_LUN).await?;
        let unit = host.claim(LOCK_LUN).await.map_err(|error| error.to_string())?;
        let locking = Locking::new(unit);
        let task = self.reactor.spawn(locking.clone().run());
        Ok((locking, task))
    }

    /// Returns what happened to both hosts.
    fn paths(&self, locking: &Locking) -> Result<Paths, String> {
        let events = match &self.args.events {
            Some(file) => answers::events(file, &self.answers.borrow(), &locking.answers.borrow())?,
            None => Vec::new(),
        };
        let mut paths = Paths {
            events,
            locks: locking.rounds(),
            locks_by_reading: locking.by_reading(),
            ..Paths::default()
        };
        for host in [&self.host, locking.host()] {
            paths.commands += host.commands();
            paths.losses += host.paths().iter().map(|path| path.losses()).sum::<u64>();
            for totals in host.totals().values() {
                paths.repeated += totals.retries;
                paths.errors +=
                    totals.classes.values().map(|ended| ended.failed.count).sum::<u64>();
                // Those are resolved by reading, and are not errors then.
                paths.errors -= totals.miscompares;
            }
        }
        Ok(paths)
    }

    async fn claim(&self, lun: u16) -> Result<Device, String> {
        self.host.claim(lun).await.map_err(|error| error.to_string())
    }

    async fn verb(&self, arguments: &[&str]) -> Result<(), String> {
        self.array.insist(&self.reactor, arguments).await.map(drop)
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

    /// Deploys each count both ways; then the last one again, as long as requested.
    async fn deploy_all(&mut self, template: &Device) -> Result<Vec<Row>, String> {
        let (counts, as_long_as) = (self.args.counts.clone(), self.args.as_long_as.clone());
        let last = counts.last().copied().unwrap_or(1);
        let mut rows = Vec::new();
        for way in [Way::Off, Way::On] {
            for copies in &counts {
                let stays = way == Way::On && *copies == last && as_long_as.is_none();
                rows.push(self.deploy(template, way, *copies, stays).await?);
            }
        }
        while as_long_as.as_ref().is_some_and(|file| file.exists()) {
            for way in [Way::Off, Way::On] {
                rows.push(self.deploy(template, way, last, false).await?);
            }
        }
        Ok(rows)
    }

    /// Deploys once to a new volume, which is renamed and kept afterwards: destroying it would free
    /// its space while the next deployment is measured. The last one `stays` connected.
    async fn deploy(
        &mut self,
        template: &Device,
        way: Way,
        copies: u64,
        stays: bool,
    ) -> Result<Row, String> {
        let size = (self.image.bytes() * copies).to_string();
        self.verb(&["volume", "create", CLONES, "--size", &size]).await?;
        self.connect(CLONES, CLONES_LUN).await?;
        let row = self.deploy_to_volume(template, way, copies).await?;
        if !stays {
            self.disconnect(CLONES).await?;
            let name = match way {
                Way::Off => format!("{CLONES}-off-{copies}"),
                Way::On => format!("{CLONES}-on-{copies}"),
            };
            let is_taken = self.made.iter().any(|(made, _)| *made == name);
            let name = if is_taken { format!("{name}-{}", self.made.len()) } else { name };
            self.verb(&["volume", "rename", CLONES, &name]).await?;
            self.made.push((name, copies));
        }
        Ok(row)
    }

    async fn connect(&self, volume: &str, lun: u16) -> Result<(), String> {
        self.verb(&["connect", volume, &self.args.host, "--lun", &lun.to_string()]).await
    }

    async fn disconnect(&self, volume: &str) -> Result<(), String> {
        self.verb(&["disconnect", volume, &self.args.host]).await
    }

    async fn deploy_to_volume(
        &self,
        template: &Device,
        way: Way,
        copies: u64,
    ) -> Result<Row, String> {
        let clones = self.claim(CLONES_LUN).await?;
        let plan = self.plan(way, copies);
        let pipeline = Pipeline::new(&self.image, [template, &clones], plan, &self.answers)?;
        let by = match way {
            Way::Off => "host reads and writes",
            Way::On => "EXTENDED COPY",
        };
        let space = self.array.space_beside(&self.reactor).await?;
        let (commands, wire) = (self.host.commands(), self.wire_bytes());
        let start = Instant::now();
        pipeline.run(Job::Deploy, format!("deploy {copies} by {by}")).await?;
        let seconds = start.elapsed().as_secs_f64();
        let (commands, wire_bytes) = (self.host.commands() - commands, self.wire_bytes() - wire);
        let after = self.array.space_beside(&self.reactor).await?;
        let start = Instant::now();
        pipeline.run(Job::Verify, format!("verify {copies}, byte for byte")).await?;
        Ok(Row {
            way,
            copies,
            seconds,
            wire_bytes,
            commands,
            data_bytes: growth(space.data_bytes, after.data_bytes),
            allocated_bytes: growth(space.allocated_bytes, after.allocated_bytes),
            verify_seconds: start.elapsed().as_secs_f64(),
        })
    }

    fn wire_bytes(&self) -> u64 {
        let wire = self.host.wire_bytes();
        wire.sent + wire.received
    }

    /// Compares every copy and the template with the image once more; returns the number of bytes.
    async fn verify_again(&self, template: &Device) -> Result<u64, String> {
        self.verify(template, 1, "verify the template once more".into()).await?;
        let mut verified = self.image.bytes();
        for (name, copies) in &self.made {
            self.connect(name, CLONES_LUN).await?;
            let unit = self.claim(CLONES_LUN).await?;
            self.verify(&unit, *copies, format!("verify {name} once more")).await?;
            self.disconnect(name).await?;
            verified += self.image.bytes() * copies;
        }
        Ok(verified)
    }

    async fn verify(&self, unit: &Device, copies: u64, what: String) -> Result<(), String> {
        let plan = self.plan(Way::Off, copies);
        Pipeline::new(&self.image, [unit, unit], plan, &self.answers)?.run(Job::Verify, what).await
    }
}

fn growth(before: u64, after: u64) -> i64 {
    i64::try_from(i128::from(after) - i128::from(before)).unwrap_or(i64::MAX)
}
