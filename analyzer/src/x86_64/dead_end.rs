//! Functions that are seen not to return: every way through a few instructions ends where nothing goes on.

use super::exit::{Destination, Exit};
use crate::limit;
use crate::x86_64::image_bytes::ImageBytes;
use dataspace_proto::address::Svma;
use iced_x86::{Decoder, DecoderOptions, Instruction};

/// The longest instruction (SDM volume 2, 2.3.11).
const MAX_INSTRUCTION_BYTES: usize = 15;

/// Tells whether what is called at `start` never returns, as far as so many instructions show it. Of calls
/// and jumps in it, those of which `is_noreturn` knows it end a way.
pub(crate) fn is_dead_end(
    start: Svma,
    n_instructions: usize,
    image: &dyn ImageBytes,
    is_noreturn: &dyn Fn(Destination) -> bool,
) -> bool {
    let mut seen = [0; limit::MAX_DEAD_END_INSTRUCTIONS];
    let mut n_seen = 0;
    let n_instructions = n_instructions.min(seen.len());
    let (mut first, mut work) = (Some(start.0), Vec::new());
    let n_bytes = (n_instructions * 4).max(MAX_INSTRUCTION_BYTES);
    let Some(code) = image.bytes_at(start, n_bytes) else { return false };
    while let Some(mut at) = first.take().or_else(|| work.pop()) {
        while !seen[..n_seen].contains(&at) {
            let Some(free) = seen[..n_instructions].get_mut(n_seen) else { return false };
            *free = at;
            n_seen += 1;
            let Some(here) = decode(start, &code, at) else { return false };
            // Bytes that are no code tell nothing.
            if here.is_invalid() {
                return false;
            }
            if Destination::of(&here).is_some_and(is_noreturn) {
                break;
            }
            match Exit::of(&here) {
                Exit::Never => break,
                Exit::Indirect | Exit::Return => return false,
                Exit::Jump(target) => at = target,
                Exit::Next | Exit::Call(_) | Exit::System => at = here.next_ip(),
                Exit::Branch(target) => {
                    work.push(target);
                    at = here.next_ip();
                }
            }
        }
    }
    true
}

/// The instruction at `at` in the bytes from `start` on, if it is all there.
fn decode(start: Svma, code: &[u8], at: u64) -> Option<Instruction> {
    let into = usize::try_from(at.checked_sub(start.0)?).ok()?;
    let rest = code.get(into..).filter(|rest| !rest.is_empty())?;
    let rest = &rest[..rest.len().min(MAX_INSTRUCTION_BYTES)];
    Some(Decoder::with_ip(64, rest, at, DecoderOptions::NONE).decode())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Code(&'static [u8]);

    impl ImageBytes for Code {
        fn bytes_at(&self, svma: Svma, n_bytes: usize) -> Option<Vec<u8>> {
            let into = usize::try_from(svma.0.checked_sub(0x1000)?).ok()?;
            let rest = self.0.get(into..)?;
            Some(rest[..n_bytes.min(rest.len())].to_vec())
        }
    }

    fn ends(code: &'static [u8]) -> bool {
        let is_noreturn = |callee| callee == Destination::Code(Svma(0x2000));
        is_dead_end(Svma(0x1000), 64, &Code(code), &is_noreturn)
    }

    #[test]
    fn a_function_that_ends_in_a_call_that_never_returns_does_not_either() {
        // push %rax; call 2000; and the same for 3000, with a ret behind it.
        assert!(ends(&[0x50, 0xe8, 0xfa, 0x0f, 0, 0]));
        assert!(!ends(&[0x50, 0xe8, 0xfa, 0x1f, 0, 0, 0xc3]));
    }

    #[test]
    fn one_way_back_is_enough() {
        // test %edi,%edi; je 1006; ud2; ret
        assert!(!ends(&[0x85, 0xff, 0x74, 0x02, 0x0f, 0x0b, 0xc3]));
        // test %edi,%edi; je 1006; ud2; ud2
        assert!(ends(&[0x85, 0xff, 0x74, 0x02, 0x0f, 0x0b, 0x0f, 0x0b]));
    }

    #[test]
    fn what_is_not_seen_may_return() {
        // jmp *%rax; nothing at all; a nop, and the code is over; jmp 2000 does not return.
        assert!(!ends(&[0xff, 0xe0]) && !ends(&[]) && !ends(&[0x90]));
        assert!(ends(&[0xe9, 0xfb, 0x0f, 0, 0]));
    }
}
