//! `connect` and `disconnect`.

use api::{Connection, ConnectionCreate};
use serde_json::json;

use super::args::{Common, ConnectArgs, DisconnectArgs};
use super::client::{Client, part, path_of};
use super::failure::Failure;
use super::output::show;

/// Lets a host reach a volume.
pub fn connect(common: &Common, options: &ConnectArgs) -> Result<(), Failure> {
    let new = ConnectionCreate {
        volume: options.volume.clone(),
        host: options.host.clone(),
        lun: options.lun,
    };
    let made: Connection = Client::find(common)?.post("/v1/connections", &new)?;
    show(common.json, &made, || {
        format!("Host {} sees volume {} as LUN {} now.\n", made.host, made.volume, made.lun)
    })
}

/// Takes a volume away from a host.
pub fn disconnect(common: &Common, options: &DisconnectArgs) -> Result<(), Failure> {
    let DisconnectArgs { volume, host } = options;
    if host.is_empty() {
        return Err(Failure::Usage("a name must not be empty".into()));
    }
    let path = format!("{}/{}", path_of("connections", volume)?, part(host));
    Client::find(common)?.delete(&path)?;
    let gone = json!({ "disconnected": { "volume": volume, "host": host } });
    show(common.json, &gone, || format!("Host {host} no longer sees volume {volume}.\n"))
}
