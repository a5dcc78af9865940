//! Order of the binary's rooms.

#[path = "support/rooms.rs"]
#[allow(dead_code, reason = "the crates' tests use the rest")]
mod rules;

use rules::Sources;
use std::path::Path;

/// The rooms, from the lowest.
const ROOMS: [&str; 50] = [
    "text",
    "lock",
    "column",
    "journal",
    "log_queue",
    "diagnostic",
    "exit",
    "interrupt",
    "pager",
    "ownership",
    "package",
    "way_out",
    "memory_bound",
    "expendable",
    "config",
    "cli::value",
    "header",
    "bundled",
    "file_source",
    "debuginfod",
    "selection",
    "arrangement",
    "table",
    "session",
    "export",
    "answer",
    "layout",
    "annotation",
    "measure",
    "sharing",
    "broker",
    "tui",
    "calibration",
    "demo",
    "daemon::session::spec",
    "worker",
    "page",
    "daemon::limit",
    "daemon::relay",
    "daemon::client",
    "daemon::session",
    "daemon::config_file",
    "daemon::systemd",
    "daemon::state",
    "daemon::http",
    "daemon",
    "client",
    "cli",
    "manual",
    "commands",
];

#[test]
fn rooms_of_the_binary_import_from_those_before_them_only() {
    let binary = Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert_eq!(binary.upward_imports(&ROOMS), [""; 0]);
}

#[test]
fn few_files_of_the_binary_import_each_other_in_a_circle() {
    let binary = Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert_eq!(binary.large_circles(), [""; 0]);
}

#[test]
fn doc_comments_of_the_binary_open_with_a_phrase() {
    let binary = Sources::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert_eq!(binary.clauses_for_titles(), [""; 0]);
}
