//! Whether the directory service can be reached.

use std::time::Duration;

use array::{AlertCode, Seen, Severity};

use super::judge::holds;

/// The subject of the alert.
const DIRECTORY: &str = "directory";
/// How long all servers may be unreachable: two of the checks made each minute.
const UNREACHABLE_MAX: Duration = Duration::from_secs(120);

/// Returns the condition: for how long no server could be reached, and why.
pub(super) fn judge(trouble: Option<&(Duration, String)>) -> Option<Seen> {
    let (since, why) = trouble?;
    let code = AlertCode::DirectoryUnreachable;
    if *since < UNREACHABLE_MAX {
        return Some(Seen::Unsure(code, DIRECTORY.into()));
    }
    let expected = "at least one server can be reached";
    Some(holds(code, DIRECTORY, Severity::Warning, why.clone(), expected))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreachable_directory_is_reported_after_a_while() {
        let since = |seconds| (Duration::from_secs(seconds), "it is silent".to_owned());
        assert_eq!(judge(None), None);
        let code = AlertCode::DirectoryUnreachable;
        assert_eq!(judge(Some(&since(119))), Some(Seen::Unsure(code, DIRECTORY.into())));
        let Some(Seen::Holds(held)) = judge(Some(&since(120))) else { panic!("it does not hold") };
        assert_eq!((held.code, held.actual.as_str()), (code, "it is silent"));
    }
}
