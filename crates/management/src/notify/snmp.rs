//! SNMP: traps and informs of version 2c (RFC 3416) and 3 (RFC 3414), as `contrib/snmp` describes
//! them.

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use array::{Alert, SnmpAuth, SnmpManager, SnmpSecurity};
use async_snmp::v3::{AuthoritativeEngine, PersistedAuthoritativeEngine};
use async_snmp::{Auth, AuthProtocol, Client, Oid, PrivProtocol, UsmConfig, Value, VarBind};
use network::Names;
use parking_lot::Mutex;
use tokio::time::timeout;

use super::{Event, News, SEND_TIMEOUT};

/// The root of the objects in `contrib/snmp/HOLDFAST-MIB.txt`: below `netSnmpPlaypen`, which
/// anybody may use, because Holdfast has no enterprise number.
const ROOT: [u32; 10] = [1, 3, 6, 1, 4, 1, 8072, 9999, 9999, 7326];
/// The longest text of an object, in bytes.
const TEXT_BYTES_MAX: usize = 1024;

/// Durably counts a start of the engine, and returns the number of starts.
pub type Boots = Box<dyn Fn() -> Result<u32, String> + Send + Sync>;

/// The array as an SNMP engine: its identity for receivers of version 3, and its uptime.
pub struct Engine {
    id: Vec<u8>,
    boots: Boots,
    begun: Instant,
    /// Started with the first message that needs it: an unused engine counts no starts.
    started: Mutex<Option<AuthoritativeEngine>>,
}

impl Engine {
    /// Creates one with this id.
    pub fn new(id: Vec<u8>, boots: Boots) -> Arc<Self> {
        Arc::new(Self { id, boots, begun: Instant::now(), started: Mutex::default() })
    }

    fn started(&self) -> Result<AuthoritativeEngine, String> {
        let mut started = self.started.lock();
        if let Some(engine) = &*started {
            return Ok(engine.clone());
        }
        // It is counted already. The library counts again only after 68 years of one start.
        let kept = |_: &PersistedAuthoritativeEngine| Ok::<(), std::convert::Infallible>(());
        let one_line = |error: Box<async_snmp::Error>| error.to_string();
        let engine = match (self.boots)()?.saturating_sub(1) {
            0 => AuthoritativeEngine::install(self.id.clone(), kept).map_err(one_line)?,
            before => {
                let before = PersistedAuthoritativeEngine::new(self.id.clone(), before);
                AuthoritativeEngine::restart(before.map_err(one_line)?, kept).map_err(one_line)?
            }
        };
        *started = Some(engine.clone());
        Ok(engine)
    }

    /// Returns the uptime of the engine, in hundredths of a second, which wraps around after 497
    /// days (RFC 2578, 7.1.8).
    fn uptime(&self) -> u32 {
        (self.begun.elapsed().as_millis() / 10) as u32
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Engine(…)")
    }
}

/// There is one per process.
impl PartialEq for Engine {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
    }
}

impl Eq for Engine {}

