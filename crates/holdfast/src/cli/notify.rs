//! `notify …`: the recipients of alerts that the pool keeps.

use hyper::Method;
use management::private::read_secret;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::args::{
    Common, MailArgs, NotifyVerb, SnmpChangeArgs, SnmpManagerArgs, SnmpVerb, SyslogVerb,
    WatcherVerb,
};
use super::array::{NONE, cleared, or_else};
use super::client::Client;
use super::failure::Failure;
use super::output::{Align, Form, facts, show, table};
use super::rest::{first, named, names};

const RELAY: &str = "smtp-servers";
const WATCHERS: &str = "alert-watchers";
const SERVERS: &str = "syslog-servers";
const MANAGERS: &str = "snmp-managers";

/// The mail relay.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Relay {
    relay_host: String,
    sender_domain: String,
    sender_username: String,
    encryption_mode: String,
    user_name: String,
    subject_prefix: String,
    body_prefix: String,
}

/// A recipient of mail.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Watcher {
    name: String,
    enabled: bool,
}

/// A syslog server.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Server {
    name: String,
    uri: String,
}

/// An SNMP manager, without secrets.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Manager {
    name: String,
    host: String,
    version: String,
    notification: String,
}

/// All recipients.
#[derive(Clone, Debug, Serialize)]
struct Told {
    relay: Relay,
    watchers: Vec<Watcher>,
    syslog_servers: Vec<Server>,
    snmp_managers: Vec<Manager>,
}

/// The result of a test.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Tested {
    destination: String,
    success: bool,
    result_details: String,
}

/// Runs a verb.
pub fn run(common: &Common, verb: &NotifyVerb) -> Result<(), Failure> {
    let (client, form) = (Client::find(common)?, common.form);
    match verb {
        NotifyVerb::Show => show_all(&client, form),
        NotifyVerb::Mail(change) => {
            let changed = client.change(Method::PATCH, RELAY, "", &relay_change(change)?)?;
            let relay: Relay = first(changed)?;
            show(form, &relay, || facts(&relay_facts(&relay)))
        }
        NotifyVerb::Watcher(verb) => watcher(&client, form, verb),
        NotifyVerb::Syslog(verb) => syslog(&client, form, verb),
        NotifyVerb::Snmp(SnmpVerb::Add(manager)) => add_manager(&client, form, manager),
        NotifyVerb::Snmp(SnmpVerb::Set(change)) => set_manager(&client, form, change),
        NotifyVerb::Snmp(SnmpVerb::Remove { name }) => remove(&client, form, MANAGERS, name),
        NotifyVerb::Test { name } => test(&client, form, name),
    }
}

fn relay_change(asked: &MailArgs) -> Result<Value, Failure> {
    let MailArgs {
        relay,
        sender_domain,
        sender,
        encryption,
        user,
        password_file,
        subject_prefix,
        body_prefix,
    } = asked;
    let mut change = Map::new();
    for (field, value) in [
        ("relay_host", relay),
        ("sender_domain", sender_domain),
        ("sender_username", sender),
        ("encryption_mode", encryption),
        ("user_name", user),
        ("subject_prefix", subject_prefix),
        ("body_prefix", body_prefix),
    ] {
        if let Some(text) = value {
            change.insert(field.into(), json!(cleared(text)));
        }
    }
    if let Some(path) = password_file {
        change.insert("password".into(), json!(read_secret(path)?));
    }
    Ok(change.into())
}

fn relay_facts(relay: &Relay) -> Vec<(&'static str, String)> {
    let given = |text: &String| or_else(text.clone(), NONE);
    vec![
        ("Mail relay", given(&relay.relay_host)),
        ("Sender domain", given(&relay.sender_domain)),
        ("Sender", or_else(relay.sender_username.clone(), "the name of the array")),
        ("Encryption", given(&relay.encryption_mode)),
        ("Relay user", given(&relay.user_name)),
        ("Subject prefix", given(&relay.subject_prefix)),
        ("Text prefix", given(&relay.body_prefix)),
    ]
}

fn show_all(client: &Client, form: Form) -> Result<(), Failure> {
    let reported = Told {
        relay: client.item(RELAY, "")?,
        watchers: client.items(WATCHERS, "")?,
        syslog_servers: client.items(SERVERS, "")?,
        snmp_managers: client.items(MANAGERS, "")?,
    };
    show(form, &reported, || {
        let watchers = reported.watchers.iter().map(|one| match one.enabled {
            true => one.name.clone(),
            false => format!("{} (off)", one.name),
        });
        let servers =
            reported.syslog_servers.iter().map(|one| format!("{}: {}", one.name, one.uri));
        let joined = |all: Vec<String>| or_else(all.join(", "), NONE);
        let mut all = relay_facts(&reported.relay);
        all.push(("Mail recipients", joined(watchers.collect())));
        all.push(("Syslog servers", joined(servers.collect())));
        let managers = reported.snmp_managers.iter().map(|one| {
            let Manager { name, host, version, notification } = one;
            format!("{name}: {host}, {version}, {notification}")
        });
        all.push(("SNMP managers", joined(managers.collect())));
        facts(&all)
    })
}

fn watcher(client: &Client, form: Form, verb: &WatcherVerb) -> Result<(), Failure> {
    let (method, address, enabled, what) = match verb {
        WatcherVerb::Add { address } => (Method::POST, address, true, "receives mail about alerts"),
        WatcherVerb::Enable { address } => (Method::PATCH, address, true, "receives mail again"),
        WatcherVerb::Disable { address } => (Method::PATCH, address, false, "receives no mail"),
        WatcherVerb::Remove { address } => {
            return remove(client, form, WATCHERS, address);
        }
    };
    let query = format!("names={}", names(address)?);
    let changed: Vec<Watcher> =
        client.change(method, WATCHERS, &query, &json!({ "enabled": enabled }))?;
    show(form, &changed, || changed.iter().map(|one| format!("{} {what}.\n", one.name)).collect())
}

