//! Places of variables in the frame, by the debug information.

use super::frame_variable::{FrameVariable, FrameVariables};
use super::typing::Typing;
use super::value::Slot;
use crate::dwarf::code::frame::FrameRule;
use crate::dwarf::variable::location::{Base, VariablePlace};
use crate::limit;
use crate::types::die::DieRef;
use crate::types::layout::{Layout, ScalarKind, Shape};
use crate::types::type_expression::{Prefix, TypeExpression};
use crate::x86_64::abi::{POINTER_BYTES, STACK_POINTER};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;

/// The place that the stack pointer points to in most of a range of code, for ranges that were asked.
type Tops = FxHashMap<(u64, u64), Option<Slot>>;

impl Typing<'_, '_> {
    /// Notes what the debug information says of the frame's variables.
    pub(super) fn read_frame(&mut self) {
        let scope = self.around.scope;
        let (mut tops, mut variables) = (Tops::default(), Vec::new());
        for variable in &scope.variables {
            let mut layout = None;
            for (code, part) in &variable.places {
                let (base, offset, is_reference) = match part.place {
                    VariablePlace::Memory { base, offset } => (base, offset, false),
                    VariablePlace::Behind { base, offset } => (base, offset, true),
                    _ => continue,
                };
                let Some(slot) = self.slot_in(code, base, offset, &mut tops) else { continue };
                let layout =
                    layout.get_or_insert_with(|| self.around.debug.layout(variable.type_die));
                let layout = match is_reference {
                    true => reference(layout, variable.type_die),
                    false => Arc::clone(layout),
                };
                let Ok(into) = i64::try_from(part.offset) else { continue };
                let start = Slot { offset: slot.offset.wrapping_sub(into), ..slot };
                variables.push(FrameVariable {
                    slot: start,
                    bytes: part.bytes(layout.size),
                    code: code.clone(),
                    layout,
                    name: Arc::clone(&variable.name),
                    depth: variable.depth,
                    is_reference,
                });
            }
        }
        self.contents.frame = FrameVariables::new(variables);
    }

    /// The place in the frame that a location is in a range of code. A frame register counts only
    /// from where the function has set it up; the stack pointer from where the function's work is
    /// done, as the range goes over the prologue as well.
    fn slot_in(&self, code: &Range<u64>, base: Base, offset: i64, tops: &mut Tops) -> Option<Slot> {
        if base == Base::Register(STACK_POINTER) {
            let top = tops.entry((code.start, code.end)).or_insert_with(|| self.top_in(code));
            return (*top).map(|top| Slot { offset: top.offset.wrapping_add(offset), ..top });
        }
        let mut prologue = self.rules(code).take(limit::MAX_PROLOGUE);
        prologue.find_map(|rule| Slot::of(rule, base, offset))
    }

    /// The place that the stack pointer points to in most of a range of code.
    fn top_in(&self, code: &Range<u64>) -> Option<Slot> {
        let top = |at: usize| self.graph.slot(at as u32, STACK_POINTER, 0);
        most(self.instructions(code).map(top))
    }

    /// The frame's rule at each instruction of a range of code.
    fn rules(&self, code: &Range<u64>) -> impl Iterator<Item = FrameRule> {
        self.instructions(code).filter_map(|at| self.graph.frames.get(at).copied())
    }

    /// The instructions of a range of code, by their indices.
    fn instructions(&self, code: &Range<u64>) -> impl Iterator<Item = usize> {
        let first = super::first_in(self.around.function, code).unwrap_or(usize::MAX);
        let is_in = move |at: &usize| {
            let here = self.around.function.code(*at);
            here.is_none_or(|here| code.contains(&here.start))
        };
        (first..self.graph.frames.len()).take_while(is_in)
    }
}

/// A pointer to something of this type, which the debug information says nothing of.
fn reference(layout: &Layout, die: DieRef) -> Arc<Layout> {
    let of = Arc::clone(&layout.expression);
    let expression = TypeExpression::Prefixed { prefix: Prefix::Pointer, of };
    let pointer = Layout::new(
        expression.into(),
        format!("{} *", layout.name).into(),
        POINTER_BYTES.into(),
        Shape::Scalar(ScalarKind::Pointer),
    );
    Arc::new(Layout { pointee: Some(die), ..pointer })
}

/// The place that is there most often; of several the deepest. In a range over a whole function it is 8
/// and 16 below the CFA while registers are pushed, and 72 from where the frame is set up.
fn most(tops: impl Iterator<Item = Option<Slot>>) -> Option<Slot> {
    let mut times: FxHashMap<Option<Slot>, usize> = FxHashMap::default();
    for top in tops {
        *times.entry(top).or_default() += 1;
    }
    let depth = |top: Slot| (Reverse(top.offset), top.frame);
    times.into_iter().max_by_key(|(top, times)| (*times, top.map(depth)))?.0
}
