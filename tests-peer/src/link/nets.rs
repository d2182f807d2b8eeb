//! Three machines as network namespaces, joined by a network of hosts and a cable between the two
//! controllers that can be cut and can lose packets.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::command;

/// The hosts' address in the network of hosts.
pub const HOSTS: &str = "10.77.0.254";
const HOSTS_6: &str = "fd77::fe";

/// Creates the devices of a slow cable.
pub const TAPS: &str = "/dev/net/tun";

/// The namespaces, until this is dropped.
pub struct Nets {
    names: Vec<String>,
}

impl Nets {
    /// Creates them; an error says what this machine does not support.
    pub fn new() -> Result<Self> {
        let name = |part| format!("holdfast-{}-{part}", std::process::id());
        let mut nets = Self { names: Vec::new() };
        for part in ["hosts", "ct0", "ct1"] {
            ip(&["netns", "add", &name(part)])?;
            nets.names.push(name(part));
            nets.inside(part, &["ip", "link", "set", "lo", "up"])?;
        }
        nets.inside("hosts", &["ip", "link", "add", "hosts", "type", "bridge"])?;
        nets.inside("hosts", &["ip", "addr", "add", &format!("{HOSTS}/24"), "dev", "hosts"])?;
        nets.inside("hosts", &["ip", "link", "set", "hosts", "up"])?;
        nets.add_6("hosts", HOSTS_6, "hosts")?;
        for number in 0..2 {
            let (part, end) = (part(number), format!("port{number}"));
            let to = nets.name(part)?.to_owned();
            let cable = ["type", "veth", "peer", "name", "eth1", "netns", &to];
            nets.inside("hosts", &[&["ip", "link", "add", &end][..], &cable].concat())?;
            nets.inside("hosts", &["ip", "link", "set", &end, "master", "hosts", "up"])?;
        }
        let to = nets.name("ct1")?.to_owned();
        let cable = ["type", "veth", "peer", "name", "eth0", "netns", &to];
        nets.inside("ct0", &[&["ip", "link", "add", "eth0"][..], &cable].concat())?;
        for number in 0..2 {
            for (device, address) in [("eth0", link(number)), ("eth1", host_side(number))] {
                let of = ["ip", "addr", "add", &format!("{address}/24"), "dev", device];
                nets.inside(part(number), &of)?;
                nets.inside(part(number), &["ip", "link", "set", device, "up"])?;
            }
            nets.add_6(part(number), &format!("fd77::{}", number + 1), "eth1")?;
            // Hosts in the network of hosts can reach the port of the link as well.
            let route = [&link(number), "via", &host_side(number)];
            nets.inside("hosts", &[&["ip", "route", "add"][..], &route].concat())?;
        }
        // The tool that cuts the cable must work.
        nets.inside("ct0", &["nft", "list", "ruleset"])?;
        Ok(nets)
    }

    fn add_6(&self, part: &str, address: &str, device: &str) -> Result<()> {
        let words = ["ip", "addr", "add", &format!("{address}/64"), "dev", device, "nodad"];
        self.inside(part, &words).map(drop)
    }

    fn name(&self, part: &str) -> Result<&str> {
        let named = self.names.iter().find(|name| name.ends_with(part));
        named.map(String::as_str).with_context(|| format!("no namespace {part}"))
    }

    /// Moves the calling thread, and programs that it starts, to a namespace.
    pub fn enter(&self, part: &str) -> Result<()> {
        let file = File::open(Path::new("/run/netns").join(self.name(part)?))?;
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?;
        Ok(())
    }

