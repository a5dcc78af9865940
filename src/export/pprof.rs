//! Totals as a profile that `go tool pprof` reads: the protocol buffer of pprof's `profile.proto`,
//! compressed with gzip.

use super::stack::{self, LEFT_OUT, StackFrame, Values, event_names};
use crate::column::is_clock;
use crate::session::findings::Findings;
use crate::text::visible;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::collections::HashMap;
use std::io::{self, Write as _};
use std::time::{Duration, SystemTime};

/// Writes the profile of `findings`. `age` is the time for which its totals have stood, where that is known.
/// Before it is compressed it has about `max_bytes` at most: what has no room is charged to `<Left out>`
/// within `<Total>`.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(
    findings: &Findings,
    age: Option<Duration>,
    max_bytes: usize,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    // Only what a person reads is by this clock.
    let ended = age.and_then(|age| SystemTime::now().checked_sub(age));
    write_at(findings, ended, max_bytes, out)
}

/// The same for totals that were taken at `ended`.
fn write_at(
    findings: &Findings,
    ended: Option<SystemTime>,
    max_bytes: usize,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    let mut gzip = GzEncoder::new(out, Compression::default());
    gzip.write_all(&encode(findings, ended, max_bytes))?;
    gzip.finish()?.flush()
}

/// Fields of `profile.proto`.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const MAPPING: u32 = 3;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const TIME_NANOS: u32 = 9;
    pub(super) const DURATION_NANOS: u32 = 10;
    pub(super) const PERIOD_TYPE: u32 = 11;
    pub(super) const PERIOD: u32 = 12;
    pub(super) const COMMENT: u32 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

/// The profile, not compressed.
fn encode(findings: &Findings, ended: Option<SystemTime>, max_bytes: usize) -> Vec<u8> {
    let snapshot = &*findings.snapshot;
    let events = event_names(snapshot);
    let left_out = Values { events: vec![0; events.len()], ..Values::default() };
    let mut profile = Profile { room: max_bytes, left_out, ..Profile::default() };
    // The first string is empty (`profile.proto`).
    profile.string("");
    for (name, unit) in
        [("samples", "count"), ("loads", "count"), ("stores", "count"), ("latency", "cycles")]
    {
        profile.value_type(field::SAMPLE_TYPE, name, unit);
    }
    for event in &events {
        profile.value_type(field::SAMPLE_TYPE, event, unit_of(event));
    }
    if let Some(object) = main_object(findings) {
        profile.mapping(&visible(object));
    }
    stack::each(findings, &events, &mut |frames, values| profile.sample(frames, values));
    profile.add_left_out();
    let nanos = |time: u128| u64::try_from(time).unwrap_or(0);
    let ended_ns = ended
        .and_then(|ended| ended.duration_since(SystemTime::UNIX_EPOCH).ok())
        .map_or(0, |since| nanos(since.as_nanos()));
    profile.message.number(field::TIME_NANOS, ended_ns.saturating_sub(snapshot.elapsed_ns));
    profile.message.number(field::DURATION_NANOS, snapshot.elapsed_ns);
    if let Some(event) = snapshot.events.first() {
        profile.value_type(field::PERIOD_TYPE, &event.name, unit_of(&event.name));
        profile
            .message
            .number(field::PERIOD, event.period.unwrap_or(0).min(i64::MAX.unsigned_abs()));
    }
    let comment = format!("dataspace: data objects of {}", visible(&snapshot.target.description));
    let comment = profile.string(&comment);
    profile.message.number(field::COMMENT, comment);
    let default = profile.string("samples");
    profile.message.number(field::DEFAULT_SAMPLE_TYPE, default);
    profile.finish()
}

/// The load object with the most samples: pprof takes the first one for the program.
fn main_object(findings: &Findings) -> Option<&str> {
    let mut sums: HashMap<&str, u64> = HashMap::new();
    for line in findings.functions.iter() {
        if let Some(scope) = &line.scope {
            let sum: &mut u64 = sums.entry(&scope.object).or_default();
            *sum = sum.wrapping_add(line.samples);
        }
    }
    let most = sums.into_iter().max_by_key(|(object, samples)| (*samples, *object));
    most.map(|(object, _)| object)
}

/// Clock events count nanoseconds; all others things of their own.
fn unit_of(event: &str) -> &'static str {
    if is_clock(event) { "nanoseconds" } else { "count" }
}

/// Identity of a location: an object, or a function in a load object and unit.
type LocationKey = (String, Option<String>, Option<String>);

/// A profile as it grows.
#[derive(Default)]
struct Profile {
    message: Message,
    strings: Vec<String>,
    of_string: HashMap<String, u64>,
    /// Locations, of which each has one line, of the function with the same number.
    of_place: HashMap<LocationKey, u64>,
    of_mapping: HashMap<String, u64>,
    /// Bytes that samples may still take.
    room: usize,
    /// The sum of the samples that took more.
    left_out: Values,
}

/// Maximum length of a number.
const NUMBER_BYTES: usize = 10;

/// Maximum length of a location and its function, beside their strings.
const PLACE_BYTES: usize = 128;

