//! How far the machine's clock is off, according to the time servers set in the pool: SNTP (RFC
//! 5905). Nothing here sets the clock; that is left to the operating system.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use array::Array;
use parking_lot::Mutex;
use rsntp::{Config, SntpClient};

use crate::Names;

/// The polling interval: as NTP clients begin (RFC 5905, 7.3).
const ASK_PAUSE: Duration = Duration::from_secs(64);
/// The interval for checking whether the settings have changed.
const LOOK_PAUSE: Duration = Duration::from_secs(1);
/// The timeout of a response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3);
/// The most addresses of a server that are asked.
const ADDRESSES_MAX: usize = 2;

/// The first second, counted from 1970, for which SNTP has no timestamp (RFC 5905, 6): the end of
/// its second era, in 2172. The library panics at such a time, and at one before 1970, and a panic
/// ends the array.
const ERAS_END: Duration = Duration::from_secs((1 << 33) - 2_208_988_800);

/// The response of a time server.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeAnswer {
    /// The server's name in the settings.
    pub server: String,
    /// By how many seconds the clock is behind the server's; or, on one line, why that is unknown.
    pub offset_s: Result<f64, String>,
}

/// The state of the clock.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClockState {
    /// Whether servers are set and were asked.
    pub is_asked: bool,
    /// By how many seconds it is behind: the median of the latest responses.
    pub offset_s: Option<f64>,
    /// For how long no server has responded.
    pub silent: Option<Duration>,
}

#[derive(Default)]
struct Asked {
    /// The servers that were asked, and when.
    servers: Vec<String>,
    at: Option<Instant>,
    answers: Vec<TimeAnswer>,
    silent_since: Option<Instant>,
}

/// Polls the time servers, on a thread that ends when this is dropped.
pub struct Timekeeper {
    array: Weak<Array>,
    names: Arc<Names>,
    asked: Mutex<Asked>,
    /// Held while servers are asked: one round at a time.
    round: Mutex<()>,
}

impl Timekeeper {
    /// Starts polling.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(array: &Arc<Array>, names: Arc<Names>) -> io::Result<Arc<Self>> {
        let keeper = Self::new(array, names);
        let its = Arc::downgrade(&keeper);
        thread::Builder::new().name("time".into()).spawn(move || {
            while let Some(keeper) = its.upgrade() {
                keeper.turn(Instant::now());
                drop(keeper);
                thread::sleep(LOOK_PAUSE);
            }
        })?;
        Ok(keeper)
    }

    fn new(array: &Arc<Array>, names: Arc<Names>) -> Arc<Self> {
        let array = Arc::downgrade(array);
        Arc::new(Self { array, names, asked: Mutex::default(), round: Mutex::default() })
    }

    /// Returns the servers in the settings.
    fn servers(&self) -> Vec<String> {
        let array = self.array.upgrade();
        array.map(|array| array.settings().time_servers.names().to_vec()).unwrap_or_default()
    }

    /// Asks the servers if that is due, or the settings have changed.
    fn turn(&self, now: Instant) {
        let is_due = {
            let asked = self.asked.lock();
            asked.servers != self.servers()
                || asked.at.is_none_or(|at| now.saturating_duration_since(at) >= ASK_PAUSE)
        };
        if is_due {
            self.ask();
        }
    }

    /// Asks all servers now, at the same time, and waits for their responses. A caller that has
    /// waited for another round gets its results: so many concurrent callers wait for two rounds,
    /// not for one each.
    pub fn ask(&self) -> Vec<TimeAnswer> {
        let wanted = Instant::now();
        let _one = self.round.lock();
        let servers = self.servers();
        {
            let asked = self.asked.lock();
            if asked.servers == servers && asked.at.is_some_and(|at| at >= wanted) {
                return asked.answers.clone();
            }
        }
        let answers: Vec<TimeAnswer> = thread::scope(|scope| {
            let ask = |server: &String| {
                let (server, names) = (server.clone(), &self.names);
                scope.spawn(move || TimeAnswer { offset_s: offset(&server, names), server })
            };
            let asked: Vec<_> = servers.iter().map(ask).collect();
            asked.into_iter().filter_map(|one| one.join().ok()).collect()
        });
        let mut asked = self.asked.lock();
        let (now, has_answer) = (Instant::now(), answers.iter().any(|one| one.offset_s.is_ok()));
        let is_silent = !has_answer && !servers.is_empty();
        let before = asked.silent_since.filter(|_| asked.servers == servers);
        asked.silent_since = is_silent.then(|| before.unwrap_or(now));
        (asked.servers, asked.at, asked.answers) = (servers, Some(now), answers.clone());
        answers
    }

    /// Returns the servers' last responses.
    pub fn answers(&self) -> Vec<TimeAnswer> {
        self.asked.lock().answers.clone()
    }

    /// Returns the state of the clock.
    pub fn clock(&self) -> ClockState {
        let asked = self.asked.lock();
        let known = asked.answers.iter().filter_map(|one| one.offset_s.as_ref().ok().copied());
        let mut known: Vec<f64> = known.collect();
        known.sort_by(f64::total_cmp);
        ClockState {
            is_asked: !asked.answers.is_empty(),
            offset_s: known.get(known.len() / 2).copied(),
            silent: asked.silent_since.map(|since| since.elapsed()),
        }
    }
}

