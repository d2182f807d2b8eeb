//! The configuration of `serve`: a TOML file in which each setting has a default.

mod values;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use array::{ChapUser, CompanyId, HostName, InitiatorName, SettingsChange};
use management::notify::config::{self, NotifyConfig};
use management::private::read_secret;
use serde::Deserialize;

use super::access::ChapDefaults;
use super::failure::Failure;
use super::link::LinkConfig;

/// The minimum memory: with less, the metadata of one full record would not fit.
const MEMORY_BYTES_MIN: u64 = 64 << 20;
/// The minimum log between checkpoints.
const CHECKPOINT_LOG_BYTES_MIN: u64 = 16 << 20;
/// The minimum rate of scrubbing, in bytes per second: below it, a pass would never end.
const SCRUB_RATE_MIN: u64 = 1 << 20;
/// The directory of persistent state of services (FHS 3.0, 5.8).
const STATE_DIRECTORY_DEFAULT: &str = "/var/lib/holdfast";
/// The maximum number of front-end threads.
const THREADS_MAX: usize = 256;

/// The whole file. Unknown fields are refused, so that a misspelt one is noticed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The pool to serve if the command line names none: its directory or device, or the list of
    /// directories and devices of a pool on several.
    #[serde(deserialize_with = "values::paths")]
    pub pool: Vec<PathBuf>,
    /// When a write is acknowledged.
    pub durability: Durability,
    /// Bytes of memory for the data cache, metadata and the deduplication index together.
    #[serde(deserialize_with = "values::bytes")]
    pub memory: u64,
    /// The old name of `memory`, which did not bound metadata.
    #[serde(deserialize_with = "values::renamed_cache")]
    pub cache: (),
    /// Bytes of log after which a checkpoint is due.
    #[serde(deserialize_with = "values::bytes")]
    pub checkpoint_log: u64,
    /// Whether the start upgrades a pool of an earlier version of the format.
    pub upgrade: bool,
    /// Whether free space of the pool is discarded, that is, returned to its filesystem or device.
    pub discard: bool,
    /// How long a device is out before its content is rebuilt on the others; `off` for never.
    #[serde(deserialize_with = "values::time")]
    pub rebuild_after: Option<Duration>,
    /// Bytes of new space that are prepared ahead of the log.
    #[serde(deserialize_with = "values::bytes")]
    pub prepare_ahead: u64,
    /// How often everything is scrubbed in the background; `off` for never.
    #[serde(deserialize_with = "values::time")]
    pub scrub: Option<Duration>,
    /// Bytes that scrubbing reads per second while no host is busy.
    #[serde(deserialize_with = "values::bytes")]
    pub scrub_rate: u64,
    /// How often the background pass of reduction runs; `off` for never.
    #[serde(deserialize_with = "values::time")]
    pub optimize: Option<Duration>,
    /// Whether hosts see the ports of both controllers as equivalent paths to volumes, though one
    /// of them forwards.
    pub symmetric_access: bool,
    /// Front-end threads; 0 means one per core, at most 8.
    pub threads: usize,
    /// The name of the array; kept in the pool.
    pub array_name: Option<String>,
    /// The iSCSI name of the target; kept in the pool.
    pub target_name: Option<String>,
    /// The company identifier of new volumes' NAA names; kept in the pool.
    pub company_id: Option<String>,
    /// Whether the management interface may listen on other addresses than loopback.
    pub allow_remote_api: bool,
    /// Whether the management interface uses plain HTTP; on loopback only.
    pub http: bool,
    /// The certificate of the management interface with its chain, as PEM; by default the array
    /// generates one.
    pub certificate: Option<PathBuf>,
    /// The key of the certificate, as PEM.
    pub private_key: Option<PathBuf>,
    /// The directory for the certificate of an array on a block device; an array in a directory
    /// keeps it there.
    pub state_directory: PathBuf,
    /// The minimum severity of logged messages.
    pub log_level: LogLevel,
    /// The limits of iSCSI.
    pub iscsi: IscsiLimits,
    /// CHAP for hosts without their own settings.
    pub chap: ChapConfig,
    /// The link to the other controller over the network.
    pub link: LinkConfig,
    /// The destinations of notifications.
    pub notify: Vec<NotifyConfig>,
}

impl Default for Config {
    fn default() -> Self {
        let store = store::OpenOptions::default();
        Self {
            pool: Vec::new(),
            durability: Durability::Commit,
            memory: store.memory_bytes,
            cache: (),
            checkpoint_log: store.checkpoint_log_bytes,
            upgrade: store.upgrade,
            discard: store.discard,
            rebuild_after: Some(Duration::from_secs(600)),
            prepare_ahead: 256 << 20,
            scrub: Some(Duration::from_secs(7 * 86_400)),
            scrub_rate: 50 << 20,
            optimize: Some(Duration::from_secs(86_400)),
            symmetric_access: false,
            threads: 0,
            array_name: None,
            target_name: None,
            company_id: None,
            allow_remote_api: false,
            http: false,
            certificate: None,
            private_key: None,
            state_directory: PathBuf::from(STATE_DIRECTORY_DEFAULT),
            log_level: LogLevel::Info,
            iscsi: IscsiLimits::default(),
            chap: ChapConfig::default(),
            link: LinkConfig::default(),
            notify: Vec::new(),
        }
    }
}

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    /// When the write is on the medium. WCE is 0.
    Commit,
    /// When the write is in memory; SYNCHRONIZE CACHE and FUA make it durable. WCE is 1.
    Flush,
}