    /// Returns a program to run in a namespace.
    pub fn command(&self, part: &str, program: &Path) -> Result<Command> {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name(part)?]).arg(program);
        Ok(command)
    }

    /// Runs a command in a namespace.
    pub fn try_inside(&self, part: &str, words: &[&str]) -> Result<command::Finished> {
        command::run(45, "ip", &[&["netns", "exec", self.name(part)?], words].concat())
    }

    /// The same; it must succeed.
    pub fn inside(&self, part: &str, words: &[&str]) -> Result<String> {
        self.try_inside(part, words)?.good()
    }

    /// Drops packets from the cable to these controllers: all, or this percentage.
    pub fn lose(&self, at: &[usize], percent: u32) -> Result<()> {
        for number in at {
            // For 100% nothing is random.
            let drawn = match percent {
                100 => String::new(),
                some => format!("numgen random mod 100 < {some}"),
            };
            let rules = format!(
                "add table inet cut; \
                 add chain inet cut in {{ type filter hook input priority 0; }}; \
                 add rule inet cut in iifname \"eth0\" {drawn} counter drop"
            );
            self.inside(part(*number), &["nft", &rules])?;
        }
        Ok(())
    }

    /// Restores the cable. Returns how many packets were lost.
    pub fn heal(&self) -> Result<u64> {
        let mut lost = 0;
        for number in 0..2 {
            let listed = self.try_inside(part(number), &["nft", "list", "table", "inet", "cut"])?;
            if listed.code != 0 {
                continue;
            }
            let words: Vec<&str> = listed.text.split_whitespace().collect();
            let counted = words.windows(2).find(|pair| pair[0] == "packets");
            let counted = counted.and_then(|pair| pair[1].parse::<u64>().ok());
            lost += counted.context("nft reports no counter")?;
            self.inside(part(number), &["nft", "delete", "table", "inet", "cut"])?;
        }
        ensure!(lost > 0, "nothing was lost on the cable");
        Ok(lost)
    }

    /// Disconnects a controller from all networks.
    pub fn isolate(&self, number: usize) -> Result<()> {
        let chain = |hook: &str, side: &str| {
            format!(
                "add chain inet alone {hook} {{ type filter hook {hook} priority 0; }}; \
                 add rule inet alone {hook} {side} {{ \"eth0\", \"eth1\" }} drop; "
            )
        };
        let rules = [chain("input", "iifname"), chain("output", "oifname")].concat();
        // The table does not filter ARP.
        for device in ["eth0", "eth1"] {
            self.inside(part(number), &["ip", "link", "set", device, "arp", "off"])?;
        }
        self.inside(part(number), &["nft", &format!("add table inet alone; {rules}")]).map(drop)
    }

    /// Reconnects it.
    pub fn rejoin(&self, number: usize) -> Result<()> {
        for device in ["eth0", "eth1"] {
            self.inside(part(number), &["ip", "link", "set", device, "arp", "on"])?;
        }
        self.inside(part(number), &["nft", "delete", "table", "inet", "alone"]).map(drop)
    }

    /// Returns whether a controller's machine has an address.
    pub fn has(&self, number: usize, address: &str) -> Result<bool> {
        let listed = self.inside(part(number), &["ip", "-o", "addr", "show", "dev", "eth1"])?;
        Ok(listed.split_whitespace().any(|word| word.split('/').next() == Some(address)))
    }

    /// Replaces the cable by a slow one, until the result is returned: the delay of each direction,
    /// its variation, and the percentage of lost packets.
    pub fn slow_down(&self, delay_ms: u32, varies_ms: u32, percent: u32) -> Result<SlowCable> {
        let ends = [0, 1].map(|number| format!("slow{}{number}", std::process::id()));
        let [delay, varies, lost] = [delay_ms, varies_ms, percent].map(|it| it.to_string());
        let mut program = self.command("hosts", Path::new("python3"))?;
        let mut program = program
            .args(["-c", include_str!("slow_cable.py"), &ends[0], &ends[1]])
            .args([&delay, &varies, &lost])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let told = program.stdout.take().context("its output is not available")?;
        let mut line = String::new();
        BufReader::new(told).read_line(&mut line)?;
        let cable = SlowCable { program };
        ensure!(line.trim() == "ready", "a slow cable is not possible here");
        for (number, end) in ends.iter().enumerate() {
            self.inside("hosts", &["ip", "link", "set", end, "netns", self.name(part(number))?])?;
            self.inside(part(number), &["ip", "link", "set", end, "up"])?;
            self.move_end(number, "eth0", end)?;
        }
        Ok(cable)
    }

    /// Restores the fast cable.
    pub fn hurry(&self, cable: SlowCable) -> Result<()> {
        // Its devices are removed with it.
        drop(cable);
        (0..2).try_for_each(|number| {
            let of = format!("{}/24", link(number));
            self.inside(part(number), &["ip", "addr", "replace", &of, "dev", "eth0"]).map(drop)
        })
    }

    fn move_end(&self, number: usize, from: &str, to: &str) -> Result<()> {
        let of = format!("{}/24", link(number));
        self.inside(part(number), &["ip", "addr", "del", &of, "dev", from])?;
        self.inside(part(number), &["ip", "addr", "add", &of, "dev", to]).map(drop)
    }
}

/// A slow cable: the program that forwards its frames.
pub struct SlowCable {
    program: Child,
}

impl Drop for SlowCable {
    fn drop(&mut self) {
        // It ends with its input.
        drop(self.program.stdin.take());
        // Errors can't be reported from here.
        let _ = self.program.wait();
    }
}

impl Drop for Nets {
    fn drop(&mut self) {
        for name in &self.names {
            // Errors can't be reported from here.
            let _ = ip(&["netns", "del", name]);
        }
    }
}

/// Returns the namespace of a controller.
pub fn part(number: usize) -> &'static str {
    if number == 0 { "ct0" } else { "ct1" }
}

/// Returns its address in the network of hosts.
pub fn host_side(number: usize) -> String {
    format!("10.77.0.{}", number + 1)
}

/// Returns its moving addresses.
pub fn moving(number: usize) -> [String; 2] {
    [format!("10.77.0.{}", number + 11), format!("fd77::{}", number + 11)]
}

/// Returns its address on the cable.
pub fn link(number: usize) -> String {
    format!("10.78.0.{}", number + 1)
}

fn ip(words: &[&str]) -> Result<String> {
    command::run(20, "ip", words)?.good()
}
