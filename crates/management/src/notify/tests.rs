//! The queue, and each protocol, against a stand-in of its receiver.

mod kept;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use array::{AlertCode, AlertState, Condition, Told};
use hmac::{Hmac, KeyInit, Mac};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use sha2::Sha256;

use super::*;

fn alert(severity: Severity) -> array::Alert {
    array::Alert {
        number: 7,
        condition: Condition {
            code: AlertCode::HostOnePath,
            component: "esx1".into(),
            severity,
            actual: "1 portal".into(),
            expected: "2 portals".into(),
        },
        state: AlertState::Open,
        created_ms: 1000,
        updated_ms: 1000,
        closed_ms: None,
        flagged: true,
        dismissed: false,
        told: Told::Nothing,
        told_ms: None,
    }
}

fn opened(severity: Severity) -> Event {
    Event { news: News::Opened(alert(severity)), time_ms: 1000, array: "lab".into() }
}

fn destination(sender: impl Sender + 'static) -> Destination {
    let (name, severity) = ("ops".to_owned(), Severity::Warning);
    Destination { name, severity, audit: false, sender: Arc::new(sender) }
}

/// A receiver that fails this often before it accepts an event.
struct Moody {
    failures: AtomicUsize,
    taken: mpsc::Sender<String>,
}

impl Sender for Moody {
    fn send(&self, event: &Event, _: &Names) -> Result<(), String> {
        let fails = |left: usize| left.checked_sub(1);
        if self.failures.fetch_update(Ordering::SeqCst, Ordering::SeqCst, fails).is_ok() {
            return Err("not now".into());
        }
        self.taken.send(event.kind().to_owned()).map_err(|error| error.to_string())
    }
}

/// Returns name resolution without DNS servers set.
fn by_system() -> Arc<Names> {
    Names::new(Dns::default)
}

/// Starts a notifier without destinations in the pool.
fn start(destinations: Vec<Destination>, pause: Duration) -> io::Result<Notifier> {
    let engine = snmp::Engine::new(Vec::new(), Box::new(|| Err("it is not needed".into())));
    let source = Source { named: Box::new(Arc::default), engine };
    Notifier::with_pause(destinations, source, by_system(), pause)
}

fn moody(failures: usize) -> (Destination, mpsc::Receiver<String>) {
    let (taken, received) = mpsc::channel();
    (destination(Moody { failures: AtomicUsize::new(failures), taken }), received)
}

#[test]
fn failed_events_are_retried_and_unwanted_ones_not_sent() {
    let (destination, received) = moody(3);
    let notifier = start(vec![destination], Duration::from_millis(1)).unwrap();
    notifier.tell(&Arc::new(opened(Severity::Info)));
    let deed = array::Deed {
        time_ms: 1,
        user: "anna".into(),
        role: array::Role::ArrayAdmin,
        origin: "::1".into(),
        method: "POST".into(),
        path: "/v1/volumes".into(),
        names: "name=db1".into(),
    };
    let entry = array::AuditEntry { number: 1, deed, outcome: "done".into() };
    let news = News::Changed(entry);
    notifier.tell(&Arc::new(Event { news, time_ms: 1, array: "lab".into() }));
    notifier.tell(&Arc::new(opened(Severity::Critical)));
    assert_eq!(received.recv().unwrap(), "alert_opened");
    drop(notifier);
    assert!(received.recv().is_err(), "nothing else came");
}

#[test]
fn a_failure_is_reported_until_it_ends_and_given_up_finally() {
    let (destination, received) = moody(ATTEMPTS_MAX as usize);
    let notifier = start(vec![destination], Duration::ZERO).unwrap();
    notifier.tell(&Arc::new(opened(Severity::Warning)));
    let event = Event { news: News::Closed(alert(Severity::Warning)), ..opened(Severity::Warning) };
    notifier.tell(&Arc::new(event));
    assert_eq!(received.recv().unwrap(), "alert_closed", "the first one was given up");
    while notifier.troubles() != [("ops".to_owned(), None)] {
        thread::yield_now();
    }
}

#[test]
fn a_queue_is_bounded_and_shutdown_does_not_wait_for_failures() {
    let (destination, received) = moody(usize::MAX);
    let notifier = start(vec![destination], Duration::from_secs(3600)).unwrap();
    notifier.tell(&Arc::new(opened(Severity::Warning)));
    while notifier.troubles()[0].1.is_none() {
        thread::yield_now();
    }
    for _ in 0..QUEUE_MAX + 10 {
        notifier.tell(&Arc::new(opened(Severity::Warning)));
    }
    {
        let state = notifier.fixed[0].state.lock();
        assert_eq!((state.waiting.len(), state.dropped), (QUEUE_MAX, 10));
    }
    assert_eq!(notifier.test(&opened(Severity::Info), |_| true)[0].1, Err("not now".into()));
    drop(notifier);
    assert!(received.try_recv().is_err());
}

