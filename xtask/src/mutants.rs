//! `cargo xtask mutants`: deliberate faults, each of which some test must notice.
//!
//! `xtask/mutants/*.toml` lists them by crate: what is wrong, the edits that cause it, and the
//! command that must then fail. They are applied one at a time to a copy of the repository below
//! the target directory, which has its own target directory, so that only code that depends on the
//! edit is recompiled. Each command must first pass without a fault.
//!
//! An edit's text must occur in its file exactly once: if code moves, the mutant fails, as does a
//! unit test of this module, instead of being skipped silently.

use std::collections::{BTreeMap, HashSet};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde::Deserialize;

/// The timeout of a command. A fault that makes it hang was not noticed by any test.
const PATIENCE: Duration = Duration::from_secs(600);
/// The timeout of the compiler.
const BUILD_PATIENCE: Duration = Duration::from_secs(3600);
const POLL: Duration = Duration::from_millis(100);
/// The number of output lines shown if a command did not do what it must.
const LINES_SHOWN: usize = 20;

/// The selected mutants.
#[derive(Args)]
pub struct Options {
    /// Only those whose names contain one of these, separated by commas.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// List them, and do nothing.
    #[arg(long)]
    list: bool,
    /// Do not run the commands without a fault first.
    #[arg(long)]
    trust: bool,
}

/// A text in a file, and its replacement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    file: String,
    find: String,
    replace: String,
}

/// A deliberate fault.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mutant {
    name: String,
    /// What is wrong.
    what: String,
    edits: Vec<Edit>,
    /// The arguments of cargo that must fail; `--profile checked` is added to the first of them.
    run: Vec<String>,
    /// Packages whose programs the command starts. They are then in `../target/checked`.
    #[serde(default)]
    programs: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// The result of a command.
enum Ended {
    Passed,
    Failed,
    Hung,
}

/// Returns all mutants, in the order of their files and within these.
fn read_all(root: &Path) -> Result<Vec<Mutant>> {
    let directory = root.join("xtask/mutants");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&directory)
        .with_context(|| directory.display().to_string())?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    paths.sort();
    let mut all = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        let list: List = toml::from_str(&text).with_context(|| path.display().to_string())?;
        all.extend(list.mutant);
    }
    Ok(all)
}

/// Returns the files that a mutant changes, after the change.
fn mutated(root: &Path, mutant: &Mutant) -> Result<BTreeMap<String, String>> {
    let mut files: BTreeMap<String, String> = BTreeMap::new();
    for edit in &mutant.edits {
        let text = match files.remove(&edit.file) {
            Some(text) => text,
            None => {
                std::fs::read_to_string(root.join(&edit.file)).with_context(|| edit.file.clone())?
            }
        };
        let count = text.matches(&edit.find).count();
        ensure!(count == 1, "{}: its text occurs {count} times in {}", mutant.name, edit.file);
        files.insert(edit.file.clone(), text.replacen(&edit.find, &edit.replace, 1));
    }
    Ok(files)
}

/// Applies the mutants one after the other. Returns false if one was not noticed.
pub fn run(root: &Path, options: &Options) -> Result<bool> {
    let mut mutants = read_all(root)?;
    if !options.only.is_empty() {
        let is_meant = |mutant: &Mutant| options.only.iter().any(|name| mutant.name.contains(name));
        mutants.retain(is_meant);
    }
    if options.list {
        for mutant in &mutants {
            println!("{:<36} {}", mutant.name, mutant.what);
        }
        return Ok(true);
    }
    let scratch = Scratch::new(root)?;
    let (mut passed, mut failed) = (0, 0);
    let mut sound: BTreeMap<Vec<String>, bool> = BTreeMap::new();
    for mutant in &mutants {
        let start = Instant::now();
        if !options.trust && !sound.contains_key(&mutant.run) {
            let passes = scratch.builds_programs(mutant)?
                && matches!(scratch.cargo(&mutant.run, PATIENCE)?, Ended::Passed);
            sound.insert(mutant.run.clone(), passes);
        }
        let verdict = match sound.get(&mutant.run) {
            Some(false) => "its command fails without the mutant".to_string(),
            _ => scratch.judge(mutant)?,
        };
        let good = verdict == CAUGHT;
        (passed, failed) = (passed + u32::from(good), failed + u32::from(!good));
        let seconds = start.elapsed().as_secs();
        println!("{:<36} {verdict} ({seconds} s)", mutant.name);
        if !good {
            println!("  {}: cargo {}", mutant.what, mutant.run.join(" "));
            scratch.show_output()?;
        }
    }
    println!("{passed} passed, {failed} failed");
    Ok(failed == 0)
}

const CAUGHT: &str = "caught";

/// The copy to which faults are applied.
struct Scratch {
    root: PathBuf,
    tree: PathBuf,
    target: PathBuf,
    output: PathBuf,
}

/// Removes the files of a copy that are not among these: a module that has moved would exist twice.
fn forget_others(tree: &Path, files: &[String]) -> Result<()> {
    let kept: HashSet<PathBuf> = files.iter().map(|file| tree.join(file)).collect();
    let mut folders = vec![tree.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else if !kept.contains(&entry.path()) {
                std::fs::remove_file(entry.path())?;
            }
        }
    }
    Ok(())
}

