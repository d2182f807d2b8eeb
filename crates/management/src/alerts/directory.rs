//! Whether the directory service can be asked.

use std::time::Duration;

use array::{AlertCode, Seen, Severity};

use super::judge::holds;

/// What the alert is about.
const DIRECTORY: &str = "directory";
/// So long may all servers be out of reach: for two of the looks that are made each minute.
const UNREACHABLE_MAX: Duration = Duration::from_secs(120);

/// What holds: for how long no server could be asked, and why, if so.
pub(super) fn judge(trouble: Option<&(Duration, String)>) -> Option<Seen> {
    let (since, why) = trouble?;
    let code = AlertCode::DirectoryUnreachable;
    if *since < UNREACHABLE_MAX {
        return Some(Seen::Unsure(code, DIRECTORY.into()));
    }
    let expected = "one server at least can be asked";
    Some(holds(code, DIRECTORY, Severity::Warning, why.clone(), expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_can_t_be_asked_is_told_of_after_a_while() {
        let since = |seconds| (Duration::from_secs(seconds), "it is silent".to_owned());
        assert_eq!(judge(None), None);
        let code = AlertCode::DirectoryUnreachable;
        assert_eq!(judge(Some(&since(119))), Some(Seen::Unsure(code, DIRECTORY.into())));
        let Some(Seen::Holds(held)) = judge(Some(&since(120))) else { panic!("it does not hold") };
        assert_eq!((held.code, held.actual.as_str()), (code, "it is silent"));
    }
}
