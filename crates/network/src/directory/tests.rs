//! Tests against a server implemented here: it has a few entries, or sends whatever a test wants.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use array::{DirectoryChange, KeptPassword};

use super::ber::{ENUMERATED, Elements, INTEGER, OCTETS, SEQUENCE, SET, element, elements, number};
use super::*;

/// An entry: its DN, its password, and its attributes.
type Kept = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const ARRAY: &str = "cn=array,dc=x";
const ENTRIES: &[Kept] = &[
    ("dc=x", "", &[("objectClass", "domain")]),
    (ARRAY, "horse", &[("objectClass", "device")]),
    ("uid=anna,ou=people,dc=x", "battery", &[("uid", "anna"), ("objectClass", "person")]),
    ("uid=otto,ou=people,dc=x", "staple", &[("uid", "otto"), ("objectClass", "person")]),
    ("uid=nora,ou=people,dc=x", "staple", &[("uid", "nora"), ("objectClass", "person")]),
    ("uid=twin,ou=a,dc=x", "staple", &[("uid", "twin")]),
    ("uid=twin,ou=b,dc=x", "staple", &[("uid", "twin")]),
    ("cn=admins,ou=groups,dc=x", "", &[("cn", "admins"), ("member", "uid=anna,ou=people,dc=x")]),
    ("cn=ops,ou=groups,dc=x", "", &[("cn", "ops"), ("memberUid", "otto"), ("memberUid", "anna")]),
];

fn octets(text: &str) -> Vec<u8> {
    element(OCTETS, text.as_bytes())
}

fn outcome(tag: u8, code: u32) -> Vec<u8> {
    elements(tag, &[number(ENUMERATED, code), octets(""), octets("so it is")])
}

fn fits(filter: (u8, &[u8]), entry: &Kept) -> bool {
    let (tag, mut content) = (filter.0, Elements(filter.1));
    let mut parts = || std::iter::from_fn(|| content.next().unwrap()).collect::<Vec<_>>();
    match tag {
        0xa0 => parts().into_iter().all(|part| fits(part, entry)),
        0xa1 => parts().into_iter().any(|part| fits(part, entry)),
        0xa3 => {
            let (name, value) = (content.text().unwrap(), content.text().unwrap());
            let mut all = entry.2.iter();
            all.any(|(n, v)| n.eq_ignore_ascii_case(&name) && v.eq_ignore_ascii_case(&value))
        }
        0x87 => true,
        tag => panic!("{tag}"),
    }
}

fn found(search: &[u8]) -> Vec<Vec<u8>> {
    let mut search = Elements(search);
    let (base, scope) = (search.text().unwrap(), search.number(ENUMERATED).unwrap());
    assert_eq!(search.number(ENUMERATED), Ok(0), "aliases are not followed");
    let most = search.number(INTEGER).unwrap();
    assert!(search.number(INTEGER).unwrap() <= 5, "the server has as long as the array");
    search.next().unwrap();
    let filter = search.next().unwrap().unwrap();
    let is_below = |entry: &&Kept| entry.0 == base || scope == 2 && entry.0.ends_with(&base);
    let mut answers = Vec::new();
    for (dn, _, attributes) in ENTRIES.iter().filter(is_below).filter(|it| fits(filter, it)) {
        let attribute = |(name, value): &(&str, &str)| {
            elements(SEQUENCE, &[octets(name), elements(SET, &[octets(value)])])
        };
        let all: Vec<_> = attributes.iter().map(attribute).collect();
        answers.push(elements(0x64, &[octets(dn), elements(SEQUENCE, &all)]));
    }
    answers.push(element(0x73, &octets("ldap://elsewhere.example.com/")));
    let code = if answers.len() as u32 > most + 1 { 4 } else { 0 };
    answers.push(outcome(0x65, code));
    answers
}

/// Responds as a directory does; returns the DNs of all binds.
fn converse(mut stream: TcpStream) -> Option<()> {
    loop {
        let mut first = [0; 2];
        stream.read_exact(&mut first).ok()?;
        let mut message = first.to_vec();
        while ber::length(&message).ok()?.is_none() {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            message.extend(byte);
        }
        let read = message.len();
        message.resize(ber::length(&message).ok()??, 0);
        stream.read_exact(&mut message[read..]).ok()?;
        let mut parts = Elements(Elements(&message).expect(SEQUENCE).ok()?);
        let id = parts.number(INTEGER).ok()?;
        let (tag, content) = parts.next().ok()??;
        let answers = match tag {
            0x60 => {
                let mut bind = Elements(content);
                bind.number(INTEGER).ok()?;
                let (dn, password) = (bind.text().ok()?, bind.expect(0x80).ok()?);
                // As real servers do: an empty password is an accepted anonymous bind.
                let is_good = password.is_empty()
                    || ENTRIES.iter().any(|it| it.0 == dn && it.1.as_bytes() == password);
                vec![outcome(0x61, if is_good { 0 } else { 49 })]
            }
            0x63 => found(content),
            _ => return None,
        };
        for answer in answers {
            stream.write_all(&elements(SEQUENCE, &[number(INTEGER, id), answer])).ok()?;
        }
    }
}

