//! The parts of the code that determine a run's results, and a digest of each.
//!
//! | part | contents |
//! |---|---|
//! | `simulator` | the crates that every run uses, the registry's crates below them, and what makes rows of results |
//! | `congestion/NAME` | the modules of an algorithm, and those of the algorithms that it is built from |
//! | `dcudp`, `plugin`, `quic`, `sed`, `tcon` | crates that a run uses if its scenario says so, and the registry's crates below them |
//!
//! An algorithm is built from another one if its code names the other's module. Code outside of the algorithms'
//! modules may name them in [`DISPATCHERS`] only; a module that other code names counts as part of the simulator.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The part that every run uses.
const SIMULATOR: &str = "simulator";

/// Crates of which every run uses something.
const EVERY_RUN: [&str; 12] = [
    "units",
    "wire",
    "counters",
    "congestion",
    "fabric",
    "policy",
    "scenario",
    "scenario-derive",
    "tcp",
    "results",
    "network",
    "sim",
];

/// Crates of which a run uses nothing unless its scenario says so.
const SOME_RUNS: [&str; 5] = ["dcudp", "plugin", "quic", "sed", "tcon"];

/// What makes rows of results, in this crate.
const ROWS: [&str; 3] = [
    "sweep/src/execution.rs",
    "sweep/src/row.rs",
    "sweep/src/steady.rs",
];

/// The crate whose modules are algorithms, and the file that lists them.
const CONGESTION: &str = "congestion";
const LIST: &str = "congestion/src/lib.rs";
const LIST_BEGINS: &str = "\nalgorithms! {";
const LIST_ENDS: &str = "}";

/// Files outside of the algorithms' modules that name some of these: the registry, for the algorithm of a scenario that
/// names none, which is written into the scenario when that is read; calls without a vtable, which reach an algorithm
/// only if the run uses it.
const DISPATCHERS: [&str; 2] = ["congestion/src/registry/mod.rs", "congestion/src/direct.rs"];

/// Returns the digest of each part, by name.
///
/// # Errors
/// A file cannot be read; the list of algorithms is not where it should be.
pub(crate) fn digests(crates: &Path) -> io::Result<BTreeMap<String, String>> {
    let lock = fs::read_to_string(crates.join("../Cargo.lock"))?;
    let mut every = Vec::new();
    for name in EVERY_RUN {
        every.extend(sources(crates, &format!("{name}/src"))?);
    }
    for file in ROWS {
        every.push((file.to_owned(), fs::read_to_string(crates.join(file))?));
    }
    let algorithms = split_off_algorithms(&mut every)?;

    let mut parts = BTreeMap::new();
    let below = locked(&lock, &EVERY_RUN, &SOME_RUNS);
    parts.insert(SIMULATOR.to_owned(), digest(every.iter(), &below));
    for name in algorithms.keys() {
        let used = built_from(name, &algorithms);
        let files = used.iter().flat_map(|name| &algorithms[name]);
        let part = format!("{CONGESTION}/{}", name.replace('_', "-"));
        parts.insert(part, digest(files, ""));
    }
    for name in SOME_RUNS {
        let files = sources(crates, &format!("{name}/src"))?;
        let below = locked(&lock, &[name], &[]);
        parts.insert(name.to_owned(), digest(files.iter(), &below));
    }
    Ok(parts)
}

/// A source's path below `crates`, and its text.
type Source = (String, String);

/// Returns the Rust sources below a folder, without unit tests in files of their own, in a fixed order.
fn sources(crates: &Path, folder: &str) -> io::Result<Vec<Source>> {
    let mut paths = Vec::new();
    collect(&crates.join(folder), &mut paths)?;
    paths.sort();
    let read = |path: PathBuf| {
        let below = path.strip_prefix(crates).unwrap_or(&path);
        Ok((
            below.to_string_lossy().into_owned(),
            fs::read_to_string(&path)?,
        ))
    };
    paths.into_iter().map(read).collect()
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_stem().is_some_and(|stem| stem == "tests") {
            continue;
        }
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    Ok(())
}

/// Takes the algorithms' modules, and the list of them, out of the sources of all crates.
fn split_off_algorithms(sources: &mut Vec<Source>) -> io::Result<BTreeMap<String, Vec<Source>>> {
    let list = sources.iter_mut().find(|(path, _)| path == LIST);
    let names = list.and_then(|(_, text)| take_list(text));
    let Some(names) = names.filter(|names| !names.is_empty()) else {
        return Err(invalid(format!(
            "{LIST} has no list of algorithms: `algorithms! {{ … }}`"
        )));
    };
    let module = |path: &str| {
        let inside = path.strip_prefix("congestion/src/")?;
        let name = inside.split(['/', '.']).next()?;
        names.contains(name).then(|| name.to_owned())
    };
    let outside = |(path, _): &&Source| module(path).is_none() && !DISPATCHERS.contains(&&path[..]);
    let own = sources.iter().filter(outside);
    let shared: BTreeSet<String> = own
        .flat_map(|(path, text)| named(path, text, &names))
        .collect();
    let mut algorithms: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    let mut rest = Vec::new();
    for source in sources.drain(..) {
        match module(&source.0) {
            Some(name) => {
                if shared.contains(&name) {
                    rest.push(source.clone());
                }
                algorithms.entry(name).or_default().push(source);
            }
            None => rest.push(source),
        }
    }
    *sources = rest;
    match names
        .iter()
        .find(|name| !algorithms.contains_key(&name[..]))
    {
        None => Ok(algorithms),
        Some(name) => Err(invalid(format!(
            "{LIST} lists `{name}`, which has no source"
        ))),
    }
}