/// Returns whether SNTP can represent this time.
fn is_in_an_era(time: SystemTime) -> bool {
    time.duration_since(UNIX_EPOCH).is_ok_and(|since| since < ERAS_END)
}

/// Returns by how many seconds this machine's clock is behind that of a server.
fn offset(server: &str, names: &Names) -> Result<f64, String> {
    let (host, port) = array::TimeServers::place(server).ok_or("it has no place")?;
    let addresses = names.addresses(&host, port).map_err(|error| error.to_string())?;
    let mut last = String::from("it has no address");
    for address in addresses.into_iter().take(ADDRESSES_MAX) {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        if !is_in_an_era(SystemTime::now()) {
            return Err("the clock of this machine is before 1970 or after 2171: set it".into());
        }
        let config = Config::default().bind_address(any).timeout(ANSWER_TIMEOUT);
        match SntpClient::with_config(config).synchronize(address) {
            Ok(found) => return Ok(found.clock_offset().as_secs_f64()),
            Err(error) => last = format!("{address}: {error}"),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use array::{SettingsChange, TimeServers};
    use std::net::UdpSocket;

    use super::*;

    /// Starts a server whose clock is ahead by this many seconds. Returns its address.
    fn ahead_by(seconds: u64) -> String {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let place = socket.local_addr().unwrap().to_string();
        thread::spawn(move || {
            let mut query = [0; 256];
            while let Ok((_, from)) = socket.recv_from(&mut query) {
                // Server mode, version 4, stratum 1 (RFC 5905, 7.3); seconds count from 1900.
                let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
                let whole = (now.as_secs() + 2_208_988_800 + seconds) as u32;
                let part = ((u64::from(now.subsec_nanos()) << 32) / 1_000_000_000) as u32;
                let stamp = [whole.to_be_bytes(), part.to_be_bytes()].concat();
                let mut answer = vec![0; 48];
                answer[..4].copy_from_slice(&[0x24, 1, 6, 0xec]);
                answer[12..16].copy_from_slice(b"LOCL");
                answer[16..24].copy_from_slice(&stamp);
                answer[24..32].copy_from_slice(&query[40..48]);
                answer[32..40].copy_from_slice(&stamp);
                answer[40..48].copy_from_slice(&stamp);
                if socket.send_to(&answer, from).is_err() {
                    return;
                }
            }
        });
        place
    }

    /// The library would panic, and end the array.
    #[test]
    fn a_time_that_sntp_cant_say_is_not_asked_about() {
        let second = Duration::from_secs(1);
        assert!(is_in_an_era(SystemTime::now()) && is_in_an_era(UNIX_EPOCH));
        assert!(!is_in_an_era(UNIX_EPOCH - second) && !is_in_an_era(UNIX_EPOCH + ERAS_END));
        assert!(is_in_an_era(UNIX_EPOCH + ERAS_END - second));
    }

    fn world() -> (tempfile::TempDir, Arc<Array>, Arc<Timekeeper>) {
        let directory = tempfile::tempdir().unwrap();
        let disk = sys::FileDisk::create(&directory.path().join("pool"), 512 << 20).unwrap();
        store::Store::create(&disk, &[7; 64]).unwrap();
        let store = store::Store::open(Arc::new(disk), store::OpenOptions::default()).unwrap();
        let array = Arc::new(Array::open(Arc::new(store), false).unwrap());
        let keeper = Timekeeper::new(&array, Names::of(&array));
        (directory, array, keeper)
    }

    fn name(array: &Array, servers: &[&String]) {
        let servers = servers.iter().map(ToString::to_string).collect();
        let time_servers = Some(TimeServers::new(servers).unwrap());
        let change = SettingsChange { time_servers, ..SettingsChange::default() };
        array.change_settings(change).unwrap();
    }

    #[test]
    fn the_offset_is_the_median_of_those_that_answer() {
        let (_directory, array, keeper) = world();
        let now = Instant::now();
        keeper.turn(now);
        assert_eq!((keeper.answers(), keeper.clock()), (Vec::new(), ClockState::default()));
        let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
        let nobody = silent.local_addr().unwrap().to_string();
        let servers = [ahead_by(0), ahead_by(90), ahead_by(100)];
        name(&array, &[&servers[1], &servers[0], &nobody, &servers[2]]);
        // Changed servers are asked at once.
        keeper.turn(now);
        let clock = keeper.clock();
        assert!(clock.is_asked && clock.silent.is_none());
        assert!((clock.offset_s.unwrap() - 90.0).abs() < 5.0, "{clock:?}");
        let answers = keeper.answers();
        assert!((answers[1].offset_s.as_ref().unwrap()).abs() < 5.0, "{answers:?}");
        assert!(answers[2].offset_s.as_ref().unwrap_err().contains(&nobody), "{answers:?}");
        // If the only server is silent, it is known since when.
        name(&array, &[&nobody]);
        keeper.turn(now);
        let first = keeper.clock();
        assert_eq!((first.is_asked, first.offset_s), (true, None));
        keeper.ask();
        assert!(keeper.clock().silent.unwrap() > first.silent.unwrap());
        name(&array, &[]);
        keeper.turn(now);
        assert_eq!(keeper.clock(), ClockState::default());
    }
}
