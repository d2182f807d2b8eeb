//! `salvage`: copies volumes and snapshots out of a pool that is not in use, as far as they can be
//! read, even if the pool does not open. Nothing is written to the pool.

mod file;
mod source;

use std::collections::HashSet;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use array::{SalvagedObject, SalvagedObjects, salvaged_objects};
use block::{BLOCK_BYTES, SECTOR_BYTES};
use serde::Serialize;
use store::{LogCut, Salvage, SalvageError, SalvageOptions, SalvageVolume};

use super::args::{Common, SalvageArgs};
use super::failure::Failure;
use super::output::{Align, show, table, time};
use super::place::{Place, Places};
use super::size::human;
use file::{LostRange, Written};
use source::Source;

/// The report's file.
const REPORT: &str = "salvage.json";
/// The maximum number of unnamed maps that are written.
const ORPHANS_MAX: usize = 1_000;

/// A volume, a snapshot, or a map whose volume is unknown.
#[derive(Serialize)]
struct Object {
    name: String,
    /// `volume`, `snapshot` or `unnamed`.
    kind: &'static str,
    /// Its id; for an unnamed map the id of its first node.
    id: u64,
    /// Whether it was destroyed and not yet eradicated.
    destroyed: bool,
    /// Its file; `None` if nothing of it is left.
    file: Option<String>,
    /// Whether the filesystem does not support files as long as the volume: then zeros are missing
    /// at its end, or ranges that are listed as lost.
    is_short: bool,
    size_bytes: Option<u64>,
    written_bytes: u64,
    lost_bytes: u64,
    /// The file with all lost ranges.
    lost_file: Option<String>,
    /// The first of them.
    lost: Vec<LostRange>,
}

impl Object {
    fn is_whole(&self) -> bool {
        self.lost_bytes == 0 && self.file.is_some()
    }
}

/// The report.
#[derive(Serialize)]
struct Report {
    pool: PathBuf,
    pool_id: String,
    /// The sequence number of the superblock that was used.
    superblock_sequence: u64,
    /// The number of applied records of the log after the checkpoint.
    log_records: u64,
    /// The position at which the log was cut.
    log_cut: Option<LogCut>,
    /// Whether nothing is lost.
    whole: bool,
    objects: Vec<Object>,
    /// Ids that may or may not have been volumes, as first and last.
    lost_ids: Vec<(u64, u64)>,
    /// Other losses.
    losses: Vec<String>,
    /// Findings without any known loss.
    notes: Vec<String>,
}

