//! What library functions touch, by the arguments of the program that calls them: held to where the
//! program says its objects are.

use crate::support::{Recorded, compile, last_snapshot, record};
use serde_json::Value;

/// An array of structures, and the member of each that is meant.
struct Place {
    start: u64,
    len_bytes: u64,
    element_bytes: u64,
    member: (u64, u64),
}

/// How many structures there are of each sort.
const N_ELEMENTS: u64 = 512;

/// What is read at once of a string, from a multiple of it on: four vectors.
const BLOCK_BYTES: u64 = 256;

impl Place {
    /// What the program `said` of the array, and of the member unless that is all of it.
    fn said(said: &[String], array: &str, member: Option<&str>) -> Self {
        let fact = |name: &str| -> (u64, u64) {
            let line = said.iter().find_map(|line| line.strip_prefix(&format!("{name} ")));
            let (place, size) = line.unwrap().split_once(' ').unwrap();
            let place = match place.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
                None => place.parse().unwrap(),
            };
            (place, size.parse().unwrap())
        };
        let (start, element_bytes) = fact(array);
        let member = member.map_or((0, element_bytes), fact);
        Self { start, len_bytes: N_ELEMENTS * element_bytes, element_bytes, member }
    }

    fn holds(&self, addr: u64) -> bool {
        (self.start..self.start + self.len_bytes).contains(&addr)
    }

    /// Whether an access that begins at `addr` is to the member, or to a block that it is a part of.
    fn is_member(&self, addr: u64) -> bool {
        let into = (addr - self.start) % self.element_bytes;
        let from = into + self.element_bytes + BLOCK_BYTES - self.member.0;
        from % self.element_bytes < self.member.1 + 2 * BLOCK_BYTES
    }
}

fn address(line: &Value) -> Option<u64> {
    u64::from_str_radix(line["addr"].as_str()?.strip_prefix("0x")?, 16).ok()
}

/// Every way of the program, its number, and what it touches.
const WAYS: [(&str, &str, Option<&str>, &str); 5] = [
    ("0", "employees", Some("name"), "{structure:employee}.{array[1500]:char name}"),
    ("1", "employees", Some("city"), "{structure:employee}.{array[1500]:char city}"),
    ("2", "orders", Some("body"), "{structure:order}.{array[4000]:unsigned_char body}"),
    ("3", "keys", None, "{structure:key}"),
    ("4", "employees", Some("city"), "{structure:employee}.{array[1500]:char city}"),
];

#[test]
fn what_library_functions_touch_is_named_after_what_the_program_passes() {
    let program = compile("handed", &["-O2", "-g"]);
    let sampling = ["-c", "100000", "--call-graph", "dwarf,256"];
    for (way, array, _, _) in WAYS {
        let args = [way, "8000000"];
        let recorded = record(&program, &args, "cpu-clock:u", &sampling, &[]);
        let Some(Recorded { lines, said }) = recorded else { return };
        // The program's preparations touch other members of the same array.
        let of_array = WAYS.iter().filter(|(_, of, ..)| *of == array);
        let places: Vec<(Place, &str)> = of_array
            .map(|(_, _, member, object)| (Place::said(&said, array, *member), *object))
            .collect();
        let holds = |addr: u64| places[0].0.holds(addr);
        let there = |line: &&Value| address(line).is_some_and(holds);
        let in_library = |line: &&Value| {
            line["scope"]["object"].as_str().is_some_and(|path| path.contains("libc"))
        };
        let touched: Vec<&Value> = lines.iter().filter(there).filter(in_library).collect();
        let mut n_named = 0;
        for line in &touched {
            if line["object"].is_null() {
                continue;
            }
            n_named += 1;
            let said = line["object"].as_str().unwrap();
            // A vector may begin before the string, aligned, and reach into it.
            let first = address(line).unwrap();
            let last = first + line["size"].as_u64().unwrap_or(1).max(1) - 1;
            let is_there = |place: &Place| place.is_member(first) || place.is_member(last);
            // Of a structure that is passed whole, a part is named where its place is certain.
            let is_so =
                |(place, object): &(Place, &str)| said.starts_with(object) && is_there(place);
            assert!(places.iter().any(is_so), "{line}");
            assert!(line["calls_out"].as_u64().unwrap() >= 1, "{line}");
            assert_eq!(line["evidence"], "address", "{line}");
        }
        assert!(touched.len() > 20, "way {way}: {} samples in the library", touched.len());
        assert!(n_named * 10 >= touched.len() * 9, "way {way}: {n_named} of {}", touched.len());
    }
}

#[test]
fn what_library_functions_touch_is_named_live() {
    let program = compile("handed", &["-O2", "-g"]);
    for (way, _, _, object) in WAYS {
        let command = [program.to_str().unwrap(), way, "8000000"];
        let args = ["top", "-e", "cpu-clock:u", "-c", "100000", "--json", "--"];
        let Some(snapshot) = last_snapshot(&[&args[..], &command].concat()) else { return };
        let objects = snapshot["objects"].as_array().unwrap();
        assert!(objects.iter().any(|it| it["object"] == object), "way {way}: no {object}");
    }
}