/// Sends an event to a manager, and waits for its confirmation of an inform.
///
/// # Errors
/// The reason for the failure, on one line.
pub(super) fn send(
    manager: &SnmpManager,
    engine: &Engine,
    event: &Event,
    names: &Names,
) -> Result<(), String> {
    let one_line = |error: &dyn fmt::Display| format!("{}: {error}", manager.host);
    let (host, port) = manager.place().ok_or("it has no host")?;
    let addresses = names.addresses(&host, port).map_err(|error| one_line(&error))?;
    let address = addresses.first().ok_or("it has no address")?;
    let auth = auth(&manager.security).map_err(|error| one_line(&error))?;
    let mut builder = Client::builder(address.to_string(), auth);
    if !manager.is_inform && matches!(manager.security, SnmpSecurity::V3 { .. }) {
        builder = builder.local_authoritative_engine(engine.started()?);
    }
    let exchange = async {
        let client = builder.connect().await?;
        let (kind, objects) = (kind(event), objects(event));
        match manager.is_inform {
            true => client.send_inform(&kind, engine.uptime(), objects).await,
            false => client.send_trap(&kind, engine.uptime(), objects).await,
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    // A timeout must be created within the runtime, which provides the time.
    let sent = runtime
        .map_err(|error| one_line(&error))?
        .block_on(async { timeout(SEND_TIMEOUT, exchange).await });
    match sent {
        Ok(sent) => sent.map_err(|error| one_line(&error)),
        Err(_) => Err(one_line(&"it does not confirm in time")),
    }
}

/// Returns the security parameters of messages.
fn auth(security: &SnmpSecurity) -> Result<Auth, String> {
    let one_line = |error| format!("its passphrases can't be used: {error}");
    let (user, auth, privacy) = match security {
        SnmpSecurity::V2c { community } => return Ok(Auth::v2c(community.expose())),
        SnmpSecurity::V3 { user, auth, privacy } => (UsmConfig::new(user.clone()), auth, privacy),
    };
    let Some((how, secret)) = auth else { return Ok(user.into()) };
    let how = match how {
        SnmpAuth::Md5 => AuthProtocol::Md5,
        SnmpAuth::Sha => AuthProtocol::Sha1,
    };
    let user = match privacy {
        None => user.auth(how, secret.expose()).map_err(one_line)?,
        Some(privacy) => user
            .auth_priv(how, secret.expose(), PrivProtocol::Aes128, privacy.expose())
            .map_err(one_line)?,
    };
    Ok(user.into())
}

fn oid(below: &[u32]) -> Oid {
    Oid::new(ROOT.iter().chain(below).copied())
}

/// Returns the notification of the MIB for an event.
fn kind(event: &Event) -> Oid {
    oid(&[
        0,
        match event.news {
            News::Opened(_) => 1,
            News::Closed(_) => 2,
            News::Changed(_) | News::Test => 3,
        },
    ])
}

/// Returns a text, truncated if it is too long.
fn text(of: &str) -> Value {
    let mut end = of.len().min(TEXT_BYTES_MAX);
    while !of.is_char_boundary(end) {
        end -= 1;
    }
    Value::from(&of[..end])
}

/// Returns the objects of the MIB for an event.
fn objects(event: &Event) -> Vec<VarBind> {
    let object = |number: u32, value: Value| VarBind::new(oid(&[1, number, 0]), value);
    let mut all = vec![object(1, text(&event.array)), object(2, text(&event.text()))];
    if let News::Opened(alert) | News::Closed(alert) = &event.news {
        let Alert { number, condition, .. } = alert;
        all.extend([
            object(3, Value::Gauge32(u32::try_from(*number).unwrap_or(u32::MAX))),
            object(4, Value::Gauge32(condition.code.number())),
            object(5, text(condition.code.name())),
            object(6, text(condition.severity.name())),
            object(7, text(&alert.summary())),
        ]);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers that are sent must be those of the MIB.
    #[test]
    fn notifications_match_the_mib() {
        let mib = include_str!("../../../../contrib/snmp/HOLDFAST-MIB.txt");
        let mib = mib.split_whitespace().collect::<Vec<_>>().join(" ");
        let number = |name: &str, what: &str, under: &str| -> u32 {
            let (_, rest) = mib.split_once(&format!("{name} {what} ")).expect(name);
            let (_, rest) = rest.split_once(&format!("::= {{ {under} ")).expect(name);
            rest.split(' ').next().and_then(|number| number.parse().ok()).expect(name)
        };
        let object = |name: &str| number(name, "OBJECT-TYPE", "holdfastObjects");
        let names = ["Array", "Text", "AlertNumber", "AlertCode", "AlertName", "AlertSeverity"];
        let numbers = names.map(|name| object(&format!("holdfast{name}")));
        assert_eq!((numbers, object("holdfastAlertSummary")), ([1, 2, 3, 4, 5, 6], 7));
        let one_line = |name: &str| number(name, "NOTIFICATION-TYPE", "holdfastNotifications");
        let all = ["holdfastAlertOpened", "holdfastAlertClosed", "holdfastTest"].map(one_line);
        assert_eq!(all, [1, 2, 3]);
        let below = ["holdfastNotifications", "holdfastObjects"];
        let below = below.map(|name| number(name, "OBJECT IDENTIFIER", "holdfast"));
        assert_eq!(below, [0, 1]);
        assert_eq!(number("holdfast", "MODULE-IDENTITY", "netSnmpPlaypen"), ROOT[9]);
    }

    #[test]
    fn texts_are_cut_between_characters() {
        let long = format!("{}ä", "x".repeat(TEXT_BYTES_MAX - 1));
        assert_eq!(text(&long), Value::from(&long[..TEXT_BYTES_MAX - 1]));
        assert_eq!(text("ä"), Value::from("ä"));
    }

    #[test]
    fn a_start_is_counted_at_the_first_use_of_the_engine() {
        let count = Arc::new(Mutex::new(6));
        let counted = count.clone();
        let engine = Engine::new(
            vec![0x80, 0, 0x1f, 0x88, 5, 1],
            Box::new(move || {
                *counted.lock() += 1;
                Ok(*counted.lock())
            }),
        );
        assert_eq!(*count.lock(), 6);
        assert_eq!(engine.started().unwrap().engine_boots(), 7);
        assert_eq!(engine.started().unwrap().engine_boots(), 7);
        assert_eq!(*count.lock(), 7);
        let first = Engine::new(vec![0x80, 0, 0x1f, 0x88, 5, 1], Box::new(|| Ok(1)));
        assert_eq!(first.started().unwrap().engine_boots(), 1);
        let none = Engine::new(vec![0x80, 0, 0x1f, 0x88, 5, 1], Box::new(|| Err("no".into())));
        assert_eq!(none.started().unwrap_err(), "no");
    }
}
