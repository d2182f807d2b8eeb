//! `volume-group …`.

use serde_json::json;

use super::args::{Common, VolumeGroupVerb};
use super::client::Client;
use super::container::Of;
use super::failure::Failure;
use super::limits::{self, Limited};
use super::output::show;

const GROUPS: Of =
    Of { resource: "volume-groups", verb: "volume-group", title: "Volume group", separator: "/" };

/// Runs a verb.
pub fn run(common: &Common, verb: &VolumeGroupVerb) -> Result<(), Failure> {
    let (client, form) = (Client::find(common)?, common.form);
    match verb {
        VolumeGroupVerb::Create { name } => GROUPS.create(&client, form, name),
        VolumeGroupVerb::List { destroyed, listing } => {
            GROUPS.list(&client, form, *destroyed, listing)
        }
        VolumeGroupVerb::Rename { name, new_name } => GROUPS.rename(&client, form, name, new_name),
        VolumeGroupVerb::Limit { name, iops, bandwidth } => {
            let group = Limited { resource: GROUPS.resource, title: GROUPS.title, name };
            limits::run(&client, form, &group, *iops, *bandwidth)
        }
        VolumeGroupVerb::Destroy { name, eradicate } => {
            GROUPS.patch(&client, name, "", &json!({ "destroyed": true }))?;
            if *eradicate {
                GROUPS.eradicate(&client, name, "")?;
            }
            show(form, &json!({ "destroyed": name }), || match eradicate {
                true => format!("Volume group {name} was eradicated, with its volumes.\n"),
                false => format!(
                    "Volume group {name} is destroyed with its volumes. To recover them: \
                     holdfast volume-group recover {name}\n"
                ),
            })
        }
        VolumeGroupVerb::Recover { name } => GROUPS.recover(&client, form, name),
        VolumeGroupVerb::Eradicate { name } => {
            GROUPS.eradicate(&client, name, "")?;
            show(form, &json!({ "eradicated": name }), || {
                format!("Volume group {name} was eradicated, with its volumes.\n")
            })
        }
    }
}
