//! Tests with copies of the sources, one of them changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;

/// Returns the digests of all parts after a change to a copy of the sources.
fn digests(change: impl FnOnce(&Path)) -> BTreeMap<String, String> {
    let place = TempDir::new().unwrap();
    let (real, copy) = (Path::new(".."), place.path().join("crates"));
    for input in built::inputs(real) {
        let below = input.strip_prefix(real).unwrap();
        copy_all(&input, &copy.join(below));
    }
    change(&copy);
    built::digests(&copy).unwrap()
}

fn copy_all(from: &Path, to: &Path) {
    if from.is_file() {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
        return;
    }
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        copy_all(&entry.path(), &to.join(entry.file_name()));
    }
}

fn edit(path: &Path, edit: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, edit(text)).unwrap();
}

/// Returns the names of the parts that a change changes, adds or removes.
fn changed_by(change: impl FnOnce(&Path)) -> String {
    let changed = digests(change);
    let text = |digests: &BTreeMap<String, String>| {
        let parts = digests
            .iter()
            .map(|(name, digest)| format!("{name}:{digest} "));
        CodeVersion(parts.collect())
    };
    let own = CodeVersion(Code::own().to_string());
    text(&changed).changed_since(&own).join(" ")
}

fn append(file: &str) -> impl FnOnce(&Path) {
    move |crates| edit(&crates.join(file), |text| text + "\nfn changed() {}\n")
}

fn add_algorithm(crates: &Path) {
    let folder = crates.join("congestion/src");
    fs::write(folder.join("vegas.rs"), "use crate::cubic::Cubic;").unwrap();
    edit(&folder.join("lib.rs"), |text| {
        text.replace("\n    newreno,", "\n    vegas, // the first\n    newreno,")
    });
}

#[test]
fn every_algorithm_is_a_part_of_its_own() {
    assert_eq!(changed_by(|_| ()), "");
    for algorithm in weir_congestion::algorithms() {
        let part = format!("congestion/{}", algorithm.name);
        assert!(Code::own().0.contains_key(&part), "{part}");
    }
    assert_eq!(changed_by(add_algorithm), "congestion/vegas");
    let expected = "congestion/dcudp congestion/dcudp-proportional congestion/dcudp-rtt-fair";
    for (file, parts) in [
        ("congestion/src/swift.rs", "congestion/swift"),
        (
            "congestion/src/dctcp.rs",
            "congestion/d2tcp congestion/dctcp",
        ),
        ("congestion/src/dcudp/rates.rs", expected),
        ("congestion/src/cubic/tests.rs", ""),
        ("congestion/src/loss_window.rs", "simulator"),
        ("congestion/src/registry/mod.rs", "simulator"),
        ("fabric/src/lib.rs", "simulator"),
        ("sweep/src/steady.rs", "simulator"),
        ("dcudp/src/lib.rs", "dcudp"),
        ("sed/src/lib.rs", "sed"),
    ] {
        assert_eq!(changed_by(append(file)), parts, "{file}");
    }
}

/// Shared code that names an algorithm makes it a part of every run.
#[test]
fn an_algorithm_that_the_simulator_names_counts_as_part_of_it() {
    let name_swift = |crates: &Path| {
        edit(&crates.join("congestion/src/pacing.rs"), |text| {
            text + "\nuse crate::swift;\n"
        });
    };
    let before = digests(name_swift);
    let after = digests(|crates| {
        name_swift(crates);
        append("congestion/src/swift.rs")(crates);
    });
    assert_ne!(before["simulator"], after["simulator"]);
}

#[test]
fn packages_of_the_registry_count_where_they_are_used() {
    let newer = |name: &str| {
        let name = format!("name = \"{name}\"\nversion = \"");
        move |crates: &Path| {
            edit(&crates.join("../Cargo.lock"), |lock| {
                assert!(lock.contains(&name));
                lock.replace(&name, &format!("{name}9"))
            });
        }
    };
    assert_eq!(changed_by(newer("axum")), "");
    assert_eq!(changed_by(newer("parquet")), "simulator");
    assert_eq!(changed_by(newer("rustls")), "quic");
    assert_eq!(changed_by(newer("aws-lc-rs")), "dcudp quic");
}

#[test]
fn a_list_of_algorithms_that_is_not_found_is_an_error() {
    let place = TempDir::new().unwrap();
    let copy = place.path().join("crates");
    for input in built::inputs(Path::new("..")) {
        copy_all(&input, &copy.join(input.strip_prefix("..").unwrap()));
    }
    edit(&copy.join("congestion/src/lib.rs"), |text| {
        text.replace("\nalgorithms! {", "\nother! {")
    });
    let error = built::digests(&copy).unwrap_err().to_string();
    assert!(error.contains("no list of algorithms"), "{error}");
}