#[test]
fn syslog_is_sent_by_datagram_and_by_stream() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let syslog = |address: String, transport| Syslog { address, transport, hostname: "h".into() };
    syslog(address, Transport::Udp).send(&opened(Severity::Critical), &by_system()).unwrap();
    let mut bytes = [0; 4096];
    let length = socket.recv(&mut bytes).unwrap();
    let text = String::from_utf8(bytes[..length].to_vec()).unwrap();
    assert!(text.starts_with("<26>1 1970-01-01T00:00:01.000Z h holdfast "), "{text}");
    assert!(text.contains("lab: alert 7 host-one-path (critical) is open"), "{text}");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let receiver = thread::spawn(move || {
        let mut text = String::new();
        listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
        text
    });
    syslog(address.clone(), Transport::Tcp).send(&opened(Severity::Info), &by_system()).unwrap();
    let text = receiver.join().unwrap();
    let (length, message) = text.split_once(' ').unwrap();
    assert_eq!(length.parse::<usize>().unwrap(), message.len());
    assert!(message.starts_with("<30>1 "), "{message}");
    let refused = syslog(address, Transport::Tcp).send(&opened(Severity::Info), &by_system());
    assert!(refused.is_err(), "the address still listens");
}

/// Returns a server's certificate, and the file of its authority.
fn identity() -> (Arc<ServerConfig>, tempfile::NamedTempFile) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".into()];
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(cert.pem().as_bytes()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    (Arc::new(config), file)
}

type Secured = StreamOwned<ServerConnection, TcpStream>;

fn accept(listener: &TcpListener, config: &Arc<ServerConfig>) -> Secured {
    let stream = listener.accept().unwrap().0;
    StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream)
}

#[test]
fn syslog_is_sent_encrypted_to_a_server_with_a_trusted_certificate() {
    let (config, file) = identity();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("localhost:{}", listener.local_addr().unwrap().port());
    let receiver = thread::spawn(move || {
        let mut text = String::new();
        let mut slow = accept(&listener, &config);
        slow.conn.complete_io(&mut slow.sock).unwrap();
        // TLS 1.3 tickets are sent now, and the sender may be gone before the text is read: the
        // text must not be lost with them.
        thread::sleep(Duration::from_millis(50));
        slow.read_to_string(&mut text).unwrap();
        drop(slow);
        // The second one does not trust this server, and ends in the handshake.
        assert!(accept(&listener, &config).read(&mut [0]).is_err());
        text
    });
    let transport = Transport::Tls(client_config(Some(file.path())).unwrap());
    let syslog = Syslog { address: address.clone(), transport, hostname: "h".into() };
    syslog.send(&opened(Severity::Warning), &by_system()).unwrap();
    let (_, other) = identity();
    let transport = Transport::Tls(client_config(Some(other.path())).unwrap());
    let refused = Syslog { transport, ..syslog }.send(&opened(Severity::Warning), &by_system());
    assert!(refused.unwrap_err().starts_with(&address));
    assert!(receiver.join().unwrap().contains(" <28>1 "));
}

/// Reads the head of a request and its body.
fn read_request(stream: &mut impl Read) -> (Vec<String>, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_ascii_lowercase()),
        }
    }
    let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    (head, body)
}

#[test]
fn webhooks_are_signed_and_a_refusal_is_reported() {
    let (config, file) = identity();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let receiver = thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in ["204 No Content", "500 Internal Server Error"] {
            let mut stream = accept(&listener, &config);
            requests.push(read_request(&mut stream));
            write!(stream, "HTTP/1.1 {answer}\r\ncontent-length: 0\r\n\r\n").unwrap();
            stream.flush().unwrap();
        }
        requests
    });
    let webhook = Webhook {
        url: format!("https://localhost:{port}/in?token=x").parse().unwrap(),
        tls: Some(client_config(Some(file.path())).unwrap()),
        secret: Some("correct horse battery".into()),
    };
    webhook.send(&opened(Severity::Warning), &by_system()).unwrap();
    let refused = webhook.send(&opened(Severity::Warning), &by_system()).unwrap_err();
    assert!(refused.contains("500") && !refused.contains("token"), "{refused}");
    let requests = receiver.join().unwrap();
    let (head, body) = &requests[0];
    assert_eq!(head[0], "post /in?token=x http/1.1");
    let field = |name: &str| {
        let prefix = format!("{name}: ");
        head.iter().find_map(|line| line.strip_prefix(prefix.as_str())).unwrap()
    };
    assert_eq!(
        (field("host"), field("x-holdfast-event")),
        (format!("localhost:{port}").as_str(), "alert_opened")
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(b"correct horse battery").unwrap();
    mac.update(format!("{}.", field("x-holdfast-timestamp")).as_bytes());
    mac.update(body);
    let hex: String = mac.finalize().into_bytes().iter().map(|b| format!("{b:02x}")).collect();
    assert_eq!(field("x-holdfast-signature"), format!("sha256={hex}"));
    let reported: serde_json::Value = serde_json::from_slice(body).unwrap();
    assert_eq!((&reported["v"], &reported["alert"]["code"]), (&1.into(), &401.into()));
    assert_eq!((&reported["array"], &reported["event"]), (&"lab".into(), &"alert_opened".into()));
}

