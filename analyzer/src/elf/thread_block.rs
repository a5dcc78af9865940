//! A load object's block of thread-local variables, and where the loader puts it.

use object::read::elf::{Dyn as _, ElfFile64, ProgramHeader as _};
use object::{LittleEndian, elf};

/// The block of a load object's thread-local variables that each thread has (`PT_TLS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadBlock {
    /// Its length.
    pub len_bytes: u64,
    /// Distance from the thread's base down to its beginning, in the program that was executed; of libraries the
    /// loader decides.
    pub below_base: Option<u64>,
}

impl ThreadBlock {
    /// The block of `elf`, if it has thread-local variables.
    pub(crate) fn read<'d, R: object::ReadRef<'d>>(
        elf: &ElfFile64<'d, object::LittleEndian, R>,
    ) -> Option<Self> {
        let endian = LittleEndian;
        let headers = elf.elf_program_headers().iter();
        let header = headers.clone().find(|header| header.p_type(endian) == elf::PT_TLS)?;
        let (start, len_bytes) = (header.p_vaddr(endian), header.p_memsz(endian));
        let align = header.p_align(endian).max(1);
        // Variant II of the ABI for thread-local storage, section 3.4.6: the program's block ends
        // at the base, rounded up so that both are aligned (glibc: _dl_determine_tlsoffset).
        let end = start.checked_add(len_bytes)?.checked_next_multiple_of(align)?;
        Some(Self { len_bytes, below_base: is_program(elf).then_some(end - start) })
    }

    /// The offset in the program's block of what is `distance` from the base.
    #[must_use]
    pub fn offset_of(&self, distance: i64) -> Option<u64> {
        let offset = self.below_base?.checked_add_signed(distance)?;
        (offset < self.len_bytes).then_some(offset)
    }
}

/// Tells whether this is what is executed, and no library: its block alone has a fixed place.
fn is_program<'d, R: object::ReadRef<'d>>(elf: &ElfFile64<'d, object::LittleEndian, R>) -> bool {
    let endian = LittleEndian;
    if elf.elf_header().e_type.get(endian) == elf::ET_EXEC {
        return true;
    }
    let headers = elf.elf_program_headers();
    let dynamic = headers.iter().find_map(|it| it.dynamic(endian, elf.data()).ok().flatten());
    let entries = dynamic.unwrap_or(&[]);
    let is_pie = |entry: &elf::Dyn64<LittleEndian>| {
        entry.tag(endian) == elf::DT_FLAGS_1 && entry.val(endian) & elf::DF_1_PIE.0 != 0
    };
    if entries.iter().any(is_pie) {
        return true;
    }
    // Older linkers do not say so; libc has an interpreter too, but also a name as a library.
    let is_named = entries.iter().any(|entry| entry.tag(endian) == elf::DT_SONAME);
    !is_named && headers.iter().any(|header| header.p_type(endian) == elf::PT_INTERP)
}
