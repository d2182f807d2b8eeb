//! Peers without the secret: another controller, noise, a TLS client without a key, and a thousand
//! silent connections. None is accepted, and hosts at both controllers continue.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libiscsi::Session;

use super::nets::link;
use super::site::{LINK_PORT, Site};
use super::{BLOCK, connect};
use crate::command;
use crate::pair::READY;
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

/// The number of silent connections.
const IDLE: usize = 1000;
/// Longer than authentication may take.
const LATE: Duration = Duration::from_secs(6);
/// How long a host may wait for its login meanwhile.
const LOGIN: Duration = Duration::from_secs(5);

pub fn run(report: &mut Report, site: &mut Site, targets: &[Target; 2]) -> Result<()> {
    report.check(
        "1,000 silent connections are closed, and hosts can log in at both controllers",
        || idle(site, targets),
    );
    report.check("noise and an incomplete handshake are refused", || noise(site, targets));
    let name = "a client of TLS without a key is refused";
    match command::exists("openssl") {
        true => report.check(name, || without_key(site)),
        false => report.skip(name, "openssl is not installed"),
    }
    report.check("with another secret, no peer is accepted as the other controller", || {
        other_secret(site, targets)
    });
    report.check("refusals take only a few lines of log", || {
        let lines = |number| site.whole_log(number).matches(", was refused: ").count();
        let told = lines(0) + lines(1);
        ensure!((1..100).contains(&told), "{told} lines");
        Ok(format!("{told} lines"))
    });
    Ok(())
}

/// Returns the address at which the owner listens.
fn door(site: &Site) -> Result<String> {
    let [owner, _] = site.both()?;
    Ok(format!("{}:{LINK_PORT}", link(owner.number())))
}

/// Checks that hosts can log in at both portals, and read.
fn serves(targets: &[Target]) -> Result<()> {
    for target in targets {
        let begin = Instant::now();
        connect(target).with_context(|| format!("at {}", target.portal))?;
        ensure!(begin.elapsed() < LOGIN, "a login took {} ms", begin.elapsed().as_millis());
    }
    Ok(())
}

fn idle(site: &Site, targets: &[Target]) -> Result<String> {
    let (address, before) = (door(site)?, site.both()?);
    let mut session: Session = connect(&targets[before[1].number()])?;
    let all: Vec<TcpStream> =
        (0..IDLE).map(|_| TcpStream::connect(&address)).collect::<Result<_, _>>()?;
    serves(targets)?;
    let bytes = Random::new(3).bytes(1 << 20);
    let blocks = bytes.len() as u32 / BLOCK;
    session.write(4096, bytes.clone(), BLOCK)?;
    ensure!(session.read(4096, blocks, BLOCK)? == bytes, "other data than was written");
    let begin = Instant::now();
    for mut stream in all {
        stream.set_read_timeout(Some(LATE))?;
        let read = stream.read(&mut [0; 1]);
        ensure!(matches!(read, Ok(0)) || is_reset(&read), "one of them received data: {read:?}");
    }
    ensure!(begin.elapsed() < LATE, "they were not closed in time");
    super::stays(site, &before)?;
    Ok(String::new())
}

fn is_reset(read: &std::io::Result<usize>) -> bool {
    read.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
}

fn noise(site: &Site, targets: &[Target]) -> Result<String> {
    let address = door(site)?;
    let mut random = Random::new(11);
    // The beginning of a TLS ClientHello, and of what follows.
    let half = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &[7; 300]].concat();
    let line = b"holdfast-link 1 control ct1 1 0.1.0\n".to_vec();
    let mut all = vec![half, line, b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![0; 1 << 20]];
    all.extend((0..50).map(|_| random.bytes(1000)));
    for bytes in &all {
        let mut stream = TcpStream::connect(&address)?;
        // It may be closed before everything was sent.
        let _ = stream.write_all(bytes);
        stream.set_read_timeout(Some(LATE))?;
        let mut told = Vec::new();
        let read = stream.read_to_end(&mut told);
        ensure!(read.is_ok() || is_reset(&read), "not closed: {read:?}");
        // A TLS alert, at most.
        ensure!(told.len() <= 64, "it received {} bytes", told.len());
    }
    serves(targets)?;
    site.both()?;
    Ok(format!("{} of them", all.len()))
}

fn without_key(site: &Site) -> Result<String> {
    let address = door(site)?;
    let told = command::run(20, "openssl", &["s_client", "-connect", &address, "-tls1_3"])?;
    ensure!(told.code != 0, "openssl was accepted:\n{}", told.text);
    site.both()?;
    let alert = told.text.lines().find(|line| line.contains("alert"));
    Ok(alert
        .and_then(|line| line.rsplit(':').find(|it| it.contains("alert")))
        .unwrap_or_default()
        .into())
}

/// The controller without the pool is started with another secret, then with its own.
fn other_secret(site: &mut Site, targets: &[Target; 2]) -> Result<String> {
    let [owner, other] = site.both()?;
    site.make_secret("another")?;
    site.stop(other.number())?;
    site.start(other.number(), "another")?;
    let begin = Instant::now();
    while !site.whole_log(other.number()).contains("another secret") {
        ensure!(begin.elapsed() < READY, "it does not report that:\n{}", site.log(other.number()));
        thread::sleep(Duration::from_millis(50));
    }
    let (_, ready) = site.listed()?.context("no controller has the pool")?;
    ensure!(ready.len() == 1, "it was accepted as the other controller");
    connect(&targets[owner.number()])?;
    site.stop(other.number())?;
    site.start(other.number(), "secret")?;
    site.both()?;
    serves(targets)?;
    Ok(String::new())
}