impl Durability {
    /// Returns its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Flush => "flush",
        }
    }

    /// Returns the same in the store's type.
    pub fn of_store(self) -> store::Durability {
        match self {
            Self::Commit => store::Durability::Commit,
            Self::Flush => store::Durability::Flush,
        }
    }
}

/// The minimum severity of logged messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl From<LogLevel> for tracing::Level {
    fn from(level: LogLevel) -> Self {
        match level {
            LogLevel::Error => Self::ERROR,
            LogLevel::Warn => Self::WARN,
            LogLevel::Info => Self::INFO,
            LogLevel::Debug => Self::DEBUG,
            LogLevel::Trace => Self::TRACE,
        }
    }
}

/// The limits of iSCSI; see `iscsi::Limits` for their meaning.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IscsiLimits {
    /// Sessions, including discovery.
    pub sessions: Option<usize>,
    /// Connections in a session.
    pub connections_per_session: Option<u16>,
    /// Commands in flight in a session.
    pub commands_per_session: Option<u32>,
}

impl IscsiLimits {
    /// Returns the defaults, overridden by the file.
    pub fn limits(&self) -> iscsi::Limits {
        let mut limits = iscsi::Limits::default();
        limits.sessions = self.sessions.unwrap_or(limits.sessions);
        // A quarter of all sessions, but at least the limit of an initiator, whose host may have
        // one address.
        limits.sessions_per_address = (limits.sessions / 4).max(limits.sessions_per_initiator);
        limits.connections_per_session =
            self.connections_per_session.unwrap_or(limits.connections_per_session);
        limits.commands_per_session =
            self.commands_per_session.unwrap_or(limits.commands_per_session);
        limits
    }
}

/// CHAP for hosts without their own settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChapConfig {
    /// Whether hosts without CHAP are refused.
    pub required: bool,
    /// The user name of the target.
    pub target_user: Option<String>,
    /// The file with the secret of the target.
    pub target_secret_file: Option<PathBuf>,
}

impl Config {
    /// Reads a file; without one, takes the defaults.
    pub fn load(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else { return Ok(Self::default()) };
        let text =
            fs::read_to_string(path).map_err(|error| Failure::of_file("read", path, &error))?;
        let refuse = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
        let config: Self = toml::from_str(&text).map_err(|error| {
            let line = error
                .span()
                .map_or(1, |span| text.get(..span.start).unwrap_or("").matches('\n').count() + 1);
            refuse(format!("line {line}: {}", error.message()))
        })?;
        config.check().map_err(refuse)?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        if self.memory < MEMORY_BYTES_MIN {
            return Err("memory must be at least 64M".into());
        }
        if self.checkpoint_log < CHECKPOINT_LOG_BYTES_MIN {
            return Err("checkpoint_log must be at least 16M".into());
        }
        if self.scrub_rate < SCRUB_RATE_MIN {
            return Err("scrub_rate must be at least 1M; scrub = \"off\" disables it".into());
        }
        if self.threads > THREADS_MAX {
            return Err(format!("threads must be at most {THREADS_MAX}"));
        }
        if self.chap.target_user.is_some() != self.chap.target_secret_file.is_some() {
            return Err("chap.target_user and chap.target_secret_file go together".into());
        }
        if self.certificate.is_some() != self.private_key.is_some() {
            return Err("certificate and private_key go together".into());
        }
        config::check(&self.notify)?;
        self.settings().map(drop).map_err(|error| error.to_string())
    }

    /// Returns the settings in the file that are kept in the pool.
    pub fn settings(&self) -> Result<SettingsChange, array::Error> {
        let initiator = |name: &String| InitiatorName::new(name);
        Ok(SettingsChange {
            name: self.array_name.as_deref().map(HostName::of_array).transpose()?,
            target_name: self.target_name.as_ref().map(initiator).transpose()?,
            company_id: self.company_id.as_deref().map(CompanyId::parse).transpose()?,
            ..SettingsChange::default()
        })
    }

    /// Returns the options for opening the store.
    pub fn store_options(&self) -> store::OpenOptions {
        store::OpenOptions {
            durability: self.durability.of_store(),
            memory_bytes: self.memory,
            checkpoint_log_bytes: self.checkpoint_log,
            tuning: store::Tuning::DEFAULT,
            upgrade: self.upgrade,
            discard: self.discard,
            takes_over: None,
            log_end: None,
        }
    }

