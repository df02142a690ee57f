//! The built files of the page are those of its sources.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

/// The sources beside the folder `src`.
const FILES: [&str; 6] = [
    "index.html",
    "package-lock.json",
    "package.json",
    "tsconfig.json",
    "vite.config.ts",
    "vite.report.config.ts",
];

fn add(page: &Path, folder: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(page.join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            add(page, &path, found);
        } else {
            found.push(path);
        }
    }
}

/// As `page/scripts/sources.mjs` computes it.
#[test]
fn the_built_files_are_those_of_the_sources() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("page");
    let mut files: Vec<String> = FILES.map(str::to_owned).to_vec();
    add(&page, "src", &mut files);
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(format!("{file}\n"));
        hash.update(fs::read(page.join(&file)).unwrap());
    }
    let digest: String = (hash.finalize().iter())
        .map(|byte| format!("{byte:02x}"))
        .collect();
    for folder in ["dist", "../../results/page-dist"] {
        let built = fs::read_to_string(page.join(folder).join("sources.sha256")).unwrap();
        assert_eq!(
            built.trim(),
            digest,
            "the built files in {folder} are stale: npm ci && npm run build in crates/studio/page"
        );
    }
}

#[test]
fn the_page_loads_nothing_from_elsewhere() {
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("page/dist");
    let page = fs::read_to_string(dist.join("index.html")).unwrap();
    assert!(page.contains("./studio.js") && page.contains("./studio.css"));
    for address in ["http://", "https://", "//cdn"] {
        assert!(!page.contains(address), "{address}");
    }
}