impl Scratch {
    /// Updates the copy: unchanged files keep their times, so that they are not recompiled.
    fn new(root: &Path) -> Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), Into::into);
        let base = target.join("mutants");
        let scratch = Self {
            root: root.to_path_buf(),
            tree: base.join("tree"),
            target: base.join("target"),
            output: base.join("output.txt"),
        };
        std::fs::create_dir_all(&scratch.tree)?;
        let files = scratch.listed(root)?;
        forget_others(&scratch.tree, &files)?;
        for file in files {
            scratch.copy(&file)?;
        }
        Ok(scratch)
    }

    fn listed(&self, root: &Path) -> Result<Vec<String>> {
        let out = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .context("git could not be started")?;
        ensure!(out.status.success(), "git ls-files failed");
        let names = String::from_utf8(out.stdout)?;
        Ok(names.split('\0').filter(|name| !name.is_empty()).map(String::from).collect())
    }

    fn copy(&self, file: &str) -> Result<()> {
        let from = self.root.join(file);
        // git also lists deleted files whose deletion is not committed yet.
        if !from.is_file() {
            return Ok(());
        }
        self.put(file, &std::fs::read(from)?)
    }

    fn put(&self, file: &str, bytes: &[u8]) -> Result<()> {
        let to = self.tree.join(file);
        if std::fs::read(&to).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        if let Some(parent) = to.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(&to, bytes).with_context(|| to.display().to_string())
    }

    /// Returns the result of a mutant.
    fn judge(&self, mutant: &Mutant) -> Result<String> {
        let files = mutated(&self.root, mutant)?;
        for (file, text) in &files {
            self.put(file, text.as_bytes())?;
        }
        let verdict = self.verdict(mutant);
        for file in files.keys() {
            self.copy(file)?;
        }
        verdict
    }

    fn verdict(&self, mutant: &Mutant) -> Result<String> {
        // A fault that does not compile is noticed by the compiler, not by a test.
        let build = match mutant.run.first().map(String::as_str) {
            Some("test") => {
                [&mutant.run[..1], &["--no-run".to_string()], &mutant.run[1..]].concat()
            }
            Some("run") => {
                let own = mutant.run.iter().position(|word| word == "--");
                [&["build".to_string()], &mutant.run[1..own.unwrap_or(mutant.run.len())]].concat()
            }
            _ => bail!("{}: has neither a test nor a run", mutant.name),
        };
        if !matches!(self.cargo(&build, BUILD_PATIENCE)?, Ended::Passed)
            || !self.builds_programs(mutant)?
        {
            return Ok("does not build".to_string());
        }
        Ok(match self.cargo(&mutant.run, PATIENCE)? {
            Ended::Failed => CAUGHT.to_string(),
            Ended::Passed => "SURVIVED".to_string(),
            Ended::Hung => "hung, and no test failed".to_string(),
        })
    }

    /// Builds the programs that a mutant's command starts.
    fn builds_programs(&self, mutant: &Mutant) -> Result<bool> {
        let packages = mutant.programs.iter().flat_map(|name| ["-p", name.as_str()]);
        let build: Vec<String> = ["build"].into_iter().chain(packages).map(String::from).collect();
        Ok(mutant.programs.is_empty()
            || matches!(self.cargo(&build, BUILD_PATIENCE)?, Ended::Passed))
    }

    fn cargo(&self, words: &[String], patience: Duration) -> Result<Ended> {
        let (first, rest) = words.split_first().context("no command")?;
        let output = std::fs::File::create(&self.output)?;
        let mut child = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args([first.as_str(), "--quiet", "--profile", "checked"])
            .args(rest)
            .current_dir(&self.tree)
            .env("CARGO_TARGET_DIR", &self.target)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            // A separate process group, so that everything cargo has started ends with it.
            .process_group(0)
            .spawn()
            .context("cargo could not be started")?;
        let start = Instant::now();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(if status.success() { Ended::Passed } else { Ended::Failed });
            }
            if start.elapsed() > patience {
                let group = format!("-{}", child.id());
                Command::new("kill").args(["-9", "--", &group]).status()?;
                child.wait()?;
                return Ok(Ended::Hung);
            }
            std::thread::sleep(POLL);
        }
    }

    fn show_output(&self) -> Result<()> {
        let text = String::from_utf8_lossy(&std::fs::read(&self.output)?).into_owned();
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.len().saturating_sub(LINES_SHOWN);
        lines[first..].iter().for_each(|line| println!("    {line}"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_files_are_not_compiled() {
        let tree = std::env::temp_dir().join(format!("mutants-{}", std::process::id()));
        std::fs::create_dir_all(tree.join("src/old")).unwrap();
        for file in ["src/lib.rs", "src/old/mod.rs", "src/old.rs"] {
            std::fs::write(tree.join(file), "").unwrap();
        }
        forget_others(&tree, &["src/lib.rs".into(), "src/old.rs".into()]).unwrap();
        assert!(tree.join("src/lib.rs").exists() && tree.join("src/old.rs").exists());
        assert!(!tree.join("src/old/mod.rs").exists());
        std::fs::remove_dir_all(&tree).unwrap();
    }

    #[test]
    fn every_mutant_matches_the_code_and_names_its_test() {
        let root = crate::repository_root().unwrap();
        let mutants = read_all(&root).unwrap();
        assert!(mutants.len() >= 40, "{} mutants", mutants.len());
        let mut names = std::collections::BTreeSet::new();
        for mutant in &mutants {
            assert!(names.insert(&mutant.name), "{} exists twice", mutant.name);
            assert!(!mutant.what.is_empty() && !mutant.edits.is_empty());
            assert!(["test", "run"].contains(&mutant.run[0].as_str()), "{}", mutant.name);
            for (file, text) in mutated(&root, mutant).unwrap() {
                assert!(text != std::fs::read_to_string(root.join(&file)).unwrap(), "{file}");
            }
        }
    }
}