fn invalid(message: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

/// Takes the list of algorithms out of the text of the file that has it. Returns their modules.
fn take_list(text: &mut String) -> Option<BTreeSet<String>> {
    let begin = text.find(LIST_BEGINS)? + LIST_BEGINS.len();
    let end = begin + text[begin..].find(LIST_ENDS)?;
    let list: String = text.drain(begin..end).collect();
    let lines = list.lines().filter_map(|line| line.split("//").next());
    let names = lines.flat_map(|line| line.split(',')).map(str::trim);
    Some(
        names
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
    )
}

/// Returns which of these modules a source of their crate names.
fn named(path: &str, text: &str, modules: &BTreeSet<String>) -> Vec<String> {
    if !path.starts_with("congestion/") {
        // They are private in their crate.
        return Vec::new();
    }
    let code = code(text);
    let is_name = |character: char| character.is_alphanumeric() || character == '_';
    let words: BTreeSet<&str> = code.split(|character| !is_name(character)).collect();
    let named = modules.iter().filter(|name| words.contains(&name[..]));
    named.cloned().collect()
}

/// Returns a source without lines of comment, and without texts: names of algorithms in these are no code. A line with
/// a text that does not end there stays whole.
fn code(text: &str) -> String {
    let line = |line: &str| {
        let line = line.replace("\\\"", "");
        if line.trim_start().starts_with("//") {
            return String::new();
        }
        if line.matches('"').count() % 2 == 1 {
            return line;
        }
        let outside = line.split('"').step_by(2);
        outside.collect::<Vec<_>>().join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns an algorithm and all those that it is built from.
fn built_from(name: &str, algorithms: &BTreeMap<String, Vec<Source>>) -> BTreeSet<String> {
    let modules: BTreeSet<String> = algorithms.keys().cloned().collect();
    let mut found = BTreeSet::new();
    let mut left = vec![name.to_owned()];
    while let Some(name) = left.pop() {
        let sources = algorithms[&name].iter();
        if found.insert(name.clone()) {
            left.extend(sources.flat_map(|(path, text)| named(path, text, &modules)));
        }
    }
    found
}

/// Returns the entries of the lock file for the registry's packages below these crates, without those below crates that
/// are `apart`.
fn locked(lock: &str, crates: &[&str], apart: &[&str]) -> String {
    let mut entries: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for entry in lock.split("[[package]]\n").skip(1) {
        let name = value(entry, "name").unwrap_or_default();
        entries.entry(name).or_default().push(entry);
    }
    let apart: Vec<String> = apart.iter().map(|name| format!("weir-{name}")).collect();
    let mut found = BTreeSet::new();
    let mut left: Vec<String> = crates.iter().map(|name| format!("weir-{name}")).collect();
    while let Some(wanted) = left.pop() {
        let mut words = wanted.split(' ');
        let (name, version) = (words.next().unwrap_or_default(), words.next());
        if apart.iter().any(|apart| apart == name) {
            continue;
        }
        for entry in entries.get(name).into_iter().flatten() {
            let is_wanted = version.is_none_or(|version| value(entry, "version") == Some(version));
            if is_wanted && found.insert(*entry) {
                let below = entry.split("dependencies = [").nth(1).unwrap_or_default();
                left.extend(below.lines().filter_map(|line| {
                    let line = line.trim().strip_prefix('"')?;
                    Some(line.split('"').next()?.to_owned())
                }));
            }
        }
    }
    let registry = found
        .into_iter()
        .filter(|entry| entry.contains("\nsource = "));
    registry.collect()
}

/// Returns the value of a key in an entry of the lock file.
fn value<'e>(entry: &'e str, key: &str) -> Option<&'e str> {
    let line = |line: &'e str| {
        line.strip_prefix(key)?
            .strip_prefix(" = \"")?
            .strip_suffix('"')
    };
    entry.lines().find_map(line)
}

/// Returns a digest of sources and of the packages below them.
fn digest<'s>(sources: impl Iterator<Item = &'s Source>, packages: &str) -> String {
    let mut hash = Sha256::new();
    let texts = sources.flat_map(|(path, text)| [&path[..], &text[..]]);
    for text in texts.chain([packages]) {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    let digest = hash.finalize();
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Returns the folders and files from which the digests are made.
pub(crate) fn inputs(crates: &Path) -> Vec<PathBuf> {
    let folders = EVERY_RUN
        .iter()
        .chain(&SOME_RUNS)
        .map(|name| format!("{name}/src"));
    let files = ROWS.iter().map(|file| (*file).to_owned());
    let below = folders.chain(files).chain(["../Cargo.lock".to_owned()]);
    below.map(|path| crates.join(path)).collect()
}
