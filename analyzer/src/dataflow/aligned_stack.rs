//! The stack pointer of a function that aligns it: no rule relates it to the CFA any more, but to where it was
//! aligned to it keeps its distance.

use super::value::{Frame, Slot};
use crate::limit;
use crate::x86_64::abi::STACK_POINTER;
use crate::x86_64::action::{Action, Expression, Source};
use crate::x86_64::arithmetic::Operation;
use crate::x86_64::exit::Exit;
use crate::x86_64::function::FunctionCode;
use crate::x86_64::translation::Translator;

/// An instruction's move of the stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StackMove {
    By(i64),
    /// Down to a multiple of something.
    Aligned,
    /// To where nobody knows.
    Lost,
}

impl StackMove {
    fn of(action: &Action) -> Self {
        const REGISTER: u8 = STACK_POINTER as u8;
        // What is called takes the address to return to from the stack again.
        let is_call = matches!(action.exit, Exit::Call(_));
        let moved = action.assignments.iter().find(|it| it.to == REGISTER && !is_call);
        match moved.map(|moved| moved.value) {
            None => Self::By(0),
            Some(Expression::Binary(operation, Source::Register(REGISTER), by)) => {
                match (operation, by) {
                    (Operation::Add, Source::Constant(by)) => Self::By(by),
                    (Operation::Sub, Source::Constant(by)) => Self::By(by.wrapping_neg()),
                    (Operation::And, Source::Constant(_)) => Self::Aligned,
                    _ => Self::Lost,
                }
            }
            Some(Expression::AddressOf(address)) => {
                let base = address.base.filter(|base| !base.is_32_bit);
                let is_own = base.and_then(|base| base.dwarf) == Some(STACK_POINTER);
                let is_near = is_own && address.index.is_none();
                if is_near { Self::By(address.displacement) } else { Self::Lost }
            }
            Some(_) => Self::Lost,
        }
    }

    /// The distance after the move of what was so far away before.
    const fn from(self, before: Option<i64>) -> Option<i64> {
        match (self, before) {
            (Self::By(by), Some(before)) => before.checked_add(by),
            (Self::Aligned, _) => Some(0),
            (Self::By(_), None) | (Self::Lost, _) => None,
        }
    }
}

/// Distances of the stack pointer from where the function aligned it to.
#[derive(Debug, Default)]
pub(crate) struct AlignedStack {
    /// Before and after each instruction; empty for a function that aligns nothing.
    distances: Vec<[Option<i64>; 2]>,
}

impl AlignedStack {
    /// Follows the stack pointer. Where ways meet it has to be as far away on each.
    pub(super) fn of(function: &FunctionCode, translator: &mut Translator<'_>) -> Self {
        if !function.aligns_stack() {
            return Self::default();
        }
        let n = function.n_instructions();
        let moved = |at| translator.action(at).map_or(StackMove::Lost, |it| StackMove::of(&it));
        let moves: Vec<StackMove> = (0..n).map(moved).collect();
        // `None` is an instruction that no way has led to yet.
        let mut known: Vec<Option<[Option<i64>; 2]>> = vec![None; n];
        for _ in 0..limit::MAX_SIMPLIFICATIONS {
            let mut has_changed = false;
            for (at, moved) in moves.iter().enumerate() {
                let Some(before) = met(function, at, &known) else { continue };
                // From there on it would be the distance from another place.
                if *moved == StackMove::Aligned && before.is_some() {
                    return Self::default();
                }
                let now = Some([before, moved.from(before)]);
                has_changed |= known[at] != now;
                known[at] = now;
            }
            if !has_changed {
                let distances = known.into_iter().map(Option::unwrap_or_default).collect();
                return Self { distances };
            }
        }
        Self::default()
    }

    /// The place in the frame that is so far from where the stack pointer points before the instruction at `at`.
    pub(super) fn slot(&self, at: u32, displacement: i64) -> Option<Slot> {
        let [before, _] = self.distances.get(at as usize)?;
        Some(slot((*before)?.wrapping_add(displacement)))
    }

    /// The place in the frame where the stack pointer points after the instruction at `at`.
    pub(super) fn after(&self, at: u32) -> Option<Slot> {
        let [_, after] = self.distances.get(at as usize)?;
        after.map(slot)
    }
}

const fn slot(offset: i64) -> Slot {
    Slot { frame: Frame::Register(STACK_POINTER as u8), offset }
}

/// The distance before the instruction at `at`, by the ways to it of which something is known; `None` while there is none.
#[allow(clippy::option_option, reason = "no way there yet, and ways that do not agree")]
fn met(
    function: &FunctionCode,
    at: usize,
    known: &[Option<[Option<i64>; 2]>],
) -> Option<Option<i64>> {
    let entrances = function.entrances(at);
    if entrances.is_entry || entrances.is_landing_pad || entrances.is_unknown {
        return Some(None);
    }
    let returned = entrances.is_return.then(|| at.checked_sub(1)).flatten();
    let ways = function.predecessors(at).iter().map(|before| before.from as usize).chain(returned);
    let mut after = ways.filter_map(|from| known.get(from).copied().flatten()).map(|[_, it]| it);
    let first = after.next()?;
    Some(first.filter(|_| after.all(|other| other == first)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::image_bytes::NoBytes;
    use dataspace_proto::address::Svma;

    fn distances(code: &[u8]) -> Vec<Option<i64>> {
        let function = FunctionCode::decode(Svma(0x1000), code, &NoBytes);
        let stack = AlignedStack::of(&function, &mut Translator::new(&function));
        let n = function.n_instructions() as u32;
        (0..n).map(|at| stack.slot(at, 0).map(|slot| slot.offset)).collect()
    }

    #[test]
    fn the_distance_is_from_where_the_stack_was_aligned_to() {
        // push %rbp; mov %rsp,%rbp; and $-32,%rsp; sub $64,%rsp; push %rax; call .; pop %rax; leave; ret
        let code = [
            &[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xe4, 0xe0, 0x48, 0x83, 0xec, 0x40, 0x50][..],
            &[0xe8, 0, 0x10, 0, 0, 0x58, 0xc9, 0xc3],
        ];
        let found = distances(&code.concat());
        let expected =
            [None, None, None, Some(0), Some(-64), Some(-72), Some(-72), Some(-64), None];
        assert_eq!(found, expected);
    }

    #[test]
    fn ways_that_do_not_agree_tell_nothing() {
        // and $-32,%rsp; test %eax,%eax; je +1; push %rax; nop (both ways meet); jmp to itself
        let code = [0x48, 0x83, 0xe4, 0xe0, 0x85, 0xc0, 0x74, 0x01, 0x50, 0x90, 0xeb, 0xfe];
        assert_eq!(distances(&code), [None, Some(0), Some(0), Some(0), None, None]);
        // The same with `nop` in the place of `push`.
        let code = [0x48, 0x83, 0xe4, 0xe0, 0x85, 0xc0, 0x74, 0x01, 0x90, 0x90, 0xeb, 0xfe];
        assert_eq!(distances(&code), [None, Some(0), Some(0), Some(0), Some(0), Some(0)]);
    }

    #[test]
    fn a_loop_that_pushes_tells_nothing() {
        // and $-32,%rsp; push %rax; jmp to the push
        let code = [0x48, 0x83, 0xe4, 0xe0, 0x50, 0xeb, 0xfd];
        assert_eq!(distances(&code), [None, None, None]);
    }
}
