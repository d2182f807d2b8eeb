//! A controller that an administrator stops: it stays down, regardless of what happens to the other
//! one, until it is started.

use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libiscsi::Session;

use crate::Arguments;
use crate::array::{Array, Controllers, Shape};
use crate::controllers::{at_each, signal};
use crate::good::past_attentions;
use crate::pair::{both, owner};
use crate::report::Report;
use crate::target::Target;

/// How long a controller may take to be ready again.
const READY: Duration = Duration::from_secs(20);

/// Runs it on a separate array.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let shape = Shape { controllers: Controllers::Two, ..Shape::default() };
    let mut array = crate::array(arguments, shape)?;
    let targets = at_each(&array)?;
    both(&array)?;
    report.check(
        "an administratively stopped controller stays down, and the owner continues",
        || {
            array.verb(&["controller", "stop", "ct1"])?;
            is_down(&array, &targets, 1)
        },
    );
    report.check("the last controller can't be stopped or switched", || {
        for (verb, why) in [("stop", "only one that is running"), ("switch", "was stopped")] {
            let name = (verb == "stop").then_some("ct0");
            let verb: Vec<&str> = ["controller", verb].into_iter().chain(name).collect();
            let refused = array.try_verb(&verb)?;
            ensure!(refused.code == 1 && refused.text.contains(why), "{}", refused.text);
        }
        is_down(&array, &targets, 1)
    });
    report.check("it stays down when the owner is killed and restarted", || {
        let before = status(&array, "pid", 0)?.as_u64().context("no process")?;
        signal(before, "KILL")?;
        let begin = Instant::now();
        while status(&array, "pid", 0).ok().and_then(|pid| pid.as_u64()).is_none_or(|p| p == before)
        {
            ensure!(begin.elapsed() < READY, "the owner does not come back:\n{}", array.log());
            thread::sleep(Duration::from_millis(20));
        }
        is_down(&array, &targets, 1)
    });
    report.check("started again, it forwards, and takes over", || {
        array.verb(&["controller", "start", "ct1"])?;
        read(&targets[1])?;
        array.verb(&["controller", "switch"])?;
        ensure!(owner(&array)?.name == "CT1", "it did not take over");
        read(&targets[1])
    });
    report.check("to stop the owner, they are switched first", || {
        array.verb(&["controller", "stop", "CT1"])?;
        let owner = status(&array, "mode", 0)?;
        ensure!(owner == "primary", "ct0 is {owner}");
        is_down(&array, &targets, 1)?;
        array.verb(&["controller", "start", "ct1"])?;
        both(&array).map(|_| String::new())
    });
    array.stop()
}

fn status(array: &Array, field: &str, number: usize) -> Result<serde_json::Value> {
    Ok(array.verb(&["controller", "list"])?[number][field].clone())
}

/// Checks that its status is `stopped`, and that its portal refuses hosts at once.
fn is_down(array: &Array, targets: &[Target], number: usize) -> Result<String> {
    let told = status(array, "status", number)?;
    ensure!(told == "stopped", "ct{number} is {told}");
    let portal = &targets[number].portal;
    ensure!(TcpStream::connect(portal).is_err(), "a process listens at {portal}");
    read(&targets[1 - number])
}

fn read(target: &Target) -> Result<String> {
    let mut session = Session::connect(&target.config())?;
    past_attentions(|| session.read(0, 1, 512))?;
    Ok(String::new())
}
