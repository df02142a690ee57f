//! The seeds of repetitions, and their directories.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use weir_results::{Repetitions, Summary, Value};

use crate::failure::Failure;

/// The most repetitions of one command.
const MOST: u64 = 10_000;

/// Seeds as on the command line: `1..8`, both included, or `1,2,5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seeds(Vec<u64>);

impl Seeds {
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        self.0.iter().copied()
    }

    /// Checks that `directory` has no results that a comparison would count among those of these seeds.
    pub(super) fn check(&self, directory: &Path) -> Result<(), Failure> {
        let refuse = |found: &str| {
            Err(Failure::Failed(format!(
                "{} has {found} of an earlier run, which `weir compare` would count too; remove it, or name another directory",
                directory.display()
            )))
        };
        if directory.join("summary.json").exists() {
            return refuse("summary.json");
        }
        let wanted: Vec<String> = self.iter().map(name).collect();
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !wanted.contains(&name) && entry.path().join("summary.json").exists() {
                return refuse(&name);
            }
        }
        Ok(())
    }
}

/// Writes the means and intervals beside the directories of the seeds.
pub(super) fn write(
    directory: &Path,
    repetitions: &Repetitions,
    summaries: &[&Summary],
    values: &[&[(String, Value)]],
) -> Result<(), Failure> {
    let json = repetitions.to_json().map_err(Failure::of)?;
    for (name, text) in [
        ("repetitions.json", json),
        ("report.html", repetitions.to_html(summaries, values)),
    ] {
        let path = directory.join(name);
        fs::write(&path, text)
            .map_err(|error| Failure::Failed(format!("{}: {error}", path.display())))?;
    }
    Ok(())
}

/// Returns the directory of a seed's results.
pub(super) fn directory(of_all: &Path, seed: u64) -> PathBuf {
    of_all.join(name(seed))
}

fn name(seed: u64) -> String {
    format!("seed-{seed}")
}

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` must be like 1..8, both included, or 1,2,5");
        let number = |text: &str| text.trim().parse::<u64>().map_err(|_| wrong());
        let seeds: Vec<u64> = match text.split_once("..") {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if last.checked_sub(first).is_none_or(|more| more >= MOST) {
                    return Err(format!("{}; at most {MOST} of them", wrong()));
                }
                (first..=last).collect()
            }
            None => text.split(',').map(number).collect::<Result<_, _>>()?,
        };
        let mut sorted = seeds.clone();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.len() < seeds.len() {
            return Err(format!("`{text}` has a seed twice"));
        }
        Ok(Self(seeds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_includes_both_ends() {
        let seeds = |text: &str| text.parse::<Seeds>().map(|seeds| seeds.0);
        assert_eq!(seeds("1..4"), Ok(vec![1, 2, 3, 4]));
        assert_eq!(seeds("7"), Ok(vec![7]));
        assert_eq!(seeds("3, 1,9"), Ok(vec![3, 1, 9]));
        for wrong in ["", "4..1", "1..", "a", "1,1", "1..999999", "-1..2"] {
            assert!(seeds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn results_of_other_runs_are_not_mixed_in() {
        let folder = tempfile::tempdir().unwrap();
        let seeds: Seeds = "1..2".parse().unwrap();
        seeds.check(folder.path()).unwrap();
        seeds.check(&folder.path().join("none")).unwrap();
        let older = |seed| {
            let path = directory(folder.path(), seed);
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("summary.json"), "").unwrap();
        };
        older(2);
        seeds.check(folder.path()).unwrap();
        older(3);
        let error = seeds.check(folder.path()).unwrap_err().to_string();
        assert!(error.contains("seed-3"), "{error}");
    }
}
