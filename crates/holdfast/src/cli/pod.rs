//! `pod …`.

use serde_json::json;

use super::args::{Common, PodVerb};
use super::client::Client;
use super::container::{Container, Of};
use super::failure::Failure;
use super::output::show;

const PODS: Of = Of { resource: "pods", verb: "pod", title: "Pod", separator: "::" };

/// Runs a verb.
pub fn run(common: &Common, verb: &PodVerb) -> Result<(), Failure> {
    let (client, form) = (Client::find(common)?, common.form);
    match verb {
        PodVerb::Create { name } => PODS.create(&client, form, name),
        PodVerb::List { destroyed, listing } => PODS.list(&client, form, *destroyed, listing),
        PodVerb::Rename { name, new_name } => PODS.rename(&client, form, name, new_name),
        PodVerb::Destroy { name, with_volumes, eradicate } => {
            let contents = format!("destroy_contents={with_volumes}");
            let _: Container =
                PODS.patch(&client, name, &contents, &json!({ "destroyed": true }))?;
            if *eradicate {
                PODS.eradicate(&client, name, &erased(*with_volumes))?;
            }
            show(form, &json!({ "destroyed": name }), || match eradicate {
                true => format!("Pod {name} was eradicated.\n"),
                false => {
                    format!("Pod {name} is destroyed. To recover it: holdfast pod recover {name}\n")
                }
            })
        }
        PodVerb::Recover { name } => PODS.recover(&client, form, name),
        PodVerb::Eradicate { name, with_volumes } => {
            PODS.eradicate(&client, name, &erased(*with_volumes))?;
            show(form, &json!({ "eradicated": name }), || format!("Pod {name} was eradicated.\n"))
        }
    }
}

fn erased(with_volumes: bool) -> String {
    format!("eradicate_contents={with_volumes}")
}
