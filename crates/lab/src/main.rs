//! `holdfast-lab`: hosts, loads and verification for any iSCSI target.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use lab::deploy::{self, DemoArgs, FillArgs};
use lab::load::{self, LoadArgs};
use lab::report;
use lab::scenario;
use lab::sheet::{self, CompareArgs, ReportArgs};
use lab::target::{self, ConnectArgs};
use lab::top::{self, TopArgs};
use lab::verify::{self, VerifyArgs};

#[derive(Parser)]
#[command(name = "holdfast-lab", version, about = "Hosts and loads against an iSCSI target")]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a steady load, and print the measurements as JSON.
    Load(LoadArgs),
    /// Print the targets of a portal, one per line: its name and its portals.
    Discover {
        /// `address:port`.
        #[arg(long)]
        portal: String,
        /// How to connect.
        #[command(flatten)]
        connect: ConnectArgs,
    },
    /// Write an image to a logical unit, and verify it.
    Fill(FillArgs),
    /// Deploy a template on a Holdfast array, by host reads and writes, and by EXTENDED COPY.
    Deploy(DemoArgs),
    /// Show the counters of the hosts of a running lab, like esxtop: live, or as CSV (-b).
    Top(TopArgs),
    /// Run a load with a journal, even while the target is killed; or verify the data by the
    /// journal.
    VerifyLoad(VerifyArgs),
    /// Run scenarios: the papers' measurements, with the offloads on and off.
    Run(scenario::RunArgs),
    /// Make a report of results: HTML, Markdown, JSON.
    Report(ReportArgs),
    /// Compare two reports: array A and array B.
    Compare(CompareArgs),
}

fn main() -> ExitCode {
    match run(&Cli::parse().verb) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("holdfast-lab: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(verb: &Verb) -> Result<(), String> {
    match verb {
        Verb::Load(args) => {
            println!("{}", report::to_json(&load::run(args)?)?);
            Ok(())
        }
        Verb::Discover { portal, connect } => {
            for target in target::discover(portal, connect)? {
                println!("{} {}", target.name, target.portals.join(" "));
            }
            Ok(())
        }
        Verb::Fill(args) => deploy::fill(args),
        Verb::Deploy(args) => deploy::run_demo(args),
        Verb::Top(args) => top::run(args),
        Verb::VerifyLoad(args) => {
            println!("{}", report::to_json(&verify::run(args)?)?);
            Ok(())
        }
        Verb::Run(args) => scenario::run_verb(args),
        Verb::Report(args) => sheet::report(args),
        Verb::Compare(args) => sheet::compare(args),
    }
}
