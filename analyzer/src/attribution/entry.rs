//! Samples at a function's first instruction: the trigger is what led there, and the sampled stack has the return address
//! of the call that came before.

use crate::attribution::choice::{Choice, choose};
use crate::attribution::code_place::NotLocated;
use crate::attribution::recent_site::{CodePlace, KnownCode};
use crate::attribution::search::{SampledAccess, Search};
use crate::attribution::verdict::{Attribution, Located, Verdict};
use crate::attribution::world::World;
use crate::index::call_site::{CallSite, CalleeAddress};
use crate::index::entry_name::EnteredFunction;
use crate::index::question::Needs;
use crate::index::site::Past;
use crate::x86_64::backtrack::Skid;
use crate::x86_64::pointer::CodePointer;
use crate::x86_64::state::State;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::memory::Access;
use dataspace_proto::register::Register;
use dataspace_proto::sample_line::AddressSource;

/// The way to a function's first instruction.
enum Led {
    /// The call, which touched nothing but the place of its return address.
    Call,
    /// The instruction at this address, by a pointer that it read.
    Through(Avma),
    /// The function that was called, which went on here by a jump.
    Jump,
}

impl World {
    /// The answer for a sample at a function's first instruction: the call that the sampled return address stands
    /// after, where that is seen to lead here. It has just written that address.
    pub(crate) fn by_return_address(
        &mut self,
        search: &mut Search,
        located: Located<'_>,
        blocked: Attribution,
    ) -> Result<Attribution, Needs> {
        let Located { sample, registers, past, .. } = located;
        let (Some(stack), Some(entry)) = (registers.get(Register::Rsp), &past.entry) else {
            return Ok(blocked);
        };
        // The loader's own way into a function that is called for the first time.
        let is_resolved = registers.get(Register::R11) == Some(sample.ip.0);
        if entry.may_come_back || is_resolved {
            return Ok(blocked);
        }
        let read = sample.stack.word(Avma(stack), Avma(stack));
        let Some(return_address) = read.map(Avma) else { return Ok(blocked) };
        let Some((_, call, caller)) = self.call_site(sample.pid, return_address)? else {
            return Ok(blocked);
        };
        let at = Avma(return_address.0.wrapping_sub(call.length.into()));
        let here = located.ip();
        let leads_here = |site: &CallSite| caller == located.object && site.written == here;
        let led = if leads_here(&call) {
            Some(Led::Call)
        } else if call.onward.iter().any(leads_here) {
            Some(Led::Jump)
        } else {
            self.led_by_pointer(&call, at, entry, located)
        };
        match led {
            Some(Led::Call) => {
                let addr = Some((Avma(stack), AddressSource::Computed));
                let found = self.of_return_address(located, Access::Store, addr);
                Ok(Attribution { trigger: Some(at), ..found })
            }
            Some(Led::Jump) => Ok(Attribution { verdict: Verdict::NotMemory, ..blocked }),
            Some(Led::Through(at)) => self.at_pointer(search, located, at, blocked),
            None => Ok(blocked),
        }
    }

    /// Tells whether the call at `at` led here by a pointer: one that still has this address, one of this function's name,
    /// or one that the file has with this address.
    fn led_by_pointer(
        &self,
        call: &CallSite,
        at: Avma,
        entry: &EnteredFunction,
        located: Located<'_>,
    ) -> Option<Led> {
        let Located { sample, registers, bias, .. } = located;
        let (_, bias_of_call) = self.locate(sample.pid, at).ok()?;
        let is_named = matches!(&call.callee, CalleeAddress::Named(it) if entry.names.contains(it));
        if let Some(stub) = call.stub {
            let jump = Avma(stub.0.wrapping_add(bias_of_call));
            return is_named.then_some(Led::Through(jump));
        }
        match call.pointer? {
            CodePointer::Register(register) => {
                (registers.get(register) == Some(sample.ip.0)).then_some(Led::Call)
            }
            CodePointer::Memory(operand) => {
                let state = State::sampled(registers, bias_of_call, None);
                let place = state.effective_address(&operand).ok()?;
                let place = Svma(place.0.wrapping_sub(bias));
                let is_held = entry.held_at.binary_search(&place).is_ok();
                (is_named || is_held).then_some(Led::Through(at))
            }
        }
    }

    /// The answer for the instruction at `at`, which has just led here by a pointer that it read.
    fn at_pointer(
        &mut self,
        search: &mut Search,
        located: Located<'_>,
        at: Avma,
        blocked: Attribution,
    ) -> Result<Attribution, Needs> {
        let place = CodePlace { pid: located.sample.pid, ip: at, skid: Skid::Exact };
        let code = match self.site(place) {
            Ok(code) => code,
            Err(NotLocated::Needs(needs)) => return Err(needs),
            Err(NotLocated::Unknown(_)) => return Ok(blocked),
        };
        let outcome = self.sites.lend(code.site);
        let found = match &outcome {
            Ok(past) => self.before(search, located, code, past),
            Err(_) => Ok(None),
        };
        self.sites.give_back(code.site, outcome);
        let found = found?.map(|found| Attribution { site: Some(located.site), ..found });
        Ok(found.unwrap_or(blocked))
    }

    /// The answer for the only instruction of `past`, which ran just before the sample.
    fn before(
        &mut self,
        search: &mut Search,
        located: Located<'_>,
        KnownCode { object, bias, site }: KnownCode,
        past: &Past,
    ) -> Result<Option<Attribution>, Needs> {
        let thread_base = self.thread_storage.base(located.sample.tid);
        let mut state = State::sampled(located.registers, bias, thread_base);
        let effects = past.trail.nodes.first().map(|node| &node.effects);
        if effects.is_none_or(|effects| state.undo(effects).is_err()) {
            return Ok(None);
        }
        let evidence = SampledAccess { addr: None, access: None, kind: located.kind };
        search.run(past, &state, evidence);
        match choose(search, evidence, past.trail.reach) {
            Choice::Left { .. } => {
                let located = Located { object, bias, site, past, ..located };
                self.attribute_left(search, located, false).map(Some)
            }
            Choice::NotMemory(_) | Choice::Unknown(_) => Ok(None),
        }
    }
}