    /// Returns the CHAP settings of hosts without their own; reads the secret.
    pub fn chap_defaults(&self) -> Result<ChapDefaults, Failure> {
        let mut defaults = ChapDefaults { required: self.chap.required, target: None };
        if let (Some(user), Some(file)) = (&self.chap.target_user, &self.chap.target_secret_file) {
            let user = ChapUser::new(user, &read_secret(file)?);
            defaults.target = Some(user.map_err(|error| Failure::Usage(error.to_string()))?);
        }
        Ok(defaults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Config, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), text).unwrap();
        Config::load(Some(file.path())).map_err(|failure| failure.to_string())
    }

    #[test]
    fn one_address_gets_a_quarter_of_any_number_of_sessions() {
        let of = |sessions| {
            IscsiLimits { sessions, ..IscsiLimits::default() }.limits().sessions_per_address
        };
        assert_eq!([None, Some(4096), Some(100)].map(of), [256, 1024, 64]);
        assert_eq!(iscsi::Limits::default().sessions_per_address, 256);
    }

    #[test]
    fn every_setting_is_accepted_and_none_is_required() {
        load("").unwrap();
        let config = load(
            "durability = \"flush\"\nmemory = \"1G\"\ncheckpoint_log = 67108864\n\
             prepare_ahead = 0\ndiscard = true\nthreads = 2\narray_name = \"lab\"\n\
             target_name = \"iqn.2026-11.com.example:lab\"\ncompany_id = \"02-48-46\"\n\
             scrub = \"off\"\nscrub_rate = \"10M\"\noptimize = \"12h\"\n\
             rebuild_after = \"1h\"\n\
             allow_remote_api = true\nhttp = false\ncertificate = \"c\"\n\
             private_key = \"k\"\nstate_directory = \"s\"\nlog_level = \"debug\"\n\
             [iscsi]\nsessions = 10\n[chap]\nrequired = true\n\
             [[notify]]\nkind = \"syslog\"\nname = \"log\"\naddress = \"log.example:514\"\n\
             transport = \"tcp\"\nseverity = \"info\"\naudit = true\n",
        )
        .unwrap();
        assert_eq!(config.store_options().memory_bytes, 1 << 30);
        assert!(config.store_options().discard && !Config::default().store_options().discard);
        assert_eq!(config.store_options().durability, store::Durability::Flush);
        assert_eq!((config.scrub, config.scrub_rate), (None, 10 << 20));
        assert_eq!(config.optimize, Some(Duration::from_secs(12 * 3600)));
        assert_eq!(config.rebuild_after, Some(Duration::from_secs(3600)));
        assert_eq!(config.iscsi.limits().sessions, 10);
        assert_eq!(load("pool = \"/a\"").unwrap().pool, [Path::new("/a")]);
        assert_eq!(load("pool = [\"/a\", \"/b\"]").unwrap().pool.len(), 2);
        assert!(config.chap_defaults().unwrap().required);
    }

    #[test]
    fn a_fault_is_reported_with_its_line() {
        for (text, reported) in [
            ("\nmemroy = 1", "line 2"),
            ("durability = \"sometimes\"", "line 1"),
            ("\n\nmemory = \"lots\"", "line 3"),
            ("memory = -1", "a size looks like"),
            ("memory = \"1M\"", "64M"),
            ("\ncache = \"1G\"", "line 2: `cache` was replaced by `memory`"),
            ("threads = 1000", "256"),
            ("scrub = \"weekly\"", "7d"),
            ("scrub_rate = \"1K\"", "1M"),
            ("\noptimize = 0", "line 2"),
            ("optimize = \"daily\"", "7d"),
            ("target_name = \"disk\"", "iqn."),
            ("company_id = \"xx\"", "six hex digits"),
            ("[chap]\ntarget_user = \"u\"", "go together"),
            ("private_key = \"k\"", "certificate and private_key"),
            ("[[notify]]\nkind = \"pager\"\nname = \"a\"", "pager"),
            ("[[notify]]\nkind = \"syslog\"\nname = \"a\"\nadress = \"b:1\"", "adress"),
            ("[[notify]]\nkind = \"syslog\"\nname = \"a\"\naddress = \"b\"", "HOST:PORT"),
            (
                "[[notify]]\nkind = \"webhook\"\nname = \"a\"\nurl = \"http://example.com/\"",
                "not encrypted",
            ),
            (
                "[[notify]]\nkind = \"mail\"\nname = \"a\"\nserver = \"b:25\"\n\
                 from = \"a@b.example.com\"\nto = []",
                "no recipients",
            ),
            (
                "[[notify]]\nkind = \"mail\"\nname = \"a\"\nserver = \"b:25\"\n\
                 from = \"somebody\"\nto = []",
                "Missing domain",
            ),
            ("memory = ", "line 1"),
            ("\npool = 1", "line 2"),
        ] {
            let error = load(text).unwrap_err();
            assert!(error.contains(reported) && !error.contains('\n'), "{text:?}: {error}");
        }
    }
}
