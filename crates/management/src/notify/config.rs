//! `[[notify]]` in the configuration: where notifications are sent, and how.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use array::Severity;
use hyper::Uri;
use lettre::address::Address;
use serde::{Deserialize, Deserializer, de};

use super::{
    Destination, Mail, MailSecurity, Sender, Syslog, TlsError, Transport, Webhook, client_config,
};
use crate::Error;
use crate::place::ApiPlace;
use crate::private::read_secret;

/// The most destinations: each has a thread.
const DESTINATIONS_MAX: usize = 16;
/// The shortest secret of a webhook, in bytes.
const SECRET_BYTES_MIN: usize = 16;

/// How the names of destinations in the pool begin.
const KEPT: [&str; 2] = [api::WATCHERS, api::SYSLOG_SERVERS];

/// A destination.
#[derive(Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum NotifyConfig {
    /// A syslog server.
    Syslog(SyslogConfig),
    /// A webhook.
    Webhook(WebhookConfig),
    /// Mail.
    Mail(MailConfig),
}

/// A syslog server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyslogConfig {
    /// Its name in alerts and in the log.
    name: String,
    /// The lowest severity of alerts that are sent.
    #[serde(default = "warning", deserialize_with = "severity")]
    severity: Severity,
    /// Whether changes are sent as well.
    #[serde(default)]
    audit: bool,
    /// `HOST:PORT`.
    address: String,
    /// The transport of messages.
    #[serde(default)]
    transport: TransportName,
    /// The trusted authorities (PEM); by default those of the machine.
    ca_file: Option<PathBuf>,
}

/// The transport of syslog messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum TransportName {
    #[default]
    Udp,
    Tcp,
    Tls,
}

/// A webhook.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// As for syslog.
    name: String,
    /// As for syslog.
    #[serde(default = "warning", deserialize_with = "severity")]
    severity: Severity,
    /// As for syslog.
    #[serde(default)]
    audit: bool,
    /// `https://…`; `http://…` on this machine only.
    url: String,
    /// The file with the secret that signs messages.
    secret_file: Option<PathBuf>,
    /// As for syslog.
    ca_file: Option<PathBuf>,
}

/// A mail server, and the recipients.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MailConfig {
    /// As for syslog.
    name: String,
    /// As for syslog.
    #[serde(default = "warning", deserialize_with = "severity")]
    severity: Severity,
    /// As for syslog.
    #[serde(default)]
    audit: bool,
    /// `HOST:PORT`.
    server: String,
    /// How the connection is encrypted.
    #[serde(default)]
    security: SecurityName,
    /// The sender.
    from: Address,
    /// The recipients.
    to: Vec<Address>,
    /// The user at the server.
    user: Option<String>,
    /// The file with its password.
    password_file: Option<PathBuf>,
    /// As for syslog.
    ca_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SecurityName {
    #[default]
    StartTls,
    Tls,
    None,
}

fn warning() -> Severity {
    Severity::Warning
}

fn severity<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Severity, D::Error> {
    let text = String::deserialize(deserializer)?;
    let refuse = || de::Error::custom("severity is \"info\", \"warning\" or \"critical\"");
    Severity::of_name(&text).ok_or_else(refuse)
}

/// Checks `[[notify]]`, as far as possible without files or network.
///
/// # Errors
/// What is wrong, on one line.
pub fn check(all: &[NotifyConfig]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    if all.len() > DESTINATIONS_MAX {
        return Err(format!("at most {DESTINATIONS_MAX} times [[notify]]"));
    }
    for one in all {
        let name = one.name();
        if name.is_empty() || name.len() > 63 || name.chars().any(|c| !c.is_ascii_graphic()) {
            return Err("the name of a [[notify]] is 1 to 63 printable characters".into());
        }
        if KEPT.iter().any(|list| name.starts_with(list)) {
            return Err(format!("{name} is the name of a receiver in the pool"));
        }
        if !names.insert(name) {
            return Err(format!("two [[notify]] are named {name}"));
        }
        one.check().map_err(|why| format!("[[notify]] {name}: {why}"))?;
    }
    Ok(())
}

/// Returns the destinations, after reading their secrets.
///
/// # Errors
/// If a file can't be read, or contains something else.
pub fn destinations(all: &[NotifyConfig]) -> Result<Vec<Destination>, Error> {
    all.iter().map(NotifyConfig::destination).collect()
}

