//! The log of a serving array: lines on the standard error.
//!
//! A failure of the log does not stop the array. A line that can't be written (a full file system,
//! a pipe without reader) is lost, and the next line reports how many were lost.

use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use super::config::LogLevel;

/// The number of lines lost since the last written one.
static LOST: AtomicU64 = AtomicU64::new(0);

/// Starts to log events of `level` or above, as a line each.
pub fn start(level: LogLevel) {
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::from(level))
        .with_writer(|| Lines { out: io::stderr(), lost: &LOST })
        // Without this, it reports its own write errors with `eprintln!`, which panics if that
        // fails too.
        .log_internal_errors(false)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false);
    // A subscriber exists already only in a test that runs several arrays.
    let _ = subscriber.try_init();
}

/// Writes whole lines, and never fails.
struct Lines<'a, W> {
    out: W,
    lost: &'a AtomicU64,
}

impl<W: Write> Write for Lines<'_, W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let reported = match lost {
            0 => Ok(()),
            lost => writeln!(self.out, "{lost} lines of the log before this one are lost"),
        };
        if reported.and_then(|()| self.out.write_all(line)).is_err() {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let _ = self.out.flush();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A medium that accepts no bytes while it is full.
    struct Medium<'a> {
        is_full: bool,
        taken: &'a mut Vec<u8>,
    }

    impl Write for Medium<'_> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.is_full {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.taken.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            if self.is_full { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }
    }

    #[test]
    fn lines_that_cant_be_written_are_counted() {
        let (lost, mut taken) = (AtomicU64::new(0), Vec::new());
        for (is_full, line) in [(false, "a\n"), (true, "b\n"), (true, "c\n"), (false, "d\n")] {
            let mut lines = Lines { out: Medium { is_full, taken: &mut taken }, lost: &lost };
            lines.write_all(line.as_bytes()).unwrap();
            lines.flush().unwrap();
        }
        let reported = "a\n2 lines of the log before this one are lost\nd\n";
        assert_eq!(String::from_utf8(taken).unwrap(), reported);
        assert_eq!(lost.into_inner(), 0);
    }
}
