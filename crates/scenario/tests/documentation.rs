//! `docs/scenario.md` lists every key, as the loader knows it.

use std::path::Path;

use weir_scenario::{Scenario, key_reference};

const BEGIN: &str =
    "<!-- The list of keys is written by the test documentation.rs: see below. -->\n";

/// With `UPDATE_DOCS=1` in the environment the list is written instead of compared.
#[test]
fn the_page_has_the_list_of_keys() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (text, list) = page.split_once(BEGIN).unwrap();
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{text}{BEGIN}\n{}", key_reference())).unwrap();
        return;
    }
    assert!(
        list.trim() == key_reference().trim(),
        "docs/scenario.md differs from the schema: UPDATE_DOCS=1 cargo test -p weir-scenario --test documentation"
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
