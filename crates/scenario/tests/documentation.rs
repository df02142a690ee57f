//! `docs/scenario.md`, `docs/policy.md`, `docs/deadlines.md` and `docs/tunnel.md` list every key of the schema.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use weir_scenario::{
    Scenario, access_key_reference, deadline_key_reference, key_reference, parse_access,
    parse_deadlines, parse_policy, policy_key_reference,
};

const BEGIN: &str =
    "<!-- The list of keys is written by the test documentation.rs: see below. -->\n";

#[test]
fn the_page_has_the_list_of_keys() {
    check("scenario.md", &key_reference());
}

#[test]
fn the_page_on_policies_has_the_list_of_keys() {
    check("policy.md", &policy_key_reference());
}

#[test]
fn the_page_on_deadlines_has_the_list_of_keys() {
    check("deadlines.md", &deadline_key_reference());
}

#[test]
fn the_page_on_tunnels_has_the_list_of_keys() {
    check("tunnel.md", &access_key_reference());
}

/// With `UPDATE_DOCS=1` in the environment the list is written instead of compared.
fn check(page: &str, reference: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let (text, list) = text.split_once(BEGIN).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{text}{BEGIN}\n{reference}")).unwrap();
        return;
    }
    assert!(
        list.trim() == reference.trim(),
        "docs/{page} differs from the schema: UPDATE_DOCS=1 cargo test -p weir-scenario --test documentation"
    );
}

#[test]
fn the_examples_in_the_page_load() {
    let page = include_str!("../../../docs/scenario.md");
    let mut count = 0;
    for block in page.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        if text.starts_with("title") {
            Scenario::parse("docs/scenario.md", text, &[])
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            count += 1;
        }
    }
    assert!(count >= 2);
}

#[test]
fn the_examples_of_policies_load() {
    let page = include_str!("../../../docs/policy.md");
    for block in page.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        parse_policy("docs/policy.md", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn the_examples_of_deadlines_load() {
    let page = include_str!("../../../docs/deadlines.md");
    for block in page.split("```toml\n").skip(1) {
        let text = block.split("```").next().unwrap();
        parse_deadlines("docs/deadlines.md", text)
            .unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}

#[test]
fn the_examples_of_access_policies_load() {
    let page = include_str!("../../../docs/tunnel.md");
    let blocks = page.split("```toml\n").skip(1);
    for text in blocks.filter_map(|block| block.split("```").next()) {
        parse_access("docs/tunnel.md", text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
}
