//! Connections that send a login request at one byte per second.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::attacks::Field;
use crate::initiator::{Initiator, login_request};

/// The number of connections.
const CONNECTIONS: usize = 20;
/// When the target must have closed all: a login takes 15 s at most.
const ENDED: Duration = Duration::from_secs(40);

/// Continues until the target has closed all of them.
pub fn drip(field: &Field) -> Result<String> {
    let target = field.target();
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = Initiator::connect(target)?.stream().try_clone()?;
        stream.set_nonblocking(true)?;
        open.push(stream);
    }
    let request = login_request(target, field.isid()).bytes();
    let begin = Instant::now();
    for byte in &request {
        open.retain_mut(|stream| is_open(stream, *byte));
        if open.is_empty() {
            return Ok(format!("{CONNECTIONS} of them, after {} s", begin.elapsed().as_secs()));
        }
        let left = open.len();
        ensure!(begin.elapsed() < ENDED, "{left} of {CONNECTIONS} are still open");
        std::thread::sleep(Duration::from_secs(1));
    }
    None.context("the whole request was received")
}

/// Sends one byte. Returns whether the target has neither sent anything nor closed.
fn is_open(stream: &mut TcpStream, byte: u8) -> bool {
    let taken = stream.write(&[byte]).is_ok();
    let quiet = stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    taken && quiet
}
