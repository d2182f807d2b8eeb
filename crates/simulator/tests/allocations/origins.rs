//! Where the allocations of a kind of command come from, if `HOLDFAST_ALLOCATIONS` requests it.

use std::backtrace::Backtrace;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// How many callers are shown of an allocation.
const CALLERS: usize = 14;
/// Functions whose names contain one of these are shown.
const OURS: [&str; 7] =
    ["front::", "iscsi::", "scsi::", "store::", "target::", "block::", "segments::"];

thread_local! {
    /// Allocations and their bytes, by their callers.
    static FOUND: RefCell<BTreeMap<String, (u64, usize)>> = const { RefCell::new(BTreeMap::new()) };
}

fn is_asked_for(name: &str) -> bool {
    std::env::var("HOLDFAST_ALLOCATIONS").is_ok_and(|asked| asked == name)
}

/// Records allocations until it is dropped.
pub struct Origins(());

/// Starts recording, if this kind was requested and is being counted.
pub fn of(name: &str, is_counted: bool) -> Option<Origins> {
    (is_counted && is_asked_for(name)).then(|| {
        sys::allocations::observe(Some(note));
        Origins(())
    })
}

impl Drop for Origins {
    fn drop(&mut self) {
        sys::allocations::observe(None);
    }
}

fn note(bytes: usize) {
    let trace = Backtrace::force_capture().to_string();
    let is_ours = |line: &&str| OURS.iter().any(|name| line.contains(name));
    let callers = trace.lines().map(str::trim).filter(|line| !line.starts_with("at "));
    let callers: Vec<&str> = callers.filter(is_ours).take(CALLERS).collect();
    let callers = callers.iter().map(|line| line.split_once(": ").map_or(*line, |(_, name)| name));
    let key = callers.collect::<Vec<_>>().join("\n        ");
    FOUND.with_borrow_mut(|found| {
        let (count, all_bytes) = found.entry(key).or_default();
        *count += 1;
        *all_bytes += bytes;
    });
}

/// Prints what was found, the most frequent first.
pub fn print(name: &str, commands: u64) {
    if !is_asked_for(name) {
        return;
    }
    let found = FOUND.take();
    let mut found: Vec<_> = found.into_iter().map(|(who, cost)| (cost, who)).collect();
    found.sort_by(|a, b| b.cmp(a));
    for ((count, bytes), who) in found {
        let of_one = count as f64 / commands as f64;
        println!("{of_one:6.2} a command, {} bytes each:\n        {who}", bytes as u64 / count);
    }
}
