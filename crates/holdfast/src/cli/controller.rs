//! `controller`: the one or two controllers of the array.

use std::thread;
use std::time::{Duration, Instant};

use api::{Controller, Controllers};

use super::args::{Common, ControllerVerb};
use super::client::Client;
use super::failure::Failure;
use super::output::{Align, show, table, time};

/// How long a controller may take to have the pool.
const SWITCHED_WITHIN: Duration = Duration::from_secs(30);
/// How often it is asked whether it has.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// Shows the controllers, or has the other one take the pool.
pub fn run(common: &Common, verb: &ControllerVerb) -> Result<(), Failure> {
    let Controllers { controllers } = match verb {
        ControllerVerb::List => Client::find(common)?.get("/v1/controllers")?,
        ControllerVerb::Switch => switch(common)?,
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

/// Has the other controller take the pool, and waits until it has.
fn switch(common: &Common) -> Result<Controllers, Failure> {
    let before: Controllers = Client::find(common)?.post("/v1/controllers/switch", &())?;
    let owner = |all: &Controllers| {
        all.controllers.iter().find(|it| it.mode == "primary").map(|it| it.name.clone())
    };
    let until = Instant::now() + SWITCHED_WITHIN;
    loop {
        thread::sleep(LOOK_INTERVAL);
        // Between the two there is no interface.
        let now = Client::find(common)
            .and_then(|client| client.get::<Controllers>("/v1/controllers"))
            .ok()
            .filter(|now| owner(now) != owner(&before));
        match now {
            Some(now) => return Ok(now),
            None if Instant::now() < until => {}
            None => {
                let seconds = SWITCHED_WITHIN.as_secs();
                return Err(Failure::Machine(format!(
                    "the other controller has not taken the pool in {seconds} s: look at its log"
                )));
            }
        }
    }
}
