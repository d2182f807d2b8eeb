//! Destinations of the pool: settings take effect at once, and queued events are not lost.

use array::{Array, DnsChange, NameServer, RelayChange, SettingsChange, SyslogUri};

use super::*;

/// Returns an array, and a notifier with the destinations of its pool.
fn world(pause: Duration) -> (tempfile::TempDir, Arc<Array>, Notifier) {
    let directory = tempfile::tempdir().unwrap();
    let disk = sys::FileDisk::create(&directory.path().join("pool"), 512 << 20).unwrap();
    store::Store::create(&disk, &[7; 64]).unwrap();
    let store = store::Store::open(Arc::new(disk), store::OpenOptions::default()).unwrap();
    let array = Arc::new(Array::open(Arc::new(store), false).unwrap());
    let source = Source::of(&array);
    let notifier = Notifier::with_pause(Vec::new(), source, Names::of(&array), pause).unwrap();
    (directory, array, notifier)
}

fn name(of: &str) -> Vec<String> {
    vec![of.to_owned()]
}

fn uri(scheme: &str, port: u16) -> SyslogUri {
    SyslogUri::new(&format!("{scheme}://127.0.0.1:{port}")).unwrap()
}

fn test_event() -> Event {
    Event { news: News::Test, ..opened(Severity::Info) }
}

fn received(socket: &UdpSocket) -> String {
    let mut bytes = [0; 4096];
    let length = socket.recv(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

#[test]
fn a_syslog_server_gets_messages_from_its_creation_to_its_removal() {
    let (_directory, array, notifier) = world(Duration::from_secs(3600));
    assert!(notifier.is_empty());
    let sockets = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let ports = [0, 1].map(|at: usize| sockets[at].local_addr().unwrap().port());
    array.create_syslog_servers(&name("log"), &uri("udp", ports[0])).unwrap();
    assert_eq!(notifier.troubles(), [("syslog-servers/log".to_owned(), None)]);
    // All severities, and changes.
    notifier.tell(&Arc::new(opened(Severity::Info)));
    assert!(received(&sockets[0]).contains("host-one-path (info) is open"));
    array.move_syslog_servers(&name("log"), &uri("udp", ports[1])).unwrap();
    notifier.tell(&Arc::new(opened(Severity::Critical)));
    assert!(received(&sockets[1]).contains("host-one-path (critical) is open"));
    assert_eq!(notifier.test(&test_event(), |_| false), []);
    array.delete_syslog_servers(&name("log")).unwrap();
    assert!(notifier.is_empty());
    notifier.tell(&Arc::new(opened(Severity::Critical)));
    sockets[1].set_nonblocking(true).unwrap();
    assert!(sockets[1].recv(&mut [0; 16]).is_err(), "nothing more comes");
}

#[test]
fn queued_events_go_to_the_new_address_at_once() {
    let (_directory, array, notifier) = world(Duration::from_secs(3600));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    array.create_syslog_servers(&name("log"), &uri("tcp", nobody)).unwrap();
    notifier.tell(&Arc::new(opened(Severity::Critical)));
    while notifier.troubles()[0].1.is_none() {
        thread::yield_now();
    }
    let there = uri("tcp", listener.local_addr().unwrap().port());
    array.move_syslog_servers(&name("log"), &there).unwrap();
    assert_eq!(notifier.workers().len(), 1, "a look is what brings the change");
    let mut text = String::new();
    listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
    assert!(text.contains("host-one-path (critical) is open"), "{text}");
}

#[test]
fn enabled_watchers_receive_mail_through_the_relay() {
    let (_directory, array, notifier) = world(Duration::from_secs(3600));
    array.create_watchers(&name("anna@example.com"), true).unwrap();
    assert!(notifier.is_empty(), "there is no relay");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = RelayChange {
        host: Some(listener.local_addr().unwrap().to_string()),
        sender_domain: Some("example.com".into()),
        subject_prefix: Some("LAB".into()),
        body_prefix: Some("From the lab:".into()),
        ..RelayChange::default()
    };
    array.change_relay(relay).unwrap();
    notifier.tell(&Arc::new(opened(Severity::Info)));
    notifier.tell(&Arc::new(opened(Severity::Warning)));
    let reported = take_mail(listener.accept().unwrap().0, None);
    for part in [
        "MAIL FROM:<lab@example.com>",
        "RCPT TO:<anna@example.com>",
        "Subject: LAB [lab] warning: Host esx1 has only one path.",
        "From the lab:\r\n\r\nHost esx1",
    ] {
        assert!(reported.contains(part), "{part}: {reported}");
    }
    let sender_username = Some("array".into());
    array.change_relay(RelayChange { sender_username, ..RelayChange::default() }).unwrap();
    let receiver = thread::spawn(move || take_mail(listener.accept().unwrap().0, None));
    let outcome = notifier.test(&test_event(), |name| name == "alert-watchers/anna@example.com");
    assert_eq!(outcome, [("alert-watchers/anna@example.com".to_owned(), Ok(()))]);
    let reported = receiver.join().unwrap();
    assert!(
        reported.contains("MAIL FROM:<array@example.com>") && reported.contains("test of"),
        "{reported}"
    );
    array.enable_watchers(&name("anna@example.com"), false).unwrap();
    assert!(notifier.is_empty());
}

#[test]
fn queued_events_are_retried_at_once_after_a_change_of_dns() {
    let (_directory, array, notifier) = world(Duration::from_secs(3600));
    // One accepts queries without a response, the other does not exist.
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let nobody = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let set = |server: &str| {
        let servers = Some(vec![NameServer::new(server).unwrap()]);
        let dns = DnsChange { servers, domain: None };
        array.change_settings(SettingsChange { dns, ..SettingsChange::default() }).unwrap();
    };
    let told_of = |server: &str| {
        let reported =
            |trouble: &Option<String>| trouble.as_ref().is_some_and(|t| t.contains(server));
        while !reported(&notifier.troubles()[0].1) {
            thread::yield_now();
        }
    };
    let first = silent.local_addr().unwrap().to_string();
    set(&first);
    let uri = SyslogUri::new("tcp://log.example.com:514").unwrap();
    array.create_syslog_servers(&name("log"), &uri).unwrap();
    notifier.tell(&Arc::new(opened(Severity::Critical)));
    told_of(&first);
    silent.set_nonblocking(true).unwrap();
    assert!(silent.recv(&mut [0; 512]).is_ok(), "it was asked");
    // A check applies the change.
    set(&nobody);
    told_of(&nobody);
}
