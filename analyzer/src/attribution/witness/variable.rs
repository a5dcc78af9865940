//! Variables as witnesses: what the debug information says lies at an address, in the data of load
//! objects, there once for a process or once for each thread, or in the frame.

use crate::attribution::claim::{Claim, Placing, Witness};
use crate::attribution::name_table::{NameKey, NamedIdx, StaticArray};
use crate::attribution::witness::Asked;
use crate::attribution::world::{Paths, World};
use crate::bytes::file::LoadObjectIdx;
use crate::elf::data_symbol::{DataPlace, Storage};
use crate::index::question::{Needs, Question};
use crate::index::static_data::{Resident, UntypedObject};
use crate::process::table::DataObjectAt;
use crate::types::data_object::{DataObject, Root};
use crate::x86_64::access::Role;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::memory::MemorySegment;
use dataspace_proto::record::Sample;
use dataspace_proto::sample_line::AddressSource;
use std::sync::LazyLock;

/// The first bytes above a thread's base are the control block of its C library: its own address,
/// and what gcc's stack protector compares (psABI 3.4.6; glibc: `tcbhead_t`; musl the same).
const CONTROL_BLOCK_BYTES: i64 = 64;

/// The object that stands for a control block.
static CONTROL_BLOCK: LazyLock<UntypedObject> = LazyLock::new(|| UntypedObject {
    start: Svma(0),
    object: DataObject::made("thread_control_block", Some("-"), 0),
    is_made: true,
});

impl World {
    /// The claim of what lies at an access: the object of an operand that is counted from the thread's base,
    /// else the object at the data address, whose kind of memory it looks up as well.
    pub(crate) fn variable(
        &mut self,
        asked: &Asked<'_>,
        segment: &mut Option<MemorySegment>,
    ) -> Result<Option<Claim>, Needs> {
        if self.paths == Paths::Type {
            return Ok(None);
        }
        let named = match (self.thread_operand(asked)?, asked.avma()) {
            (None, Some(avma)) => self.object_at(asked, avma, segment)?,
            (named, _) => named,
        };
        // A computed address comes from the same trigger as the type, and may not win over it.
        let witness = match asked.addr {
            Some((_, AddressSource::Sampled)) => Witness::SampledAddress,
            _ => Witness::ComputedAddress,
        };
        Ok(named.map(|named| Claim::of(witness, named, Placing::Part)))
    }

    /// The object at the data address: a static variable, or a variable in the frame.
    fn object_at(
        &mut self,
        asked: &Asked<'_>,
        avma: Avma,
        segment: &mut Option<MemorySegment>,
    ) -> Result<Option<NamedIdx>, Needs> {
        let Asked { located, candidate, typed, .. } = *asked;
        let size = u64::from(typed.memory.size);
        if let Some(named) = self.static_object(located.sample, avma, size, segment)? {
            return Ok(Some(named));
        }
        for (slot_idx, slot) in typed.frame.iter().enumerate() {
            let Ok(base) = slot.base.value(candidate.state) else { continue };
            let start = base.wrapping_add_signed(slot.offset);
            let Some(offset) = avma.0.checked_sub(start) else { continue };
            if offset >= slot.layout.size {
                continue;
            }
            let key = NameKey::Slot {
                site: located.site,
                trigger: candidate.survivor.trigger,
                slot: slot_idx as u32,
                offset,
                size,
            };
            let root = Root::Variable(&slot.name);
            return Ok(self.names.part(key, &slot.layout, root, (offset, size)));
        }
        // `push %rbx` and spills: no variable is described there, but it is the frame.
        let is_stack_slot = typed.memory.role == Role::StackSlot;
        Ok(is_stack_slot.then(|| self.names.stack()))
    }

    /// The object at `avma` in the data of a sample's process, or of one of its threads. Looks the kind of memory up as well,
    /// if no thread has the address as its own.
    pub(crate) fn static_object(
        &mut self,
        sample: &Sample,
        avma: Avma,
        size: u64,
        segment: &mut Option<MemorySegment>,
    ) -> Result<Option<NamedIdx>, Needs> {
        if let Some((object, offset)) = self.thread_storage.find(sample.pid, avma) {
            return self.resident(object, DataPlace::thread(offset), size);
        }
        let (object, found) = self.processes.mapped_data(sample, avma);
        *segment = found;
        match object {
            DataObjectAt::None => Ok(None),
            DataObjectAt::Unopened(object) => Err(Needs { object, question: Question::Open }),
            DataObjectAt::Open { object, bias } => {
                let place = DataPlace::fixed(Svma(avma.0.wrapping_sub(bias)));
                self.resident(object, place, size)
            }
        }
    }

    /// The object of an operand that is counted from the thread's base, which nobody needs to know
    /// for it: the program's variables have the same distance in every thread.
    fn thread_operand(&mut self, asked: &Asked<'_>) -> Result<Option<NamedIdx>, Needs> {
        let Asked { located, candidate, typed, .. } = *asked;
        let distance = candidate.state.thread_distance(&typed.memory.address);
        let Some(Ok(distance)) = distance else { return Ok(None) };
        if (0..CONTROL_BLOCK_BYTES).contains(&distance) {
            let offset = distance.cast_unsigned();
            let key = NameKey::ControlBlock { offset };
            return Ok(Some(self.names.untyped(key, &CONTROL_BLOCK, offset)));
        }
        self.note_program(located.sample.pid);
        let program = self.thread_storage.program(located.sample.pid);
        let found = program.and_then(|(object, block)| Some((object, block.offset_of(distance)?)));
        let Some((object, offset)) = found else { return Ok(None) };
        self.resident(object, DataPlace::thread(offset), u64::from(typed.memory.size))
    }

    /// Looks for the program of a process, if that is not known yet.
    pub(crate) fn note_program(&mut self, pid: i32) {
        if self.thread_storage.program(pid).is_none()
            && let Some(program) = self.processes.program(pid)
        {
            self.thread_storage.set_program(pid, program);
        }
    }

    /// The object that a load object has at a place in its data.
    fn resident(
        &mut self,
        object: LoadObjectIdx,
        place: DataPlace,
        size: u64,
    ) -> Result<Option<NamedIdx>, Needs> {
        let Some(resident) = self.data.find(object, place) else {
            return Err(Needs { object, question: Question::Data(place) });
        };
        let key = |start: Svma, offset: u64| {
            let start = DataPlace { storage: place.storage, at: start };
            NameKey::Static { object, start, offset, size }
        };
        Ok(match resident {
            None => None,
            Some(Resident::Untyped(untyped)) => {
                let Some(offset) = place.at.offset_from(untyped.start) else { return Ok(None) };
                let key = key(untyped.start, offset);
                Some(self.names.untyped(key, &untyped, offset))
            }
            Some(Resident::Variable(variable)) => {
                let Some(offset) = place.at.offset_from(variable.start) else { return Ok(None) };
                // `static struct cell cells[64]`: all elements are one data object, so that one name serves
                // all of them.
                let element_size = variable.layout.innermost_element().size.max(1);
                let key = key(variable.start, offset % element_size);
                let root = Root::Variable(&variable.name);
                let named = self.names.part(key, &variable.layout, root, (offset, size));
                // Threads' own arrays begin in each thread elsewhere.
                let is_array = element_size < variable.layout.size;
                if let Some(named) = named.filter(|_| is_array && place.storage == Storage::Static)
                {
                    let (start, element_bytes) = (variable.start, element_size);
                    self.names.get_mut(named).array = Some(StaticArray { start, element_bytes });
                }
                named
            }
        })
    }
}
