//! Mail by SMTP (RFC 5321).

use lettre::address::Address;
use lettre::message::{Mailbox, header};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Certificate, CertificateStore, Tls, TlsParameters};
use lettre::{Message, SmtpTransport, Transport};
use network::Names;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::tls::authorities;
use super::{Event, News, SEND_TIMEOUT, Sender};

/// How the connection is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailSecurity {
    /// By STARTTLS, or it fails: nothing is sent in the clear.
    StartTls,
    /// From the first byte on.
    Tls,
    /// Not encrypted.
    None,
}

/// A mail server, and the recipients.
pub struct Mail {
    /// The server's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is encrypted.
    pub security: MailSecurity,
    /// Trusted authorities (PEM); by default those that the machine trusts.
    pub ca_file: Option<PathBuf>,
    /// User and password.
    pub credentials: Option<(String, String)>,
    /// The sender.
    pub from: Address,
    /// The recipients: at least one.
    pub to: Vec<Address>,
    /// The prefix of each subject; may be empty.
    pub subject_prefix: String,
    /// The prefix of each text; may be empty.
    pub body_prefix: String,
}

impl Sender for Mail {
    fn send(&self, event: &Event, names: &Names) -> Result<(), String> {
        let one_line = |error: &dyn std::error::Error| {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            format!("{}:{}: {error}{cause}", self.host, self.port)
        };
        // The date of a mail, and the check of certificates, require a valid clock.
        super::must_be_dated()?;
        let message = self.message(event).map_err(|error| one_line(&error))?;
        let mut last = "it has no address".to_owned();
        for address in names.addresses(&self.host, self.port).map_err(|error| one_line(&error))? {
            let transport = self.transport(address).map_err(|error| one_line(&*error))?;
            match transport.send(&message) {
                Ok(_) => return Ok(()),
                // A server that responds has decided.
                Err(error) if error.status().is_some() => return Err(one_line(&error)),
                Err(error) => last = one_line(&error),
            }
        }
        Err(last)
    }
}

impl Mail {
    fn transport(&self, address: SocketAddr) -> Result<SmtpTransport, Box<dyn std::error::Error>> {
        let tls = match self.security {
            MailSecurity::None => Tls::None,
            MailSecurity::StartTls => Tls::Required(self.tls()?),
            MailSecurity::Tls => Tls::Wrapper(self.tls()?),
        };
        let mut builder = SmtpTransport::builder_dangerous(address.ip().to_string())
            .port(address.port())
            .timeout(Some(SEND_TIMEOUT))
            .tls(tls);
        if let Some((user, password)) = &self.credentials {
            builder = builder.credentials(Credentials::new(user.clone(), password.clone()));
        }
        Ok(builder.build())
    }

    fn tls(&self) -> Result<TlsParameters, Box<dyn std::error::Error>> {
        let mut builder = TlsParameters::builder(self.host.clone());
        if let Some(path) = &self.ca_file {
            builder = builder.certificate_store(CertificateStore::None);
            for certificate in authorities(path)? {
                let certificate = Certificate::from_der(certificate.to_vec())?;
                builder = builder.add_root_certificate(certificate);
            }
        }
        Ok(builder.build_rustls()?)
    }

    fn message(&self, event: &Event) -> Result<Message, lettre::error::Error> {
        let mut builder = Message::builder()
            .from(Mailbox::new(Some(format!("Holdfast {}", event.array)), self.from.clone()))
            .subject(after(&self.subject_prefix, " ", subject(event)))
            .header(header::ContentType::TEXT_PLAIN);
        for to in &self.to {
            builder = builder.to(Mailbox::new(None, to.clone()));
        }
        builder.body(after(&self.body_prefix, "\n\n", body(event)))
    }
}

/// Returns a text after a prefix, if there is one.
fn after(prefix: &str, between: &str, text: String) -> String {
    match prefix {
        "" => text,
        prefix => format!("{prefix}{between}{text}"),
    }
}

fn subject(event: &Event) -> String {
    let array = &event.array;
    match &event.news {
        News::Opened(alert) => {
            let severity = alert.condition.severity.name();
            format!("[{array}] {severity}: {}", alert.summary())
        }
        News::Closed(alert) => format!("[{array}] closed: {}", alert.summary()),
        News::Changed(entry) => {
            format!("[{array}] {} {} by {}", entry.deed.method, entry.deed.path, entry.deed.user)
        }
        News::Test => format!("[{array}] test of notifications"),
    }
}

fn body(event: &Event) -> String {
    let (News::Opened(alert) | News::Closed(alert)) = &event.news else {
        return format!("{}\n", event.text());
    };
    let condition = &alert.condition;
    format!(
        "{}\n\nActual: {}\nExpected: {}\nState: {}\n\nAction: {}\n\nAlert {}, {} ({}).\n",
        alert.summary(),
        condition.actual,
        condition.expected,
        alert.state.name(),
        condition.code.advice(),
        alert.number,
        condition.code.name(),
        condition.code.number()
    )
}
