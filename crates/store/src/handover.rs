//! What a process that gives a pool up passes on to the one that opens it next.

use std::fmt;
use std::str::FromStr;

use format::Seal;
use format::log::LogPosition;

/// Where the log of a pool ended when a process gave the pool up, having written everything, for
/// another process that opens it at once. As text it is `epoch 3 lsn 71 at 5:812 next 6 after` and
/// the seal of the last record.
///
/// It saves only the search for traces of a lost record. A record that is found at the end is
/// applied, and a pool that has had another epoch since is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEnd {
    pub(crate) epoch: u64,
    pub(crate) position: LogPosition,
}

impl fmt::Display for LogEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, position } = self;
        let LogPosition { segment, block, next_segment, lsn, previous: Seal(seal) } = position;
        let seal = u128::from_be_bytes(*seal);
        write!(
            f,
            "epoch {epoch} lsn {lsn} at {segment}:{block} next {next_segment} after {seal:032x}"
        )
    }
}

/// A text that is not the end of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not the end of a log")]
pub struct NoLogEnd;

impl FromStr for LogEnd {
    type Err = NoLogEnd;

    fn from_str(text: &str) -> Result<Self, NoLogEnd> {
        let words: Vec<&str> = text.split(' ').collect();
        let ["epoch", epoch, "lsn", lsn, "at", at, "next", next, "after", seal] = words[..] else {
            return Err(NoLogEnd);
        };
        let (segment, block) = at.split_once(':').ok_or(NoLogEnd)?;
        let seal = u128::from_str_radix(seal, 16).map_err(|_| NoLogEnd)?;
        let position = LogPosition {
            segment: number(segment)?,
            block: number(block)?,
            next_segment: number(next)?,
            lsn: number(lsn)?,
            previous: Seal(seal.to_be_bytes()),
        };
        Ok(Self { epoch: number(epoch)?, position })
    }
}

fn number<N: FromStr>(text: &str) -> Result<N, NoLogEnd> {
    text.parse().map_err(|_| NoLogEnd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_is_read_as_written() {
        let previous = Seal([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255]);
        let position = LogPosition { segment: 5, block: 812, next_segment: 6, lsn: 71, previous };
        let end = LogEnd { epoch: 3, position };
        assert_eq!(end.to_string().parse(), Ok(end));
        let text = end.to_string();
        for cut in 0..text.len() {
            assert!(text[..cut].parse() != Ok(end), "cut after {cut} characters");
        }
        for text in
            ["", "epoch", "epoch -1 lsn 71 at 5:812 next 6 after 00", &text.replace(':', " ")]
        {
            assert_eq!(text.parse::<LogEnd>(), Err(NoLogEnd), "{text}");
        }
    }
}