/// Starts a server that calls `with` for each connection. Returns its URI.
fn serving(mut with: impl FnMut(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("ldap://{}", listener.local_addr().unwrap());
    thread::spawn(move || listener.incoming().flatten().for_each(&mut with));
    uri
}

fn directory() -> String {
    serving(|stream| drop(thread::spawn(move || converse(stream))))
}

/// Starts a server that sends nothing; the listener must be kept.
fn silent() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("ldap://{}", listener.local_addr().unwrap());
    (listener, uri)
}

struct World {
    _directory: tempfile::TempDir,
    array: Arc<Array>,
    directories: Arc<Directories>,
}

impl World {
    fn new(uris: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let disk = sys::FileDisk::create(&directory.path().join("pool"), 512 << 20).unwrap();
        store::Store::create(&disk, &[7; 64]).unwrap();
        let store = store::Store::open(Arc::new(disk), store::OpenOptions::default()).unwrap();
        let array = Arc::new(Array::open(Arc::new(store), false).unwrap());
        let directories = Directories::new(&array, Names::of(&array));
        let world = Self { _directory: directory, array, directories };
        let in_groups = |role, name: &str| (role, Some(name.to_owned()), Some("ou=groups".into()));
        world.change(DirectoryChange {
            is_enabled: Some(true),
            uris: Some(uris.iter().map(|uri| DirectoryUri::new(uri).unwrap()).collect()),
            base_dn: Some("dc=x".into()),
            bind_user: Some(ARRAY.into()),
            bind_password: Some(KeptPassword::new("horse")),
            groups: vec![
                in_groups(Role::ReadOnly, "ops"),
                (Role::ArrayAdmin, Some("cn=admins,ou=groups".into()), None),
            ],
            ..DirectoryChange::default()
        });
        world
    }

    fn change(&self, change: DirectoryChange) {
        self.array.change_directory(change).unwrap();
    }

    fn log_in(&self, user: &str, password: &str) -> DirectoryLogin {
        let (tell, told) = mpsc::channel();
        self.directories.log_in(user.into(), password.into(), move |login| {
            tell.send(login).unwrap();
        });
        told.recv().unwrap()
    }
}

fn known(name: &str, role: Role) -> DirectoryLogin {
    DirectoryLogin::Known { name: name.into(), role }
}

#[test]
fn users_have_the_strongest_role_of_their_groups_or_are_refused() {
    let world = World::new(&[&directory()]);
    assert_eq!(world.log_in("anna", "battery"), known("anna", Role::ArrayAdmin));
    assert_eq!(world.log_in("ANNA", "battery"), known("anna", Role::ArrayAdmin));
    assert_eq!(world.log_in("otto", "staple"), known("otto", Role::ReadOnly));
    let long = "x".repeat(NAME_CHARS);
    for (user, password, why) in [
        ("anna", "staple", "the password is wrong"),
        ("nora", "staple", "no group of the user has a role"),
        ("nora", "wrong", "the password is wrong"),
        ("nobody", "staple", "no user, or several, have this name"),
        ("twin", "staple", "no user, or several, have this name"),
        ("*", "battery", "no user, or several, have this name"),
        ("*)(uid=*", "battery", "no user, or several, have this name"),
        ("anna)(|(uid=*", "battery", "no user, or several, have this name"),
        ("anna", "", "there is no such name, or no password"),
        ("", "battery", "there is no such name, or no password"),
        ("anna\0", "battery", "there is no such name, or no password"),
        (&long, "battery", "there is no such name, or no password"),
    ] {
        assert_eq!(world.log_in(user, password), DirectoryLogin::Refused(why), "{user}");
    }
    // The attribute and the class are those of the settings.
    let of = |login: &str, class: &str| DirectoryChange {
        user_login: Some(login.into()),
        user_class: Some(class.into()),
        ..DirectoryChange::default()
    };
    world.change(of("uid", "person"));
    assert_eq!(world.log_in("otto", "staple"), known("otto", Role::ReadOnly));
    for other in [of("sAMAccountName", ""), of("uid", "device")] {
        world.change(other);
        assert!(matches!(world.log_in("otto", "staple"), DirectoryLogin::Refused(_)));
    }
    world.change(DirectoryChange { is_enabled: Some(false), ..of("uid", "person") });
    assert!(matches!(world.log_in("otto", "staple"), DirectoryLogin::Refused(_)));
}

/// Longer than any accepted name.
const NAME_CHARS: usize = 65;

