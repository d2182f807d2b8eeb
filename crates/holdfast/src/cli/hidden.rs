//! Passwords from the standard input: from a terminal without echo, otherwise a single line. They
//! are never arguments, which other users of the machine can read.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::Path;

use management::private::read_secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use super::failure::Failure;

/// The maximum number of bytes of a line: more than any password has.
const LINE_BYTES_MAX: usize = 1024;

/// A terminal without echo, until this is dropped.
struct Hidden(Termios);

impl Hidden {
    /// Disables echo. Interrupts arrive as bytes meanwhile: one that ended the program would leave
    /// the terminal without echo.
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Flush, &hidden)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Reads a new password: from a terminal twice.
pub fn new_password() -> Result<String, Failure> {
    if !io::stdin().is_terminal() {
        return Ok(read_secret(Path::new("-"))?);
    }
    let first = ask("New password: ")?;
    match first == ask("Retype the password: ")? {
        true => Ok(first),
        false => Err(Failure::Usage("the two passwords differ; nothing was changed".into())),
    }
}

fn ask(prompt: &str) -> Result<String, Failure> {
    let failed = |error: io::Error| Failure::Machine(format!("can't read the password: {error}"));
    let hidden = Hidden::begin().map_err(failed)?;
    let mut reported = io::stderr();
    let _ = write!(reported, "{prompt}").and_then(|()| reported.flush());
    let line = line(io::stdin().lock()).map_err(failed)?;
    drop(hidden);
    let _ = writeln!(reported);
    line.ok_or_else(|| Failure::Usage("interrupted; nothing was changed".into()))
}

/// Returns a line as it is typed; `None` if it was interrupted.
fn line(input: impl BufRead) -> io::Result<Option<String>> {
    let mut typed = Vec::new();
    for byte in input.bytes() {
        match byte? {
            b'\n' | b'\r' => break,
            // Control-C, or Control-D on an empty line.
            0x03 => return Ok(None),
            0x04 if typed.is_empty() => return Ok(None),
            // Backspace and Delete remove a character, which may have several bytes.
            0x08 | 0x7f => while typed.pop().is_some_and(|byte| byte & 0xc0 == 0x80) {},
            // Control-U removes the whole line.
            0x15 => typed.clear(),
            _ if typed.len() == LINE_BYTES_MAX => return Err(io::Error::other("it is too long")),
            byte => typed.push(byte),
        }
    }
    String::from_utf8(typed).map(Some).map_err(|_| io::Error::other("it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_as_it_is_typed() {
        for (typed, wanted) in [
            ("correct horse\nmore", Some("correct horse")),
            ("horsä\x7fes\r", Some("horses")),
            ("\x7fx\x08y\n", Some("y")),
            ("wrong\x15right\n", Some("right")),
            ("no end", Some("no end")),
            ("half\x03", None),
            ("\x04", None),
        ] {
            let read = line(typed.as_bytes()).unwrap();
            assert_eq!(read.as_deref(), wanted, "{typed:?}");
        }
        assert!(line("x".repeat(LINE_BYTES_MAX + 1).as_bytes()).is_err());
        assert!(line(&[0xff, b'\n'][..]).is_err());
    }
}