/// Writes out everything that can be read. If anything is lost, the exit code is 1.
pub fn run(common: &Common, options: &SalvageArgs) -> Result<ExitCode, Failure> {
    let named = [&options.places, &common.pool];
    let Some(pool) = named.into_iter().find(|paths| !paths.is_empty()) else {
        let text = "salvage needs a pool: holdfast salvage DIR-OR-DEVICE --to DIR";
        return Err(Failure::Usage(text.into()));
    };
    let places = Places::of_existing(pool)?;
    for place in &places.all {
        Directory::check(&options.to, place)?;
    }
    let directory = Directory::check(&options.to, places.first())?;
    let source = Source::of(places)?;
    let salvage = open(&source, options)?;
    directory.make()?;
    let report = write_all(&salvage, source, &options.to)?;
    let text = serde_json::to_vec_pretty(&report)
        .map_err(|error| Failure::Machine(format!("can't write JSON: {error}")))?;
    file::write_new(&options.to.join(REPORT), &text)?;
    show(common.form, &report, || text_of(&report, &options.to))?;
    Ok(if report.whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The output directory.
struct Directory<'a> {
    path: &'a Path,
    exists: bool,
}

impl<'a> Directory<'a> {
    /// Refuses a directory that is not empty, or that is inside the pool's.
    fn check(path: &'a Path, place: &Place) -> Result<Self, Failure> {
        let refuse = |why: &str| {
            let text =
                format!("can't salvage to {}: {why}; name an empty directory", path.display());
            Err(Failure::Refused(text))
        };
        // The nearest existing directory determines where it is.
        let absolute =
            std::path::absolute(path).map_err(|error| Failure::of_file("use", path, &error))?;
        let found = absolute.ancestors().find_map(|above| fs::canonicalize(above).ok());
        let found = found.unwrap_or_else(|| absolute.clone());
        let on_device = || {
            let device = fs::metadata(&place.data).map(|data| data.rdev()).ok();
            place.is_device() && fs::metadata(&found).map(|found| found.dev()).ok() == device
        };
        if found.starts_with(&place.pool) || on_device() {
            return refuse("it is on the pool");
        }
        match fs::read_dir(path) {
            Ok(mut entries) => match entries.next() {
                Some(_) => refuse("it is not empty"),
                None => Ok(Self { path, exists: true }),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Self { path, exists: false })
            }
            Err(error) => Err(Failure::of_file("look into", path, &error)),
        }
    }

    fn make(&self) -> Result<(), Failure> {
        if self.exists {
            return Ok(());
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(self.path)
            .map_err(|error| Failure::of_file("create the directory", self.path, &error))
    }
}

fn open(source: &Source, options: &SalvageArgs) -> Result<Salvage, Failure> {
    let wanted = SalvageOptions {
        superblock: options.superblock.map(usize::from),
        cut_log: options.cut_log,
        ..SalvageOptions::default()
    };
    match Salvage::open(source.segments.clone(), wanted) {
        Ok(salvage) => Ok(salvage),
        Err(SalvageError::Store(error)) => Err(error.into()),
        Err(SalvageError::LogIsCut(cut)) => {
            let wanted = SalvageOptions { cut_log: true, ..wanted };
            let before = Salvage::open(source.segments.clone(), wanted).ok();
            let newest = before.and_then(|salvage| names(&salvage).newest_ms).map(time);
            let newest = newest.map_or_else(String::new, |newest| {
                format!(" (its newest entry with a time is of {newest})")
            });
            let text = format!("{cut}{newest}; to salvage only that state, add --cut-log");
            Err(Failure::Refused(text))
        }
    }
}

fn names(salvage: &Salvage) -> SalvagedObjects {
    salvaged_objects(salvage.config(), &salvage.pool_id())
}

fn write_all(salvage: &Salvage, source: Source, to: &Path) -> Result<Report, Failure> {
    let known = names(salvage);
    let mut taken = HashSet::new();
    let mut objects = Vec::new();
    for volume in salvage.volumes() {
        if known.token_volume == Some(volume.id) {
            continue;
        }
        let named = known.objects.get(&volume.id);
        let object = write_volume(salvage, to, volume, named, &mut taken)?;
        objects.push(object);
    }
    let found: HashSet<u64> = objects.iter().map(|object| object.id).collect();
    for (id, named) in &known.objects {
        if salvage.is_lost(*id) && !found.contains(&id.0) {
            let object = Object {
                name: free_name(&named.name, id.0, &mut taken),
                kind: kind(named.snapshot),
                id: id.0,
                destroyed: named.destroyed,
                file: None,
                is_short: false,
                size_bytes: Some(named.size.0 * SECTOR_BYTES),
                written_bytes: 0,
                lost_bytes: named.size.0 * SECTOR_BYTES,
                lost_file: None,
                lost: Vec::new(),
            };
            objects.push(object);
        }
    }
    let mut losses = salvage.losses().to_vec();
    losses.extend(source.lacking);
    let orphans = salvage.orphans();
    if orphans.len() > ORPHANS_MAX {
        losses.push(format!(
            "{} of {} maps without a name are left out",
            orphans.len() - ORPHANS_MAX,
            orphans.len()
        ));
    }
    for orphan in orphans.iter().take(ORPHANS_MAX) {
        let name = format!("unnamed-{}", orphan.node);
        let size_bytes = orphan.span_blocks * BLOCK_BYTES;
        let written = file::write(to, &name, None, |sink| salvage.read_orphan(orphan, sink))?;
        objects.push(object(name, "unnamed", orphan.node, false, Some(size_bytes), written));
    }
    if known.unread > 0 {
        losses.push(format!("{} records of objects can't be parsed", known.unread));
    }
    let whole = objects.iter().all(Object::is_whole)
        && losses.is_empty()
        && salvage.cut().is_none()
        && salvage.lost_ids().is_empty();
    Ok(Report {
        pool: source.pool,
        pool_id: salvage.pool_id().iter().map(|byte| format!("{byte:02x}")).collect(),
        superblock_sequence: salvage.sequence(),
        log_records: salvage.followed(),
        log_cut: salvage.cut(),
        whole,
        objects,
        lost_ids: salvage.lost_ids().iter().map(|ids| (ids.start, ids.end - 1)).collect(),
        losses,
        notes: [source.notices, salvage.notes().to_vec()].concat(),
    })
}

fn write_volume(
    salvage: &Salvage,
    to: &Path,
    volume: SalvageVolume,
    named: Option<&SalvagedObject>,
    taken: &mut HashSet<String>,
) -> Result<Object, Failure> {
    let id = volume.id.0;
    let size_of = |named: &SalvagedObject| named.size.0 * SECTOR_BYTES;
    let stored = volume.size_blocks.map(|blocks| blocks * BLOCK_BYTES);
    // The store counts whole blocks of 4 KiB; the volume may end within the last.
    let size_bytes = match (stored, named.map(size_of)) {
        (Some(stored), Some(named)) if named.next_multiple_of(BLOCK_BYTES) == stored => Some(named),
        (stored, named) => stored.or(named),
    };
    let fallback = format!("{}-{id}", kind(volume.snapshot));
    let name = named.map_or(fallback, |named| named.name.clone());
    let name = free_name(&name, id, taken);
    let blocks = size_bytes.map(|bytes| bytes.div_ceil(BLOCK_BYTES));
    let written = file::write(to, &name, size_bytes, |sink| salvage.read(volume.id, blocks, sink))?;
    let destroyed = named.is_some_and(|named| named.destroyed);
    let mut object = object(name, kind(volume.snapshot), id, destroyed, size_bytes, written);
    if size_bytes.is_none() {
        // The original size is unknown.
        object.lost_bytes = object.lost_bytes.max(1);
    }
    Ok(object)
}

fn object(
    name: String,
    kind: &'static str,
    id: u64,
    destroyed: bool,
    size_bytes: Option<u64>,
    written: Written,
) -> Object {
    let Written { file, is_short, lost_file, written_bytes, lost_bytes, lost } = written;
    let file = Some(file);
    Object {
        name,
        kind,
        id,
        destroyed,
        file,
        is_short,
        size_bytes,
        written_bytes,
        lost_bytes,
        lost_file,
        lost,
    }
}

fn kind(snapshot: bool) -> &'static str {
    if snapshot { "snapshot" } else { "volume" }
}

