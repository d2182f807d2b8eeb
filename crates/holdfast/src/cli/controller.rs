//! `controller`: the one or two controllers of the array.

use std::thread;
use std::time::{Duration, Instant};

use api::{Controller, Controllers};

use super::args::{Common, ControllerVerb};
use super::client::Client;
use super::failure::Failure;
use super::link;
use super::output::{Align, show, table, time};

/// The timeout for a controller to take the pool, to end, or to become ready.
const WITHIN: Duration = Duration::from_secs(30);
/// The interval of polling.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Shows the controllers, switches the pool to the other one, stops or starts one.
pub fn run(common: &Common, verb: &ControllerVerb) -> Result<(), Failure> {
    let Controllers { controllers } = match verb {
        ControllerVerb::Secret { file } => return link::make_secret(common, file),
        ControllerVerb::List => Client::find(common)?.get("/v1/controllers")?,
        ControllerVerb::Switch => switch(common)?,
        ControllerVerb::Stop(of) => stop(common, &of.name)?,
        ControllerVerb::Start(of) => {
            let path = format!("/v1/controllers/{}/start", of.name);
            Client::find(common)?.post::<Controllers>(&path, &())?;
            wait(common, &format!("{} is not ready", of.name), |all| is(all, &of.name, "ready"))?
        }
    };
    let columns = [
        ("NAME", Align::Left),
        ("MODE", Align::Left),
        ("STATUS", Align::Left),
        ("VERSION", Align::Left),
        ("SINCE", Align::Left),
        ("PORTALS", Align::Left),
    ];
    show(common.form, &controllers, || {
        table(&columns, &controllers.iter().map(row).collect::<Vec<_>>(), "No controllers.")
    })
}

fn row(controller: &Controller) -> Vec<String> {
    let Controller { name, mode, status, version, started_ms, portals, .. } = controller.clone();
    let since = if started_ms == 0 { "-".into() } else { time(started_ms) };
    let version = if version.is_empty() { "-".into() } else { version };
    vec![name, mode, status, version, since, portals.join(", ")]
}

/// Switches the pool to the other controller, and waits until it has the pool, or the previous
/// owner has it again.
fn switch(common: &Common) -> Result<Controllers, Failure> {
    let before: Controllers = Client::find(common)?.post("/v1/controllers/switch", &())?;
    let what = "the other controller has not taken the pool";
    let now = wait(common, what, |now| owner(now) != owner(&before))?;
    match owner(&now).zip(owner(&before)) {
        Some((now, before)) if now.name == before.name => {
            let name = &now.name;
            Err(Failure::Machine(format!("{what}, and {name} has it again: look at the log")))
        }
        _ => Ok(now),
    }
}

/// Stops a controller; if it has the pool, first switches the pool to the other controller, if
/// there is one.
fn stop(common: &Common, name: &str) -> Result<Controllers, Failure> {
    let before: Controllers = Client::find(common)?.get("/v1/controllers")?;
    let is_ready = |it: &Controller| it.status == "ready" && !it.name.eq_ignore_ascii_case(name);
    let is_owner = owner(&before).is_some_and(|owner| owner.name.eq_ignore_ascii_case(name));
    if is_owner && before.controllers.iter().any(is_ready) {
        switch(common)?;
    }
    Client::find(common)?.post::<Controllers>(&format!("/v1/controllers/{name}/stop"), &())?;
    wait(common, &format!("{name} has not ended"), |all| is(all, name, "stopped"))
}

/// The process that has the pool.
#[derive(PartialEq, Eq)]
struct Owner {
    name: String,
    started_ms: u64,
}

fn owner(all: &Controllers) -> Option<Owner> {
    let owner = all.controllers.iter().find(|it| it.mode == "primary");
    owner.map(|it| Owner { name: it.name.clone(), started_ms: it.started_ms })
}

fn is(all: &Controllers, name: &str, status: &str) -> bool {
    let mut named = all.controllers.iter().filter(|it| it.name.eq_ignore_ascii_case(name));
    named.any(|it| it.status == status)
}

/// Waits until the controllers are as wanted. During a takeover there is no management interface.
fn wait(
    common: &Common,
    what: &str,
    is_so: impl Fn(&Controllers) -> bool,
) -> Result<Controllers, Failure> {
    let until = Instant::now() + WITHIN;
    loop {
        thread::sleep(LOOK_INTERVAL);
        let now = Client::find(common)
            .and_then(|client| client.get::<Controllers>("/v1/controllers"))
            .ok()
            .filter(&is_so);
        match now {
            Some(now) => return Ok(now),
            None if Instant::now() < until => {}
            None => {
                let seconds = WITHIN.as_secs();
                return Err(Failure::Machine(format!(
                    "{what} within {seconds} s, as seen from here: look at its log and, with two \
                     machines, run this on the other one"
                )));
            }
        }
    }
}
