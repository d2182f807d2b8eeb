//! Counters, devices and sessions that stay as they are.

use super::*;

/// An array to which little happens.
pub(super) struct Quiet;

impl Telemetry for Quiet {
    fn counters(&self) -> Counters {
        // The first volume that is created: 0 is the array's own.
        let written =
            CommandCounters { ok: 4, bytes: 4096, ok_latency_us: 500_000, ..Default::default() };
        let latencies = [(Some(10), 0), (Some(200_000), 4), (None, 0)]
            .map(|(up_to_us, count)| LatencyBucket { up_to_us, count });
        let total = CommandCounters { latencies: latencies.into(), ..written.clone() };
        let path = PathCounters {
            volume_id: Some(1),
            commands: [("write".to_owned(), written)].into(),
            ..PathCounters::default()
        };
        let totals = [("write".to_owned(), total)];
        Counters { paths: vec![path], totals: totals.into(), ..Counters::default() }
    }

    fn devices(&self) -> Devices {
        let bucket = |up_to_us, count| LatencyBucket { up_to_us, count };
        let latencies = vec![bucket(Some(100), 3), bucket(None, 0)];
        let (bytes, ok_latency_us) = (12_288, 240);
        let reads =
            DeviceTransfers { ok: 3, bytes, ok_latency_us, latencies, ..Default::default() };
        let name = "pool.data".into();
        let device = Device { name, takes_writes: true, retries: 5, reads, ..Device::default() };
        let device = Device { moved_writes: 6, failed_flushes: 7, unflushed_bytes: 8, ..device };
        Devices { devices: [device].into(), together: None }
    }
}

impl Watch for Quiet {
    fn certificates(&self) -> Option<&dyn Certificates> {
        Some(&super::certificates::Scribe)
    }

    fn time_servers(&self) -> Vec<TimeServer> {
        let one =
            |server: &str, offset_s, error| TimeServer { server: server.into(), offset_s, error };
        vec![one("a", Some(-0.25), None), one("b:1123", None, Some("it is silent".into()))]
    }

    fn test_time_servers(&self) -> Vec<TimeServer> {
        self.time_servers()
    }

    fn test_directory(&self) -> Vec<DirectoryServer> {
        let one = |uri: &str, found: Option<&str>, error: Option<&str>| DirectoryServer {
            uri: uri.into(),
            found: found.map(str::to_owned),
            error: error.map(str::to_owned),
        };
        let good = one("ldaps://a", Some("It answers."), None);
        vec![good, one("ldaps://b", None, Some("it is silent"))]
    }

    fn sessions(&self) -> Vec<HostSession> {
        let on = |portal, commands| HostSession {
            initiator: "iqn.2026-11.com.example:h".into(),
            portal,
            commands,
            ..HostSession::default()
        };
        vec![on(1, 5000), on(2, 5000)]
    }

    fn ended_sessions(&self) -> Vec<(u64, HostSession)> {
        let on = |portal, peer: &str| HostSession {
            initiator: "iqn.2026-11.com.example:gone".into(),
            portal,
            peer: peer.into(),
            ..HostSession::default()
        };
        vec![(7, on(2, "192.0.2.1:700"))]
    }

    fn refused_logins(&self) -> Vec<(String, RefusedLogin)> {
        let refused = |name: &str, why: &str| {
            let refused = RefusedLogin {
                count: 3,
                time_ms: 9,
                address: "192.0.2.7".into(),
                why: why.into(),
                status: 0x0202,
            };
            (name.to_owned(), refused)
        };
        vec![
            refused("iqn.2026-11.com.example:new", "it is no host"),
            refused("iqn.2026-11.com.example:h", "it fails CHAP"),
            refused("<b>anything</b>", "it is no host"),
        ]
    }

    fn test_notifications(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<NotificationTest> {
        let off = Some("it is off".to_owned());
        let all = [("log", off), ("alert-watchers/anna@example.com", None)];
        let wanted = all.into_iter().filter(|(name, _)| is_wanted(name));
        wanted.map(|(name, error)| NotificationTest { destination: name.into(), error }).collect()
    }
}