/// Returns a name that no file has yet, even if case is ignored.
fn free_name(name: &str, id: u64, taken: &mut HashSet<String>) -> String {
    // The name of a volume group precedes a slash, which is not allowed in file names. The name of
    // a pod precedes colons, which some filesystems do not allow.
    let name = name.replace('/', "--").replace("::", "--");
    if taken.insert(name.to_ascii_lowercase()) {
        return name;
    }
    let other = format!("{name}.{id}");
    taken.insert(other.to_ascii_lowercase());
    other
}

fn text_of(report: &Report, to: &Path) -> String {
    let columns = [
        ("NAME", Align::Left),
        ("KIND", Align::Left),
        ("SIZE", Align::Right),
        ("WRITTEN", Align::Right),
        ("LOST", Align::Right),
    ];
    let rows: Vec<Vec<String>> = report
        .objects
        .iter()
        .map(|object| {
            let name = match object.destroyed {
                true => format!("{} (destroyed)", object.name),
                false => object.name.clone(),
            };
            let lost = match (&object.file, object.lost_bytes) {
                (None, _) => "all of it".into(),
                (_, 0) => "-".into(),
                (_, bytes) => human(bytes),
            };
            let size = object.size_bytes.map_or_else(|| "unknown".into(), human);
            vec![name, object.kind.into(), size, human(object.written_bytes), lost]
        })
        .collect();
    let mut text = table(&columns, &rows, "No volumes.");
    for object in report.objects.iter().filter(|object| object.is_short) {
        let name = &object.name;
        text.push_str(&format!(
            "Note: the filesystem does not support a file as long as {name}.\n"
        ));
    }
    for note in &report.notes {
        text.push_str(&format!("Note: {note}.\n"));
    }
    for (first, last) in &report.lost_ids {
        text.push_str(&format!("Lost: any volume with an id from {first} to {last}.\n"));
    }
    if let Some(cut) = &report.log_cut {
        text.push_str(&format!("Lost: {cut}.\n"));
    }
    for loss in &report.losses {
        text.push_str(&format!("Lost: {loss}.\n"));
    }
    let end = match report.whole {
        true => "Everything was intact.",
        false => "Data is lost: see above, and the .lost files.",
    };
    text.push_str(&format!("{end} Written to {}.\n", to.display()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_has_a_unique_name_in_one_directory() {
        let mut taken = HashSet::new();
        let names = ["db", "DB", "vg/db", "vg--db", "vg/db.1", "p::db"];
        let files = names.map(|name| free_name(name, 7, &mut taken));
        assert_eq!(files, ["db", "DB.7", "vg--db", "vg--db.7", "vg--db.1", "p--db"]);
    }
}
