//! Places of variables in the frame, by the debug information.

use super::frame_variable::{FrameVariable, FrameVariables};
use super::typing::Typing;
use super::value::Slot;
use crate::dwarf::code::frame::{CfaRule, FrameRule};
use crate::dwarf::variable::location::{Base, VariablePlace};
use crate::limit;
use crate::x86_64::abi::STACK_POINTER;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;

/// Distance of the stack pointer below the CFA in most of a range of code, for ranges that were asked.
type Depths = FxHashMap<(u64, u64), Option<i64>>;

impl Typing<'_, '_> {
    /// Notes what the debug information says of the frame's variables.
    pub(super) fn read_frame(&mut self) {
        let scope = self.around.scope;
        let (mut depths, mut variables) = (Depths::default(), Vec::new());
        for variable in &scope.variables {
            let mut layout = None;
            for (code, part) in &variable.places {
                let VariablePlace::Memory { base, offset } = part.place else { continue };
                let Some(slot) = self.slot_in(code, base, offset, &mut depths) else { continue };
                let layout =
                    layout.get_or_insert_with(|| self.around.debug.layout(variable.type_die));
                let Ok(into) = i64::try_from(part.offset) else { continue };
                let start = Slot { offset: slot.offset.wrapping_sub(into), ..slot };
                variables.push(FrameVariable {
                    slot: start,
                    bytes: part.bytes(layout.size),
                    code: code.clone(),
                    layout: Arc::clone(layout),
                    name: Arc::clone(&variable.name),
                    depth: variable.depth,
                });
            }
        }
        self.contents.frame = FrameVariables::new(variables);
    }

    /// The place in the frame that a location is in a range of code. A frame register counts only
    /// from where the function has set it up; the stack pointer from where the function's work is
    /// done, as the range goes over the prologue as well.
    fn slot_in(
        &self,
        code: &Range<u64>,
        base: Base,
        offset: i64,
        depths: &mut Depths,
    ) -> Option<Slot> {
        if base == Base::Register(STACK_POINTER) {
            let depth = depths
                .entry((code.start, code.end))
                .or_insert_with(|| most(self.rules(code).map(depth_of)));
            let rule = CfaRule { register: STACK_POINTER, offset: (*depth)? };
            return Slot::of(FrameRule::Known(rule), base, offset);
        }
        let mut prologue = self.rules(code).take(limit::MAX_PROLOGUE);
        prologue.find_map(|rule| Slot::of(rule, base, offset))
    }

    /// The frame's rule at each instruction of a range of code.
    fn rules(&self, code: &Range<u64>) -> impl Iterator<Item = FrameRule> {
        let first = super::first_in(self.around.function, code).unwrap_or(usize::MAX);
        let is_in = move |at: &usize| {
            let here = self.around.function.code(*at);
            here.is_none_or(|here| code.contains(&here.start))
        };
        let range = first..self.graph.frames.len();
        range.take_while(is_in).filter_map(|at| self.graph.frames.get(at).copied())
    }
}

/// Returns the distance of the stack pointer below the CFA, where the CFA is told by it.
fn depth_of(rule: FrameRule) -> Option<i64> {
    rule.cfa().filter(|rule| rule.register == STACK_POINTER).map(|rule| rule.offset)
}

/// The depth that is there most often; of several the largest. In a range over a whole function it is 8
/// and 16 while registers are pushed, and 72 from where the frame is set up.
fn most(depths: impl Iterator<Item = Option<i64>>) -> Option<i64> {
    let mut times: FxHashMap<Option<i64>, usize> = FxHashMap::default();
    for depth in depths {
        *times.entry(depth).or_default() += 1;
    }
    times.into_iter().max_by_key(|(depth, times)| (*times, *depth))?.0
}