/// Speaks SMTP as far as one mail needs it, and returns what was received.
fn take_mail(stream: TcpStream, tls: Option<Arc<ServerConfig>>) -> String {
    fn converse(stream: impl Read + Write, greets: bool, offers: &str) -> (String, bool) {
        let mut stream = BufReader::new(stream);
        let (mut reported, mut in_data) = (String::new(), false);
        if greets {
            stream.get_mut().write_all(b"220 stand-in\r\n").unwrap();
        }
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).unwrap_or(0) == 0 {
                return (reported, false);
            }
            reported.push_str(&line);
            let answer = match line.trim_end() {
                "." if in_data => {
                    in_data = false;
                    "250 taken".to_owned()
                }
                _ if in_data => continue,
                line if line.starts_with("EHLO") => format!("250-stand-in\r\n{offers}250 8BITMIME"),
                "DATA" => {
                    in_data = true;
                    "354 continue".into()
                }
                "STARTTLS" => "220 continue".into(),
                line if line.starts_with("AUTH") => "235 welcome".into(),
                "QUIT" => "221 bye".into(),
                _ => "250 well".into(),
            };
            stream.get_mut().write_all(format!("{answer}\r\n").as_bytes()).unwrap();
            stream.get_mut().flush().unwrap();
            match line.trim_end() {
                "STARTTLS" => return (reported, true),
                "QUIT" => return (reported, false),
                _ => {}
            }
        }
    }
    let Some(config) = tls else { return converse(stream, true, "").0 };
    let (reported, is_secured) = converse(stream.try_clone().unwrap(), true, "250-STARTTLS\r\n");
    assert!(is_secured, "nothing but STARTTLS is said in the clear: {reported}");
    let stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    converse(stream, false, "250-AUTH PLAIN\r\n").0
}

fn mail(port: u16, security: MailSecurity) -> Mail {
    Mail {
        host: "localhost".into(),
        port,
        security,
        ca_file: None,
        credentials: None,
        from: "array@example.com".parse().unwrap(),
        to: vec!["anna@example.com".parse().unwrap(), "otto@example.com".parse().unwrap()],
        subject_prefix: String::new(),
        body_prefix: String::new(),
    }
}

#[test]
fn mail_is_sent_in_the_clear_on_request() {
    let listener = TcpListener::bind("localhost:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let receiver = thread::spawn(move || take_mail(listener.accept().unwrap().0, None));
    mail(port, MailSecurity::None).send(&opened(Severity::Warning), &by_system()).unwrap();
    let reported = receiver.join().unwrap();
    for part in [
        "MAIL FROM:<array@example.com>",
        "RCPT TO:<anna@example.com>",
        "RCPT TO:<otto@example.com>",
        "Subject: [lab] warning: Host esx1 has only one path.",
        "Expected: 2 portals",
    ] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    assert!(mail(port, MailSecurity::None).send(&opened(Severity::Warning), &by_system()).is_err());
}

#[test]
fn mail_is_sent_encrypted_with_a_password() {
    let (config, file) = identity();
    let listener = TcpListener::bind("localhost:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let receiver = thread::spawn(move || take_mail(listener.accept().unwrap().0, Some(config)));
    let mail = Mail {
        ca_file: Some(file.path().to_owned()),
        credentials: Some(("array".into(), "horse".into())),
        ..mail(port, MailSecurity::StartTls)
    };
    mail.send(&Event { news: News::Test, ..opened(Severity::Info) }, &by_system()).unwrap();
    let reported = receiver.join().unwrap();
    assert!(
        reported.contains("AUTH PLAIN") && reported.contains("[lab] test of notifications"),
        "{reported}"
    );
}
