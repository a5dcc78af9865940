//! Code as text: instructions in the order of their addresses, as assemblers write them.

use super::access::{self, MemoryAccess};
use super::exit::Exit;
use dataspace_proto::address::Svma;
use iced_x86::{
    Decoder, DecoderOptions, Formatter, GasFormatter, Instruction, InstructionInfoFactory,
    IntelFormatter,
};

/// Column in which operands begin: that of objdump.
const OPERAND_COLUMN: u32 = 7;

/// Text of what does not decode, as objdump has it.
const BAD: &str = "(bad)";

/// Syntax of assembly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AssemblySyntax {
    /// Syntax of the GNU tools: the destination comes last.
    #[default]
    Att,
    /// Syntax of the manuals: the destination comes first.
    Intel,
}

/// One instruction as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstructionText {
    pub(crate) at: Svma,
    pub(crate) n_bytes: usize,
    pub(crate) text: String,
    /// The address that it jumps to or calls, where that is written out.
    pub(crate) target: Option<Svma>,
    /// The address that its operand has, where that is written out.
    pub(crate) refers_to: Option<Svma>,
    /// The memory that it touches.
    pub(crate) memory: Vec<MemoryAccess>,
}

/// The instructions in `code`, which begins at `start`, one after the other; at most `max`.
pub(crate) fn disassemble(
    start: Svma,
    code: &[u8],
    syntax: AssemblySyntax,
    max: usize,
) -> Vec<InstructionText> {
    let mut decoder = Decoder::with_ip(64, code, start.0, DecoderOptions::NONE);
    let mut formatter = formatter(syntax);
    let mut factory = InstructionInfoFactory::new();
    let mut here = Instruction::default();
    let mut found = Vec::new();
    while decoder.can_decode() && found.len() < max {
        decoder.decode_out(&mut here);
        let mut text = String::new();
        if here.is_invalid() {
            text.push_str(BAD);
        } else {
            formatter.format(&here, &mut text);
            text.truncate(text.trim_end().len());
        }
        let refers_to = here.is_ip_rel_memory_operand().then(|| here.ip_rel_memory_address());
        let memory = if here.is_invalid() || !access::is_of_memory(&here) {
            Vec::new()
        } else {
            access::accesses(&here, &mut factory)
        };
        found.push(InstructionText {
            at: Svma(here.ip()),
            n_bytes: here.len(),
            text,
            target: Exit::of(&here).target(),
            refers_to: refers_to.map(Svma),
            memory,
        });
    }
    found
}

/// A formatter that writes numbers and operands as objdump does.
fn formatter(syntax: AssemblySyntax) -> Box<dyn Formatter> {
    let mut formatter: Box<dyn Formatter> = match syntax {
        AssemblySyntax::Att => Box::new(GasFormatter::new()),
        AssemblySyntax::Intel => Box::new(IntelFormatter::new()),
    };
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_small_hex_numbers_in_decimal(false);
    options.set_branch_leading_zeros(false);
    options.set_rip_relative_addresses(true);
    options.set_space_after_operand_separator(false);
    options.set_first_operand_char_index(OPERAND_COLUMN);
    // `call 0x401136`: how far a jump leads is told by its address.
    options.set_show_branch_size(false);
    formatter
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::memory::Access;

    /// mov 8(%rdi),%rax; je .+4; mov %eax,0x100(%rip); ret; and a byte that is none.
    const CODE: &[u8] =
        &[0x48, 0x8b, 0x47, 0x08, 0x74, 0x02, 0x89, 0x05, 0x00, 0x01, 0x00, 0x00, 0xc3, 0x06];

    #[test]
    fn instructions_read_as_the_tools_write_them() {
        let texts = |syntax| -> Vec<String> {
            let found = disassemble(Svma(0x1000), CODE, syntax, 9);
            found.into_iter().map(|it| it.text).collect()
        };
        let att = ["mov    0x8(%rdi),%rax", "je     0x1008", "mov    %eax,0x100(%rip)", "ret"];
        assert_eq!(texts(AssemblySyntax::Att)[..4], att);
        assert_eq!(texts(AssemblySyntax::Att)[4], BAD);
        assert_eq!(texts(AssemblySyntax::Intel)[0], "mov    rax,[rdi+0x8]");
    }

    #[test]
    fn addresses_that_are_written_out_are_told_and_so_is_the_memory_that_is_touched() {
        let found = disassemble(Svma(0x1000), CODE, AssemblySyntax::Att, 3);
        assert_eq!(found.len(), 3, "as many as were asked for");
        assert_eq!((found[0].memory[0].access, found[0].memory[0].size), (Access::Load, 8));
        assert_eq!((found[1].target, found[1].memory.len()), (Some(Svma(0x1008)), 0));
        assert_eq!(found[2].refers_to, Some(Svma(0x110c)));
        assert_eq!(found[2].memory[0].access, Access::Store);
        assert_eq!(found.iter().map(|it| it.n_bytes).sum::<usize>(), 12);
    }
}
