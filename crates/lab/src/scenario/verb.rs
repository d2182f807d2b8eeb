//! `holdfast-lab run`: runs scenarios against a target, and stores their results.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use libiscsi::Config;

use super::{ALL, Bench, BenchPlan, Scenario, run as run_scenario};
use crate::deploy::Array;
use crate::engine::Engine;
use crate::figures;
use crate::host::Host;
use crate::outcome::{About, Machine, Parameters, Progress, Status, Store};
use crate::sheet::{self, ReportArgs};
use crate::target::{self, ConnectArgs};
use crate::top;

/// Run scenarios: the papers' measurements, with the offloads on and off.
#[derive(Clone, Debug, clap::Args)]
pub struct RunArgs {
    /// The scenarios, for example `P-13`, `V-37`.
    #[arg(required_unless_present_any = ["all", "list"])]
    pub ids: Vec<String>,
    /// Run all scenarios.
    #[arg(long, conflicts_with = "ids")]
    pub all: bool,
    /// Only list the scenarios.
    #[arg(long)]
    pub list: bool,
    /// At least two logical units: `iscsi://[user%secret@]address:port/target/lun`. Their data is
    /// overwritten.
    #[arg(long, required_unless_present = "list")]
    pub url: Vec<String>,
    /// The portals that hosts use. Default: all that the target reports.
    #[arg(long)]
    pub portal: Vec<String>,
    /// The number of hosts. Their initiator names are `--initiator` followed by `-1`, `-2`, ...
    #[arg(long, default_value_t = 3)]
    pub hosts: usize,
    /// Divide the papers' sizes by this.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u64).range(1..))]
    pub scale: u64,
    /// Divide the papers' numbers of machines by this; for tests, not for measurements.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    pub count_scale: u64,
    /// The seed of all data and all random choices.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Seconds that each load runs.
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
    /// The directory of the results. An interrupted run continues where it stopped.
    #[arg(long, default_value = "lab-results")]
    pub results: PathBuf,
    /// Also repeat scenarios that have results.
    #[arg(long)]
    pub again: bool,
    /// The name of the array in reports.
    #[arg(long, default_value = "array")]
    pub name: String,
    /// For reports: whether acknowledged writes survive a power loss.
    #[arg(long, default_value = "not stated")]
    pub durability: String,
    /// The `holdfast` program, if the target is a Holdfast array: reports stored data, and takes
    /// snapshots.
    #[arg(long, requires = "pool")]
    pub holdfast: Option<PathBuf>,
    /// The pool that the array serves.
    #[arg(long, requires = "holdfast")]
    pub pool: Option<PathBuf>,
    /// The file for the hosts' counters, which `holdfast-lab top` shows.
    #[arg(long)]
    pub counters: Option<PathBuf>,
    /// Write a self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write Markdown tables.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write JSON, which `compare` reads.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// How to connect.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

impl RunArgs {
    /// Returns the array's own command line, if it has one that the lab supports.
    fn array(&self) -> Option<Array> {
        let array = self.holdfast.clone().zip(self.pool.clone());
        array.map(|(program, pool)| Array { program, pool })
    }
}

/// Runs what is requested. Ends with an error if any scenario failed.
///
/// # Errors
/// If the target can't be reached, results can't be stored, or a scenario failed.
pub fn run(args: &RunArgs) -> Result<(), String> {
    if args.list {
        list();
        return Ok(());
    }
    let wanted = wanted(args)?;
    let plan = plan(args)?;
    let parameters = Parameters {
        target: plan.config.target.clone(),
        portals: plan.portals.clone(),
        hosts: plan.initiators.len() as u32,
        scale: plan.scale,
        count_scale: plan.count_scale,
        load_ms: plan.load_time.as_millis() as u64,
        seed: plan.seed,
        lab_version: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let store = Store::open(&args.results).map_err(|error| error.to_string())?;
    let progress = Progress::new(wanted.len() as u64);
    let mut engine = Engine::new();
    let reactor = engine.reactor();
    let bench = Bench::connect(&reactor, plan, args.array(), progress.clone())
        .map_err(|error| error.to_string())?;
    let about = about(args, &mut engine, &bench, &parameters)?;
    store.begin(&about, &parameters).map_err(|error| error.to_string())?;
    let counters = args.counters.clone().unwrap_or_else(top::default_place);
    let hosts = bench.hosts().to_vec();
    let publisher = top::Publisher::start(&reactor, move || hosts.clone(), &counters)?;
    let mut failed = Vec::new();
    for scenario in wanted {
        let known = if args.again { None } else { store.done(scenario.id, &parameters) };
        if let Some(outcome) = known {
            progress.resume(&outcome);
            continue;
        }
        progress.begin(scenario.id, figures::find(scenario.id).map_or("", |figure| figure.title));
        let bench = bench.clone();
        let outcome = engine.run(async move { run_scenario(bench, scenario).await })?;
        if let Status::Failed { reason } = &outcome.status {
            failed.push(format!("{}: {reason}", scenario.id));
        }
        store.put(&outcome, &parameters).map_err(|error| error.to_string())?;
        progress.end(&outcome);
    }
    progress.finish();
    drop(publisher);
    sheet::report(&ReportArgs {
        results: args.results.clone(),
        html: args.html.clone(),
        markdown: args.markdown.clone(),
        json: args.json.clone(),
    })?;
    match failed.is_empty() {
        true => Ok(()),
        false => Err(format!("{} failed:\n{}", failed.len(), failed.join("\n"))),
    }
}

fn list() {
    for scenario in ALL {
        if let Some(figure) = figures::find(scenario.id) {
            println!("{:<8} {} ({})", figure.id, figure.title, figure.paper);
        }
    }
}

fn wanted(args: &RunArgs) -> Result<Vec<&'static Scenario>, String> {
    if args.all {
        return Ok(ALL.iter().collect());
    }
    let find = |id: &String| {
        let found = ALL.iter().find(|scenario| scenario.id.eq_ignore_ascii_case(id));
        found.ok_or_else(|| format!("there is no scenario {id:?}; --list shows all scenarios"))
    };
    args.ids.iter().map(find).collect()
}

fn plan(args: &RunArgs) -> Result<BenchPlan, String> {
    let mut units = Vec::new();
    for url in &args.url {
        units.push(args.connect.config(url)?);
    }
    let Some(first) = units.first().cloned() else {
        return Err(String::from("give two logical units with --url"));
    };
    if units.iter().any(|unit| unit.target != first.target) {
        return Err(String::from("all logical units must have the same target"));
    }
    let hosts = 1..=args.hosts.clamp(1, 64);
    let initiators: Vec<String> =
        hosts.map(|number| format!("{}-{number}", args.connect.initiator)).collect();
    let portals = match args.portal.is_empty() {
        true => portals(args, &first, &initiators)?,
        false => args.portal.clone(),
    };
    Ok(BenchPlan {
        config: first,
        portals,
        initiators,
        luns: units.iter().map(|unit| unit.lun).collect(),
        scale: args.scale,
        count_scale: args.count_scale,
        seed: args.seed,
        load_time: Duration::from_secs_f64(args.seconds.clamp(0.1, 3600.0)),
    })
}

/// Returns the portals that the target reports to the first host.
fn portals(args: &RunArgs, unit: &Config, initiators: &[String]) -> Result<Vec<String>, String> {
    let initiator = initiators.first().cloned().unwrap_or_default();
    let connect = ConnectArgs { initiator, ..args.connect.clone() };
    let targets = target::discover(&unit.portal, &connect)?;
    let found = targets.into_iter().find(|target| target.name == unit.target);
    let portals = found.map(|target| target.portals).unwrap_or_default();
    // In SendTargets, the address is followed by a comma and the tag of the portal group.
    let bare = portals.iter().filter_map(|portal| portal.split(',').next());
    let mut portals: Vec<String> = bare.map(str::to_owned).collect();
    portals.dedup();
    Ok(if portals.is_empty() { vec![unit.portal.clone()] } else { portals })
}

fn about(
    args: &RunArgs,
    engine: &mut Engine,
    bench: &Rc<Bench>,
    parameters: &Parameters,
) -> Result<About, String> {
    let host: Host = bench.host().clone();
    let lun = bench.plan().luns[0];
    let device = engine.run(async move { host.claim(lun).await })?;
    let array = device.map_err(|error| error.to_string())?.identity();
    Ok(About {
        array,
        name: args.name.clone(),
        durability: args.durability.clone(),
        machine: Machine::this(),
        lab_version: parameters.lab_version.clone(),
        date: About::now(),
        scale: parameters.scale,
        count_scale: parameters.count_scale,
        load_seconds: bench.plan().load_time.as_secs_f64(),
        portals: parameters.portals.clone(),
        hosts: parameters.hosts,
    })
}