fn place(text: &str) -> Result<ApiPlace, String> {
    match text.contains("://") {
        true => Err(format!("{text:?} is not HOST:PORT")),
        false => text.parse().map_err(|_| format!("{text:?} is not HOST:PORT")),
    }
}

/// Checks a webhook's URL, and returns whether it is encrypted.
fn url(text: &str) -> Result<(Uri, bool), String> {
    let refuse = || "url begins with https:// and names a host".to_owned();
    let url: Uri = text.parse().map_err(|_| refuse())?;
    let host = url.host().ok_or_else(refuse)?.trim_matches(['[', ']']);
    let is_loopback =
        host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
    match url.scheme_str() {
        Some("https") => Ok((url, true)),
        Some("http") if is_loopback => Ok((url, false)),
        Some("http") => Err("http:// is not encrypted: on this machine only".into()),
        _ => Err(refuse()),
    }
}

impl NotifyConfig {
    fn name(&self) -> &str {
        match self {
            Self::Syslog(config) => &config.name,
            Self::Webhook(config) => &config.name,
            Self::Mail(config) => &config.name,
        }
    }

    fn check(&self) -> Result<(), String> {
        match self {
            Self::Syslog(config) => {
                if config.ca_file.is_some() && config.transport != TransportName::Tls {
                    return Err("ca_file needs transport = \"tls\"".into());
                }
                place(&config.address).map(drop)
            }
            Self::Webhook(config) => url(&config.url).map(drop),
            Self::Mail(config) => {
                if config.user.is_some() != config.password_file.is_some() {
                    return Err("user and password_file go together".into());
                }
                if config.user.is_some() && config.security == SecurityName::None {
                    return Err("a password is not sent without encryption".into());
                }
                if config.to.is_empty() {
                    return Err("to has no recipients".into());
                }
                place(&config.server).map(drop)
            }
        }
    }

    fn destination(&self) -> Result<Destination, Error> {
        let usage = |why: String| Error::Usage(format!("[[notify]] {}: {why}", self.name()));
        let tls = |error: TlsError| Error::Machine(format!("[[notify]] {}: {error}", self.name()));
        let (severity, audit, sender): (_, _, Arc<dyn Sender>) = match self {
            Self::Syslog(config) => {
                let transport = match config.transport {
                    TransportName::Udp => Transport::Udp,
                    TransportName::Tcp => Transport::Tcp,
                    TransportName::Tls => {
                        Transport::Tls(client_config(config.ca_file.as_deref()).map_err(tls)?)
                    }
                };
                let address = place(&config.address).map_err(usage)?.to_string();
                let hostname = super::hostname();
                let syslog = Syslog { address, transport, hostname };
                (config.severity, config.audit, Arc::new(syslog))
            }
            Self::Webhook(config) => {
                let (url, encrypted) = url(&config.url).map_err(usage)?;
                let tls = encrypted.then(|| client_config(config.ca_file.as_deref()).map_err(tls));
                let secret = config.secret_file.as_deref().map(read_secret).transpose()?;
                if secret.as_ref().is_some_and(|secret| secret.len() < SECRET_BYTES_MIN) {
                    let text = format!("the secret has less than {SECRET_BYTES_MIN} characters");
                    return Err(usage(text));
                }
                let webhook = Webhook { url, tls: tls.transpose()?, secret };
                (config.severity, config.audit, Arc::new(webhook))
            }
            Self::Mail(config) => (config.severity, config.audit, Arc::new(config.mail()?)),
        };
        Ok(Destination { name: self.name().to_owned(), severity, audit, sender })
    }
}

impl MailConfig {
    fn mail(&self) -> Result<Mail, Error> {
        let ApiPlace { host, port, .. } = place(&self.server).map_err(Error::Usage)?;
        let credentials = match (&self.user, &self.password_file) {
            (Some(user), Some(file)) => Some((user.clone(), read_secret(file)?)),
            _ => None,
        };
        Ok(Mail {
            host,
            port,
            security: match self.security {
                SecurityName::StartTls => MailSecurity::StartTls,
                SecurityName::Tls => MailSecurity::Tls,
                SecurityName::None => MailSecurity::None,
            },
            ca_file: self.ca_file.clone(),
            credentials,
            from: self.from.clone(),
            to: self.to.clone(),
            subject_prefix: String::new(),
            body_prefix: String::new(),
        })
    }
}
