//! Folded stacks, one a line, as flame graph tools take them: frames with `;` between them, a blank, and
//! the samples.

use super::stack::{self, LEFT_OUT, StackFrame};
use crate::session::findings::Findings;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Maximum length of a line beside its stack: a blank, the samples, the end of the line.
const NUMBER_BYTES: usize = 22;

/// Writes the stacks of `findings`, in the order of their names, in at most `max_bytes`: what has no
/// room is charged to `<Total>;<Left out>`.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(findings: &Findings, max_bytes: usize, out: &mut dyn Write) -> io::Result<()> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    let mut room = max_bytes.saturating_sub(joined(&LEFT_OUT).len() + NUMBER_BYTES);
    let mut left_out: u64 = 0;
    stack::each(findings, &[], &mut |frames, values| {
        if values.samples == 0 {
            return;
        }
        let min_bytes: usize = frames.iter().map(|frame| frame.min_bytes()).sum();
        // Not even joined: that is what takes the time.
        let stack = Some(()).filter(|()| min_bytes <= room).map(|()| joined(frames));
        let n_bytes = |stack: &String| stack.len() + NUMBER_BYTES;
        match stack.filter(|stack| n_bytes(stack) <= room || stacks.contains_key(stack)) {
            Some(stack) => {
                let n_bytes = n_bytes(&stack);
                let sum = stacks.entry(stack).or_insert_with(|| {
                    room -= n_bytes;
                    0
                });
                *sum = sum.wrapping_add(values.samples);
            }
            None => left_out = left_out.wrapping_add(values.samples),
        }
    });
    if left_out > 0 {
        stacks.insert(joined(&LEFT_OUT), left_out);
    }
    for (stack, samples) in stacks {
        writeln!(out, "{stack} {samples}")?;
    }
    out.flush()
}

fn joined(frames: &[StackFrame<'_>]) -> String {
    // The separator is in names of types such as `[u8; 4]`, too.
    let names: Vec<String> = frames.iter().map(|frame| frame.name().replace(';', ",")).collect();
    names.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn a_line_is_a_stack_and_its_samples() {
        let mut snapshot = fixture::running();
        snapshot.objects[10].object = "{array[2]:Cell<[u8;4]> a}".into();
        let mut out = Vec::new();
        write(&fixture::findings_with(snapshot.clone()), usize::MAX, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let mut sum = 0;
        for line in text.lines() {
            let (stack, samples) = line.rsplit_once(' ').unwrap();
            assert!(stack.starts_with("<Total>"), "{line}");
            sum += samples.parse::<u64>().unwrap();
        }
        assert_eq!(sum, snapshot.objects[0].metrics.all.samples);
        assert!(text.contains("<Total>;<Scalars>;{array[2]:Cell<[u8,4]> a} 100\n"), "{text}");
    }

    #[test]
    fn long_names_are_left_out_and_their_samples_are_not() {
        let snapshot = fixture::with_long_names();
        let max_bytes = 1 << 20;
        let mut out = Vec::new();
        write(&fixture::findings_with(snapshot.clone()), max_bytes, &mut out).unwrap();
        assert!((max_bytes / 2..=max_bytes).contains(&out.len()), "{}", out.len());
        let text = String::from_utf8(out).unwrap();
        let samples = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
        assert_eq!(text.lines().map(samples).sum::<u64>(), snapshot.objects[0].metrics.all.samples);
        assert!(text.contains("<Total>;<Left out> "));
    }
}