fn syslog(client: &Client, form: Form, verb: &SyslogVerb) -> Result<(), Failure> {
    let (method, name, uri) = match verb {
        SyslogVerb::Add { name, uri } => (Method::POST, name, uri),
        SyslogVerb::Set { name, uri } => (Method::PATCH, name, uri),
        SyslogVerb::Remove { name } => return remove(client, form, SERVERS, name),
    };
    let query = named("names", name)?;
    let server: Server = first(client.change(method, SERVERS, &query, &json!({ "uri": uri }))?)?;
    show(form, &server, || {
        format!("Syslog server {} at {} receives alerts and changes.\n", server.name, server.uri)
    })
}

fn add_manager(client: &Client, form: Form, asked: &SnmpManagerArgs) -> Result<(), Failure> {
    let SnmpManagerArgs {
        name,
        host,
        community_file,
        user,
        auth,
        auth_passphrase_file,
        privacy_passphrase_file,
        inform,
    } = asked;
    let notification = if *inform { "inform" } else { "trap" };
    let mut body = json!({ "host": host, "notification": notification });
    if let Some(path) = community_file {
        body["version"] = json!("v2c");
        body["v2c"] = json!({ "community": read_secret(path)? });
    } else {
        body["version"] = json!("v3");
        body["v3"] = json!({ "user": user });
        if let Some(path) = auth_passphrase_file {
            body["v3"]["auth_protocol"] = json!(auth);
            body["v3"]["auth_passphrase"] = json!(read_secret(path)?);
        }
        if let Some(path) = privacy_passphrase_file {
            body["v3"]["privacy_protocol"] = json!("AES");
            body["v3"]["privacy_passphrase"] = json!(read_secret(path)?);
        }
    }
    send_manager(client, form, Method::POST, name, &body)
}

fn set_manager(client: &Client, form: Form, asked: &SnmpChangeArgs) -> Result<(), Failure> {
    let mut body = Map::new();
    if let Some(host) = &asked.host {
        body.insert("host".into(), json!(host));
    }
    if let Some(is_inform) = asked.inform {
        body.insert("notification".into(), json!(if is_inform { "inform" } else { "trap" }));
    }
    if let Some(path) = &asked.community_file {
        body.insert("v2c".into(), json!({ "community": read_secret(path)? }));
    }
    let mut v3 = Map::new();
    for (field, value) in [
        ("user", &asked.user),
        ("auth_protocol", &asked.auth),
        ("privacy_protocol", &asked.privacy),
    ] {
        if let Some(text) = value {
            v3.insert(field.into(), json!(cleared(text)));
        }
    }
    for (field, path) in [
        ("auth_passphrase", &asked.auth_passphrase_file),
        ("privacy_passphrase", &asked.privacy_passphrase_file),
    ] {
        if let Some(path) = path {
            v3.insert(field.into(), json!(read_secret(path)?));
        }
    }
    if !v3.is_empty() {
        body.insert("v3".into(), v3.into());
    }
    send_manager(client, form, Method::PATCH, &asked.name, &body.into())
}

fn send_manager(
    client: &Client,
    form: Form,
    method: Method,
    name: &str,
    body: &Value,
) -> Result<(), Failure> {
    let query = named("names", name)?;
    let manager: Manager = first(client.change(method, MANAGERS, &query, body)?)?;
    show(form, &manager, || {
        let Manager { name, host, version, .. } = &manager;
        format!("SNMP manager {name} at {host} receives alerts by SNMP {version}.\n")
    })
}

fn remove(client: &Client, form: Form, resource: &str, removed: &[String]) -> Result<(), Failure> {
    let query = format!("names={}", names(removed)?);
    client.order(Method::DELETE, resource, &query)?;
    show(form, &json!({ "deleted": removed }), || format!("Removed: {}.\n", removed.join(", ")))
}

/// Tests the named recipients, or all; fails if a message can't be sent.
fn test(client: &Client, form: Form, wanted: &[String]) -> Result<(), Failure> {
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|one| one == name);
    let mut known = Vec::new();
    let mut tested: Vec<Tested> = Vec::new();
    for resource in [WATCHERS, SERVERS, MANAGERS] {
        let all: Vec<super::rest::Named> = client.items(resource, "")?;
        let mut all: Vec<String> = all.into_iter().filter_map(|one| one.name).collect();
        all.retain(|name| is_wanted(name));
        if !all.is_empty() {
            let query = format!("names={}", names(&all)?);
            tested.extend(client.items::<Tested>(&format!("{resource}/test"), &query)?);
        }
        known.extend(all);
    }
    if let Some(missing) = wanted.iter().find(|name| !known.contains(name)) {
        return Err(Failure::Refused(format!(
            "{missing:?} is not a watcher, syslog server or SNMP manager"
        )));
    }
    let row = |one: &Tested| {
        let outcome = if one.success { "sent" } else { &one.result_details };
        vec![one.destination.clone(), outcome.to_owned()]
    };
    let rows: Vec<_> = tested.iter().map(row).collect();
    let columns = [("DESTINATION", Align::Left), ("OUTCOME", Align::Left)];
    let nothing = "The pool has no recipients. Add one: holdfast notify watcher add ADDRESS";
    show(form, &tested, || table(&columns, &rows, nothing))?;
    match tested.iter().filter(|one| !one.success).count() {
        0 => Ok(()),
        failed => Err(Failure::Refused(format!("{failed} could not be sent"))),
    }
}
