//! The dependencies: licences we may use, nothing twice that is not accounted for.

use crate::support::metadata;
use std::collections::BTreeMap;

/// Licences that permit use in a program under MIT or Apache-2.0.
const PERMISSIVE: [&str; 11] = [
    "MIT",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    // Data: the certificates of webpki-roots.
    "CDLA-Permissive-2.0",
    "Zlib",
    "Unicode-3.0",
    "0BSD",
    "Unlicense",
];

#[test]
fn every_licence_is_permissive() {
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or("");
        let terms = licence.replace(['(', ')'], " ").replace('/', " OR ");
        // Each AND part needs one permissive alternative.
        let is_permissive = terms
            .split(" AND ")
            .all(|part| part.split(" OR ").any(|choice| PERMISSIVE.contains(&choice.trim())));
        assert!(is_permissive, "{}: {licence:?}", package["name"]);
    }
}

#[test]
fn the_parsers_of_hostile_input_are_there_once() {
    let metadata = metadata();
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        versions.entry(name).or_default().push(package["version"].as_str().unwrap());
    }
    for name in
        ["gimli", "object", "iced-x86", "perf-event-open-sys", "rustix", "crossbeam-channel"]
    {
        assert_eq!(versions[name].len(), 1, "{name}: {:?}", versions[name]);
    }
}

#[test]
fn collector_and_analyzer_do_not_know_each_other() {
    let metadata = metadata();
    let needs = |name: &str| -> Vec<String> {
        let packages = metadata["packages"].as_array().unwrap();
        let package = packages.iter().find(|package| package["name"] == name).unwrap();
        let dependencies = package["dependencies"].as_array().unwrap();
        // Tests and benches may need more than the crate.
        let own = dependencies.iter().filter(|it| it["kind"].is_null());
        own.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!needs("dataspace-collector").contains(&"dataspace-analyzer".to_owned()));
    assert!(!needs("dataspace-analyzer").contains(&"dataspace-collector".to_owned()));
    for crate_name in ["gimli", "iced-x86", "object"] {
        assert!(!needs("dataspace-collector").contains(&crate_name.to_owned()));
    }
    for crate_name in ["libc", "rustix", "perf-event-open-sys"] {
        assert!(!needs("dataspace-analyzer").contains(&crate_name.to_owned()));
    }
}
