//! Crates depend on lower layers only, as in the table in CONTRIBUTING.md.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns cargo's output; it compiles nothing and queries no registry.
fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO"))
        .args(["--offline", "--locked"])
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the crates in the order of the table: from the lowest layer up, each from left to right.
fn floors() -> Vec<String> {
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let (_, table) = text.split_once("## Floors").unwrap();
    let rows = table.lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        cells.next()?.parse::<u32>().ok()?;
        cells.next()
    });
    rows.flat_map(|crates| {
        crates
            .split(", ")
            .map(|name| name.trim_matches('`').to_owned())
    })
    .collect()
}

/// Returns a package's name in the table.
fn short(package: &str) -> &str {
    package.strip_prefix("weir-").unwrap_or(package)
}

#[test]
fn every_crate_depends_on_lower_floors_only() {
    let floors = floors();
    let place = |name: &str| floors.iter().position(|other| other == name);
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let mut wrong = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = short(package["name"].as_str().unwrap());
        let Some(own) = place(name) else {
            wrong.push(format!("{name} is in no row"));
            continue;
        };
        for dependency in package["dependencies"].as_array().unwrap() {
            let is_used = dependency["kind"].is_null() && !dependency["path"].is_null();
            let other = short(dependency["name"].as_str().unwrap());
            if is_used && place(other).is_none_or(|other| other >= own) {
                wrong.push(format!("{name} depends on {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn published_crates_need_published_ones_only() {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let (published, others): (Vec<_>, Vec<_>) = packages
        .iter()
        .partition(|package| package["publish"].is_null());
    let is_other = |name: &Value| others.iter().any(|other| other["name"] == *name);
    assert!(!is_other(&Value::from("weir-rpc")) && is_other(&Value::from("weir")));
    let mut wrong = Vec::new();
    for package in published {
        for dependency in package["dependencies"].as_array().unwrap() {
            // Cargo leaves out development dependencies without a version.
            let is_used = dependency["kind"].is_null() || dependency["req"] != "*";
            let is_wrong = is_other(&dependency["name"]) || dependency["req"] == "*";
            if is_used && is_wrong {
                wrong.push(format!("{} needs {}", package["name"], dependency["name"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_client_and_server_alone_compile_few_crates() {
    // The RPC adds none.
    for package in ["weir-net", "weir-rpc"] {
        few_crates(package, 65);
    }
    // The vocabulary of HTTP, and `h3` with what it needs of `futures`.
    few_crates("weir-h3", 76);
}

fn few_crates(package: &str, most: usize) {
    let tree = cargo(&["tree", "-p", package, "-e", "normal", "--prefix", "none"]);
    let crates: BTreeSet<_> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .filter(|name| !name.is_empty() && !name.starts_with("weir-"))
        .collect();
    assert!((30..=most).contains(&crates.len()), "{}", crates.len());
    for unwanted in [
        "toml",
        "hyper",
        "h2",
        "tokio-rustls",
        "prometheus-client",
        "rcgen",
    ] {
        assert!(!crates.contains(unwanted), "{unwanted}");
    }
    assert!(!tree.contains("weir-scenario"));
}
