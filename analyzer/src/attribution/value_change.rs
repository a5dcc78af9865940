//! The values that a watched place had before and after an access, as far as the registers after it tell.

use crate::attribution::verdict::Attribution;
use crate::attribution::world::World;
use crate::x86_64::moved_value::ValueChange;
use crate::x86_64::state::State;
use dataspace_proto::record::Sample;
use dataspace_proto::sample_line::AddressSource;

impl World {
    /// The values before and after the access of a breakpoint's sample. Its registers are those after the trigger, for
    /// the processor reports a data breakpoint when the instruction is done (SDM volume 3, 19.2.5). They are told of an
    /// access that is known to begin where the object does that it is charged to, or is to all of the `n_watched` bytes.
    // What few samples need is kept out of the way of all: inlined, its registers were zeroed for each of them.
    #[inline(never)]
    pub(crate) fn value_change(
        &self,
        sample: &Sample,
        attribution: &Attribution,
        n_watched: u8,
    ) -> ValueChange {
        let found = || {
            let (_, past, trigger) = self.own_trigger(sample, attribution)?;
            if past.trail.reach != 1 {
                return None;
            }
            let memory = trigger.accesses.first()?.memory;
            let moved = memory.moved?;
            let (addr, source) = attribution.addr?;
            let is_there = match source {
                AddressSource::Computed => true,
                AddressSource::Sampled if memory.address.has_any(moved.written()) => false,
                AddressSource::Sampled => {
                    let bias = attribution.trigger?.0.wrapping_sub(trigger.svma.0);
                    let thread_base = self.thread_storage.base(sample.tid);
                    let after = State::sampled(&sample.registers, bias, thread_base);
                    after.effective_address(&memory.address) == Ok(addr)
                }
            };
            let is_known = is_there || memory.size == u32::from(n_watched);
            is_known.then(|| moved.change(&sample.registers, memory.size))
        };
        found().unwrap_or(ValueChange::UNKNOWN)
    }
}
