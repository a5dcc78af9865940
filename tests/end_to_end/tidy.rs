//! The rules of CONTRIBUTING.md that a machine can check.

use crate::support::root;
use std::path::{Path, PathBuf};

/// Documents that one reads from beginning to end, and how many lines they may have.
const BOUNDED: [(&str, usize); 2] = [("README.md", 200), ("ARCHITECTURE.md", 300)];

/// The longest line of their prose, in characters; tables and code may be wider.
const MAX_WIDTH: usize = 120;

/// Files of the project whose names end so.
fn files(ending: &str) -> Vec<PathBuf> {
    fn walk(dir: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            // Programs under test are data, not part of the project.
            let is_ours = !["target", "programs"].contains(&&*name) && !name.starts_with('.');
            if path.is_dir() && is_ours {
                walk(&path, ending, found);
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), ending, &mut found);
    found
}

fn sources() -> Vec<PathBuf> {
    files(".rs")
}

/// Tells whether a file is of a crate's `src`, wherever the checkout is.
fn is_product(path: &Path) -> bool {
    path.strip_prefix(root())
        .is_ok_and(|path| path.components().any(|part| part.as_os_str() == "src"))
}

#[test]
fn every_file_opens_with_its_job() {
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("//!"), "{} does not open with //!", path.display());
    }
}

#[test]
fn unsafe_code_is_only_where_it_may_be() {
    for path in sources() {
        let is_sys = path.to_string_lossy().contains("collector/src/sys/");
        let text = std::fs::read_to_string(&path).unwrap();
        let has_unsafe = text.lines().any(|line| {
            let code = line.split("//").next().unwrap_or("");
            code.contains("unsafe {") || code.contains("unsafe fn") || code.contains("unsafe impl")
        });
        // The counting allocator of a test is the one exception: GlobalAlloc is an unsafe trait. Programs that are measured
        // are as others write them.
        let is_measured = path.to_string_lossy().contains("benches/naming/");
        let is_exempt =
            is_sys || is_measured || text.contains("impl GlobalAlloc") || path.ends_with("tidy.rs");
        assert!(!has_unsafe || is_exempt, "{} has unsafe code", path.display());
    }
}

#[test]
fn no_time_is_measured_by_a_clock_that_can_be_set() {
    // What is written into files for people, and the age of a file beside that of a process.
    let is_allowed = ["export/", "perf_data/write/", "file_source/code_names.rs"];
    for path in sources().into_iter().filter(|path| is_product(path)) {
        let name = path.to_string_lossy();
        let text = std::fs::read_to_string(&path).unwrap();
        let has_wall_clock = text.contains("SystemTime") || text.contains("ClockId::Realtime");
        assert!(!has_wall_clock || is_allowed.iter().any(|it| name.contains(it)), "{name}");
    }
}

#[test]
fn files_stay_readable() {
    for path in sources().into_iter().filter(|path| is_product(path)) {
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or("");
        let n_lines = code.lines().count();
        assert!(n_lines <= 500, "{} has {n_lines} lines: split it", path.display());
    }
}

#[test]
fn documents_stay_short() {
    for (name, max_lines) in BOUNDED {
        let text = std::fs::read_to_string(root().join(name)).unwrap();
        let n_lines = text.lines().count();
        assert!(n_lines <= max_lines, "{name} has {n_lines} lines: move some below docs/");
        let mut is_code = false;
        for line in text.lines() {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            let may_be_wide = is_code || line.starts_with('|');
            assert!(may_be_wide || line.chars().count() <= MAX_WIDTH, "{name}: {line}");
        }
    }
}

#[test]
fn links_between_documents_lead_somewhere() {
    for path in files(".md") {
        let text = std::fs::read_to_string(&path).unwrap();
        let links = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
        for (link, _) in links.filter(|(link, _)| !link.contains("://")) {
            let file = link.split('#').next().unwrap_or("");
            let target = path.parent().unwrap().join(file);
            assert!(file.is_empty() || target.exists(), "{}: {link}", path.display());
        }
    }
}

#[test]
fn every_decision_is_in_the_index() {
    let dir = root().join("docs/design");
    let index = std::fs::read_to_string(dir.join("README.md")).unwrap();
    for entry in std::fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        let is_listed = name == "README.md" || index.contains(&format!("]({name})"));
        assert!(is_listed, "{name} is not in docs/design/README.md");
    }
}
