//! Folded stacks, one a line, as flame graph tools take them: frames with `;` between them, a blank, and
//! the samples.

use super::stack;
use dataspace_proto::snapshot::Snapshot;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Writes the stacks of `snapshot`, in the order of their names.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(snapshot: &Snapshot, out: &mut dyn Write) -> io::Result<()> {
    let mut stacks: BTreeMap<String, u64> = BTreeMap::new();
    stack::each(snapshot, &[], &mut |frames, values| {
        // The separator is in names of types such as `[u8; 4]`, too.
        let names: Vec<String> =
            frames.iter().map(|frame| frame.name().replace(';', ",")).collect();
        if values.samples > 0 {
            let sum = stacks.entry(names.join(";")).or_default();
            *sum = sum.wrapping_add(values.samples);
        }
    });
    for (stack, samples) in stacks {
        writeln!(out, "{stack} {samples}")?;
    }
    out.flush()
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
        write(&snapshot, &mut out).unwrap();
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
}
