//! The information about a published volume that the controller passes to a node.

use std::collections::HashMap;

use tonic::Status;

use crate::secret::{Secret, is_recordable};

/// Where a node finds a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishContext {
    /// The iSCSI name of the target.
    pub target: String,
    /// Its portals, as `ADDRESS:PORT`.
    pub portals: Vec<String>,
    /// The LUN of the volume.
    pub lun: u16,
    /// The volume's serial number: 24 hex digits.
    pub serial: String,
}

impl PublishContext {
    /// Converts to the form that the orchestrator passes on.
    pub fn into_map(self) -> HashMap<String, String> {
        HashMap::from([
            ("target".to_owned(), self.target),
            ("portals".to_owned(), self.portals.join(",")),
            ("lun".to_owned(), self.lun.to_string()),
            ("serial".to_owned(), self.serial),
        ])
    }

    /// Converts from the form that the node gets.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if something is missing.
    pub fn from_map(map: &HashMap<String, String>) -> Result<Self, Status> {
        let field = |key: &str| {
            let text = map.get(key).filter(|text| !text.is_empty());
            let missing = || Status::invalid_argument(format!("publish_context lacks {key}"));
            text.ok_or_else(missing)
        };
        let serial = field("serial")?.to_ascii_uppercase();
        if serial.len() != 24 || !serial.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(Status::invalid_argument("the serial number has 24 hex digits"));
        }
        let lun = field("lun")?.parse();
        Ok(Self {
            target: field("target")?.clone(),
            portals: field("portals")?.split(',').map(str::to_owned).collect(),
            lun: lun.map_err(|_| Status::invalid_argument("the LUN is not a number"))?,
            serial,
        })
    }
}

/// The names of secrets in calls, which are those of open-iscsi's records.
const USER: &str = "node.session.auth.username";
const PASSWORD: &str = "node.session.auth.password";
const TARGET_USER: &str = "node.session.auth.username_in";
const TARGET_PASSWORD: &str = "node.session.auth.password_in";

/// The CHAP credentials of a node and of the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chap {
    /// The node's name.
    pub user: String,
    /// Its secret.
    pub password: Secret,
    /// The array's name and secret, for mutual CHAP.
    pub target: Option<(String, Secret)>,
}

impl Chap {
    /// Reads the secrets of a call; `None` if it has none of these.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if a name is given without its secret, or the other way round, or if a
    /// node's record can't contain one of them.
    pub fn from_secrets(secrets: &HashMap<String, String>) -> Result<Option<Self>, Status> {
        let pair = |user: &str, password: &str| {
            let get = |key: &str| secrets.get(key).filter(|text| !text.is_empty());
            let unfit = |key: &str| {
                let text = "1 to 255 bytes on one line, without a space at the start or the end";
                Status::invalid_argument(format!("the secret {key} must have {text}"))
            };
            match (get(user), get(password)) {
                (None, None) => Ok(None),
                (Some(name), _) if !is_recordable(name) => Err(unfit(user)),
                (Some(name), Some(text)) => {
                    Ok(Some((name.clone(), Secret::new(text).ok_or_else(|| unfit(password))?)))
                }
                _ => {
                    let text = format!("the secrets {user} and {password} must be given together");
                    Err(Status::invalid_argument(text))
                }
            }
        };
        let target = pair(TARGET_USER, TARGET_PASSWORD)?;
        match pair(USER, PASSWORD)? {
            Some((user, password)) => Ok(Some(Self { user, password, target })),
            None if target.is_some() => {
                let text = format!("the secret {TARGET_USER} needs {USER}");
                Err(Status::invalid_argument(text))
            }
            None => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_parses_the_context_of_the_controller() {
        let context = PublishContext {
            target: "iqn.2026-01.org.example:array".into(),
            portals: vec!["192.0.2.1:3260".into(), "[2001:db8::1]:3260".into()],
            lun: 7,
            serial: "0123456789ABCDEF00000001".into(),
        };
        let map = context.clone().into_map();
        assert_eq!(PublishContext::from_map(&map).unwrap(), context);
        for key in map.keys() {
            let mut map = map.clone();
            map.insert(key.clone(), if key == "serial" { "x".into() } else { String::new() });
            assert!(PublishContext::from_map(&map).is_err(), "{key}");
        }
    }

    #[test]
    fn secrets_come_in_pairs_and_are_never_shown() {
        let read = |pairs: &[(&str, &str)]| {
            let secrets = pairs.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
            Chap::from_secrets(&secrets.collect())
        };
        assert_eq!(read(&[("token", "x"), (USER, "")]).unwrap(), None);
        let one = read(&[(USER, "node"), (PASSWORD, "hidden-secret")]).unwrap().unwrap();
        assert_eq!(one.user, "node");
        assert_eq!(Some(&one.password), Secret::new("hidden-secret").as_ref());
        assert!(!format!("{one:?}").contains("hidden"), "{one:?}");
        let secret = |text| Secret::new(text).unwrap();
        let both = [(USER, "n"), (PASSWORD, "p"), (TARGET_USER, "a"), (TARGET_PASSWORD, "q")];
        assert_eq!(read(&both).unwrap().unwrap().target, Some(("a".into(), secret("q"))));
        let injected = "x\nnode.startup = automatic";
        for bad in [[(USER, injected), (PASSWORD, "p")], [(USER, "n"), (PASSWORD, injected)]] {
            let refusal = read(&bad).unwrap_err();
            assert_eq!(refusal.code(), tonic::Code::InvalidArgument);
            assert!(!refusal.message().contains("automatic"), "{}", refusal.message());
        }
        for bad in [&both[..1], &both[1..2], &both[2..], &both[..3]] {
            let refusal = read(bad).unwrap_err();
            assert_eq!(refusal.code(), tonic::Code::InvalidArgument);
        }
    }
}
