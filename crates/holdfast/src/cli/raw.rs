//! `api`: any request of the interface, for requests without a verb.

use std::io::Read;

use hyper::Method;
use serde_json::Value;

use super::args::{ApiArgs, Common};
use super::client::Client;
use super::failure::Failure;
use super::output::{Form, print, show};

/// The maximum number of bytes that are read of a request body; the array accepts no more.
const BODY_BYTES_MAX: u64 = api::BODY_BYTES_MAX as u64;

/// Sends the request, and prints the response as JSON, or as CSV.
pub fn run(common: &Common, options: &ApiArgs) -> Result<(), Failure> {
    let refuse = |text: String| Err(Failure::Usage(text));
    let ApiArgs { method, path, data } = options;
    let Ok(method) = Method::from_bytes(method.to_ascii_uppercase().as_bytes()) else {
        return refuse(format!("{method} is not an HTTP method"));
    };
    if !path.starts_with('/') {
        return refuse(format!("{path:?} is not a path, such as /v1/volumes or /api/2.26/volumes"));
    }
    let body = match data.as_deref() {
        None => String::new(),
        Some("-") => standard_input()?,
        Some(text) => text.to_owned(),
    };
    if let Err(error) = serde_json::from_str::<Value>(&body)
        && !body.is_empty()
    {
        return refuse(format!("--data is not JSON: {error}"));
    }
    let answer = Client::find(common)?.send(method, path, body.as_bytes())?;
    if answer.is_empty() {
        return Ok(());
    }
    let form = Form { json: !common.form.csv, ..common.form };
    match serde_json::from_slice::<Value>(&answer) {
        Ok(value) => show(form, items(form, &value), String::new),
        // Responses other than JSON are text for people or for Prometheus.
        Err(_) => print(&String::from_utf8_lossy(&answer)),
    }
}

/// Returns the list in a response of REST 2.x, which has it in a field, for a line for each item.
fn items(form: Form, value: &Value) -> &Value {
    value.get("items").filter(|_| form.csv).unwrap_or(value)
}

fn standard_input() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .take(BODY_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .map_err(|error| Failure::Machine(format!("can't read the standard input: {error}")))?;
    Ok(text)
}
