"""Which samples are judged: those whose IP instruction has an explicit memory operand off the stack."""

import struct
from iced_x86 import Code, Decoder, FlowControl, Formatter, FormatterSyntax, Mnemonic, OpKind, Register

MAX_LENGTH = 15
# The x86-64 psABI leaves leaf functions 128 bytes below the stack pointer.
RED_ZONE = 128
# Above the highest stack pointer that was sampled: the frame of main, what called it, its arguments.
ABOVE = 64 << 10


class LoadObject:
    """The file of a load object: its code by file offset, addresses in it."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        table, = struct.unpack_from("<Q", self.data, 32)
        size, count = struct.unpack_from("<HH", self.data, 54)
        self.loads = []
        for index in range(count):
            kind, _, offset, address, _, file_size = struct.unpack_from(
                "<IIQQQQ", self.data, table + index * size)
            if kind == 1:  # PT_LOAD
                self.loads.append((offset, address, file_size))

    def svma(self, file_offset):
        """The address that debug information has for it."""
        for offset, address, size in self.loads:
            if offset <= file_offset < offset + size:
                return file_offset - offset + address
        return file_offset

    def offset(self, svma):
        """The reverse."""
        for offset, address, size in self.loads:
            if address <= svma < address + size:
                return svma - address + offset
        return svma

    def decode(self, file_offset, address):
        """The instruction there, as if it were at `address`."""
        code = self.data[file_offset:file_offset + MAX_LENGTH]
        return Decoder(64, code, ip=address).decode()


def text(instruction):
    """As AT&T's assembler writes it, like objdump."""
    return Formatter(FormatterSyntax.GAS).format(instruction)


def _register_value(registers, register):
    """The value of a general register, `None` if the sample lacks it."""
    names = {getattr(Register, "R" + name.upper() if len(name) == 2 and name[0] != "r" else
                     name.upper()): name for name in
             "ax bx cx dx si di bp sp r8 r9 r10 r11 r12 r13 r14 r15".split()}
    return registers.get(names.get(register))


def kind(instruction):
    """Why an instruction is not judged, or `None` if its memory operand is."""
    operands = [instruction.op_kind(i) for i in range(instruction.op_count)]
    if instruction.code == Code.INVALID:
        return "invalid"
    if OpKind.MEMORY not in operands or instruction.mnemonic in (Mnemonic.LEA, Mnemonic.NOP):
        return "no operand"
    flow = instruction.flow_control
    if instruction.is_stack_instruction or flow in (
            FlowControl.CALL, FlowControl.INDIRECT_CALL, FlowControl.RETURN):
        return "push, pop, call"
    if instruction.is_vsib:
        return "gather"
    if instruction.memory_base in (Register.RSP, Register.ESP):
        return "stack"
    return None


def address(instruction, registers):
    """What the operand computes to with the registers before it; `None` where they do not tell."""
    if instruction.memory_segment in (Register.FS, Register.GS):
        return None
    if instruction.is_ip_rel_memory_operand:
        return instruction.ip_rel_memory_address
    total = instruction.memory_displacement
    for register, scale in ((instruction.memory_base, 1),
                            (instruction.memory_index, instruction.memory_index_scale)):
        if register != Register.NONE:
            value = _register_value(registers, register)
            if value is None:
                return None
            total += value * scale
    return total % 2**64


class Stacks:
    """Where the stack of each thread is, by the stack pointers that were sampled."""

    def __init__(self, samples):
        self.bounds = {}
        for sample in samples:
            pointer = sample.registers["sp"]
            low, high = self.bounds.get(sample.tid, (pointer, pointer))
            self.bounds[sample.tid] = min(low, pointer), max(high, pointer)

    def hold(self, tid, data_address):
        """Whether the address is on the thread's own stack."""
        low, high = self.bounds[tid]
        return low - RED_ZONE <= data_address < high + ABOVE


class Judge:
    """Decides of each sample whether it is judged; each instruction is decoded once."""

    def __init__(self, samples):
        self.stacks = Stacks(samples)
        self.objects = {}
        self.kinds = {}

    def load_object(self, path):
        """The file, read once."""
        if path not in self.objects:
            self.objects[path] = LoadObject(path)
        return self.objects[path]

    def verdict(self, sample):
        """`None` if the sample is judged, or why not."""
        site = sample.path, sample.file_offset
        if site not in self.kinds:
            instruction = self.load_object(sample.path).decode(sample.file_offset, sample.ip)
            self.kinds[site] = instruction, sample.ip, kind(instruction)
        instruction, decoded_at, why_not = self.kinds[site]
        if why_not is not None:
            return why_not
        if decoded_at != sample.ip and instruction.is_ip_rel_memory_operand:
            instruction = self.load_object(sample.path).decode(sample.file_offset, sample.ip)
        data_address = address(instruction, sample.registers)
        if data_address is not None and self.stacks.hold(sample.tid, data_address):
            return "stack"
        return None