#[test]
fn the_next_server_is_asked_and_silent_ones_end_in_time() {
    let (_kept, silent) = silent();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let world = World::new(&[&silent, &format!("ldap://{nobody}"), &directory()]);
    assert_eq!(world.log_in("otto", "staple"), known("otto", Role::ReadOnly));
    let world = World::new(&[&silent]);
    let began = Instant::now();
    let login = world.log_in("otto", "staple");
    let DirectoryLogin::Unreachable(why) = login else { panic!("{login:?}") };
    assert!(why.contains(&silent) && why.contains("it does not answer in time"), "{why}");
    let took = began.elapsed();
    assert!(took >= DIRECTORY_TIMEOUT && took < DIRECTORY_TIMEOUT * 2, "{took:?}");
}

#[test]
fn a_server_that_says_anything_is_not_believed() {
    let bound = elements(SEQUENCE, &[number(INTEGER, 1), outcome(0x61, 0)]);
    let other = elements(SEQUENCE, &[number(INTEGER, 9), outcome(0x61, 0)]);
    let gone = elements(SEQUENCE, &[number(INTEGER, 0), outcome(0x78, 52)]);
    let endless = [bound.clone(), vec![0x30, 0x84, 0x7f, 0xff, 0xff, 0xff]].concat();
    let dripping = bound.repeat(100);
    let text = b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec();
    for (said, why) in [
        (other, "what it answers is no LDAP"),
        (gone, "it refuses to go on: so it is (LDAP result 52)"),
        (endless, "it answers with more than 65536 bytes"),
        (dripping, "what it answers is no LDAP"),
        (text, ""),
        (vec![0xff; 64], "what it answers is no LDAP"),
        (Vec::new(), ""),
    ] {
        let uri = serving(move |mut stream| {
            let _ = stream.read(&mut [0; 256]);
            let _ = stream.write_all(&said);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        let login = World::new(&[&uri]).log_in("otto", "staple");
        let DirectoryLogin::Unreachable(told) = login else { panic!("{login:?}") };
        assert!(told.contains(why), "{told}: {why}");
    }
}

#[test]
fn a_test_says_what_is_wrong_and_a_check_for_how_long() {
    let (_kept, silent) = silent();
    let good = directory();
    let world = World::new(&[&good, &silent]);
    let tested = world.directories.test();
    let all: Vec<_> = tested.iter().map(|one| one.uri.as_str()).collect();
    assert_eq!(all, [good.as_str(), silent.as_str()]);
    let found = tested[0].result.as_ref().unwrap();
    assert_eq!(found, "It answers, and has the groups of array_admin, readonly.");
    assert!(tested[1].result.as_ref().unwrap_err().contains("in time"));
    // One server that responds is sufficient.
    let now = Instant::now();
    world.directories.turn(now);
    assert_eq!(world.directories.trouble(), None);
    let password = |text: &str| DirectoryChange {
        bind_password: Some(KeptPassword::new(text)),
        uris: Some(vec![DirectoryUri::new(&good).unwrap()]),
        ..DirectoryChange::default()
    };
    world.change(password("wrong"));
    world.directories.turn(now);
    let (first, why) = world.directories.trouble().unwrap();
    assert!(why.contains("it refuses the user to bind as"), "{why}");
    assert!(world.directories.test()[0].result.as_ref().unwrap_err().contains("to bind as"));
    world.directories.turn(now + CHECK_PAUSE);
    assert!(world.directories.trouble().unwrap().0 > first, "it began with the first");
    world.change(password("horse"));
    world.directories.turn(now);
    assert_eq!(world.directories.trouble(), None);
    let groups = vec![(Role::StorageAdmin, Some("none".into()), None)];
    world.change(DirectoryChange { groups, ..DirectoryChange::default() });
    let tested = world.directories.test();
    assert_eq!(tested[0].result, Err("the group of storage_admin is not there".into()));
}

/// A remote server, or one given by name, gets no password in the clear.
#[test]
fn tls_is_begun_but_for_this_machine_without_a_certificate() {
    let (tell, told) = mpsc::channel();
    let uri = serving(move |mut stream| {
        let mut first = [0; 64];
        let read = stream.read(&mut first).unwrap();
        tell.send(first[..read].to_vec()).unwrap();
    });
    let world = World::new(&[&uri]);
    world.log_in("otto", "staple");
    assert!(told.recv().unwrap().windows(5).any(|part| part == b"horse"), "it is this machine");
    let certificate = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----";
    let ca_certificate = Some(certificate.into());
    world.change(DirectoryChange { ca_certificate, ..DirectoryChange::default() });
    world.log_in("otto", "staple");
    let asked = told.recv().unwrap();
    assert!(asked.windows(22).any(|part| part == b"1.3.6.1.4.1.1466.20037"), "StartTLS");
    assert!(!asked.windows(5).any(|part| part == b"horse"));
}