fn place(frame: StackFrame<'_>) -> LocationKey {
    let name = frame.name().into_owned();
    match frame {
        StackFrame::Object(..) => (name, None, None),
        StackFrame::Function(scope) => {
            let unit = scope.unit.as_ref().map(|unit| visible(unit).into_owned());
            (name, Some(visible(&scope.object).into_owned()), unit)
        }
    }
}

impl Profile {
    fn string(&mut self, text: &str) -> u64 {
        if let Some(known) = self.of_string.get(text) {
            return *known;
        }
        let idx = self.strings.len() as u64;
        self.strings.push(text.to_owned());
        self.of_string.insert(text.to_owned(), idx);
        idx
    }

    fn value_type(&mut self, of: u32, name: &str, unit: &str) {
        let mut message = Message::default();
        message.number(1, self.string(name));
        message.number(2, self.string(unit));
        self.message.message(of, &message);
    }

    fn sample(&mut self, frames: &[StackFrame<'_>], values: &Values) {
        // The innermost frame is the first. `-top` lists what that is: an object, and not the function that touches it,
        // which goes within `<Total>`.
        let mut places: Vec<LocationKey> = frames.iter().rev().map(|frame| place(*frame)).collect();
        if let [.., StackFrame::Function(_)] = frames {
            let function = places.remove(0);
            places.insert(places.len().saturating_sub(1), function);
        }
        let new = places.iter().filter(|place| !self.of_place.contains_key(*place));
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let n_new: usize = new
            .map(|(name, object, unit)| PLACE_BYTES + name.len() + text(object) + text(unit))
            .sum();
        let n_numbers = places.len() + 8 + values.events.len();
        let Some(room) = self.room.checked_sub(n_new + n_numbers * NUMBER_BYTES) else {
            self.left_out.add(values);
            return;
        };
        self.room = room;
        self.add_sample(places, values);
    }

    fn add_left_out(&mut self) {
        let values = std::mem::take(&mut self.left_out);
        if !values.is_nothing() {
            self.add_sample(LEFT_OUT.into_iter().rev().map(place).collect(), &values);
        }
    }

    fn add_sample(&mut self, places: Vec<LocationKey>, values: &Values) {
        let locations: Vec<u64> = places.into_iter().map(|place| self.location(place)).collect();
        let Values { samples, loads, stores, latency, ref events } = *values;
        let sums = [samples, loads, stores, latency].into_iter().chain(events.iter().copied());
        let sums: Vec<u64> = sums.map(|sum| sum.min(i64::MAX.unsigned_abs())).collect();
        let mut message = Message::default();
        message.packed(1, &locations);
        message.packed(2, &sums);
        self.message.message(field::SAMPLE, &message);
    }

    fn location(&mut self, place: LocationKey) -> u64 {
        let next = self.of_place.len() as u64 + 1;
        if let Some(known) = self.of_place.get(&place) {
            return *known;
        }
        let (name, object, unit) = &place;
        let mut function = Message::default();
        function.number(1, next);
        function.number(2, self.string(name));
        // Without a system name pprof takes the name as it is: it would cut `<…>` out of C++ names.
        function.number(4, self.string(unit.as_deref().unwrap_or_default()));
        self.message.message(field::FUNCTION, &function);
        let mut line = Message::default();
        line.number(1, next);
        let mut location = Message::default();
        location.number(1, next);
        if let Some(object) = object {
            location.number(2, self.mapping(object));
        }
        location.message(4, &line);
        self.message.message(field::LOCATION, &location);
        self.of_place.insert(place, next);
        next
    }

    /// The load object, without addresses: there are none in a location.
    fn mapping(&mut self, object: &str) -> u64 {
        if let Some(known) = self.of_mapping.get(object) {
            return *known;
        }
        let id = self.of_mapping.len() as u64 + 1;
        let mut mapping = Message::default();
        mapping.number(1, id);
        mapping.number(5, self.string(object));
        // Names are there: pprof is not to look for them in the file.
        mapping.number(7, 1);
        mapping.number(8, 1);
        self.message.message(field::MAPPING, &mapping);
        self.of_mapping.insert(object.to_owned(), id);
        id
    }

    fn finish(mut self) -> Vec<u8> {
        for text in &self.strings {
            self.message.bytes(field::STRING_TABLE, text.as_bytes());
        }
        self.message.0
    }
}

/// A message in protocol buffers' wire format.
#[derive(Default)]
struct Message(Vec<u8>);

/// Wire types.
const VARINT: u32 = 0;
const BYTES: u32 = 2;

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A number; 0 is what a field has that is not there.
    fn number(&mut self, field: u32, value: u64) {
        if value != 0 {
            self.varint(u64::from(field << 3 | VARINT));
            self.varint(value);
        }
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field << 3 | BYTES));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    fn packed(&mut self, field: u32, values: &[u64]) {
        let mut packed = Self::default();
        values.iter().for_each(|value| packed.varint(*value));
        self.bytes(field, &packed.0);
    }
}

#[cfg(test)]
mod tests;
