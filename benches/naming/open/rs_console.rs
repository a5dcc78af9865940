//! A console of eight bits: an assembler, a processor that decodes by table, cartridges with banks as trait objects,
//! tiles and sprites line by line, sound channels, timed events, rewinding by differences, a profile of calls.
#[path = "../heap.rs"]
mod heap;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::fmt;

const WIDTH: usize = 128;
const HEIGHT: usize = 96;
const COLUMNS: usize = WIDTH / 8 * 2;
const LINE_CYCLES: u64 = 60;
const SAMPLE_CYCLES: u64 = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mnemonic {
    Lda, Ldx, Ldy, Sta, Stx, Sty, Adc, Sbc, And, Ora, Eor, Cmp, Cpx, Inc, Dec, Inx, Iny, Dex, Tax, Tay, Txa, Tya, Asl, Lsr, Bne, Beq, Bcc,
    Bmi, Jmp, Jsr, Rts, Rti, Pha, Pla, Clc, Sec, Nop,
}
use Mnemonic::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Implied,
    Immediate,
    Zero,
    ZeroX,
    Absolute,
    AbsoluteX,
    IndirectY,
    Relative,
}

#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    mnemonic: Mnemonic,
    mode: Mode,
    bytes: u8,
    cycles: u8,
}

/// All combinations that there are; an opcode is a place in it.
fn instructions() -> Vec<Instruction> {
    let reading: &[Mode] = &[Mode::Immediate, Mode::Zero, Mode::ZeroX, Mode::Absolute, Mode::AbsoluteX, Mode::IndirectY];
    let mut table = heap::of::<Instruction, _>(|| Vec::with_capacity(160));
    let mut add = |names: &[Mnemonic], modes: &[Mode]| {
        for &mnemonic in names {
            for &mode in modes {
                let bytes = match mode {
                    Mode::Implied => 1,
                    Mode::Absolute | Mode::AbsoluteX => 3,
                    _ => 2,
                };
                table.push(Instruction { mnemonic, mode, bytes, cycles: bytes + 1 + u8::from(mode == Mode::IndirectY) * 3 });
            }
        }
    };
    add(&[Nop], &[Mode::Implied]);
    add(&[Lda, Adc, Sbc, And, Ora, Eor, Cmp], reading);
    add(&[Ldx, Ldy, Cpx], &reading[..4]);
    add(&[Sta, Stx, Sty, Inc, Dec, Asl, Lsr], &reading[1..]);
    add(&[Inx, Iny, Dex, Tax, Tay, Txa, Tya, Rts, Rti, Pha, Pla, Clc, Sec], &[Mode::Implied]);
    add(&[Bne, Beq, Bcc, Bmi], &[Mode::Relative]);
    add(&[Jmp, Jsr], &[Mode::Absolute]);
    table
}

// ---- the assembler ----

#[derive(Debug)]
pub enum AsmError<'a> {
    Unknown(&'a str),
    NoSuchMode(Mnemonic, Mode),
}

impl fmt::Display for AsmError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AsmError::Unknown(word) => write!(f, "unknown: {word}"),
            AsmError::NoSuchMode(mnemonic, mode) => write!(f, "{mnemonic:?} has no {mode:?}"),
        }
    }
}

pub struct Assembler<'t> {
    table: &'t [Instruction],
    names: HashMap<String, Mnemonic>,
    labels: HashMap<String, u16>,
    fixups: Vec<Fixup>,
    code: Vec<u8>,
    origin: u16,
}

pub struct Fixup {
    at: usize,
    relative: bool,
    label: String,
}

impl<'t> Assembler<'t> {
    fn new(table: &'t [Instruction], origin: u16) -> Self {
        let mut names = heap::table::<String, Mnemonic, _>(|| HashMap::with_capacity(64));
        for instruction in table {
            let text = heap::of::<u8, _>(|| format!("{:?}", instruction.mnemonic).to_lowercase());
            names.insert(text, instruction.mnemonic);
        }
        let labels = heap::table::<String, u16, _>(|| HashMap::with_capacity(32));
        let fixups = heap::of::<Fixup, _>(|| Vec::with_capacity(32));
        Assembler { table, names, labels, fixups, code: heap::of::<u8, _>(|| Vec::with_capacity(1024)), origin }
    }

    fn assemble<'a>(mut self, source: &'a str) -> Result<Vec<u8>, AsmError<'a>> {
        for line in source.lines().map(str::trim).filter(|line| !line.is_empty()) {
            if let Some(label) = line.strip_suffix(':') {
                let here = self.origin + self.code.len() as u16;
                self.labels.insert(heap::of::<u8, _>(|| label.to_owned()), here);
                continue;
            }
            let (word, operand) = line.split_once(' ').unwrap_or((line, ""));
            let mnemonic = *self.names.get(word).ok_or(AsmError::Unknown(word))?;
            self.encode(mnemonic, operand)?;
        }
        for fixup in &self.fixups {
            let target = self.labels.get(&fixup.label).copied().unwrap_or(self.origin);
            if fixup.relative {
                self.code[fixup.at] = target.wrapping_sub(self.origin + fixup.at as u16 + 1) as u8;
            } else {
                self.code[fixup.at..fixup.at + 2].copy_from_slice(&target.to_le_bytes());
            }
        }
        Ok(self.code)
    }

    fn encode<'a>(&mut self, mnemonic: Mnemonic, operand: &'a str) -> Result<(), AsmError<'a>> {
        let number = |text: &'a str| u16::from_str_radix(text.trim_start_matches('$'), 16).map_err(|_| AsmError::Unknown(text));
        let (mode, value) = match operand.as_bytes() {
            [] => (Mode::Implied, 0),
            [b'#', ..] => (Mode::Immediate, number(&operand[1..])?),
            [b'(', ..] => (Mode::IndirectY, number(&operand[1..4])?),
            [b'$', _, _] => (Mode::Zero, number(operand)?),
            [b'$', _, _, b',', ..] => (Mode::ZeroX, number(&operand[..3])?),
            [b'$', _, _, _, _] => (Mode::Absolute, number(operand)?),
            [b'$', ..] => (Mode::AbsoluteX, number(&operand[..5])?),
            _ if matches!(mnemonic, Jmp | Jsr) => (Mode::Absolute, 0),
            _ => (Mode::Relative, 0),
        };
        let same = |i: &Instruction| i.mnemonic == mnemonic && i.mode == mode;
        let opcode = self.table.iter().position(same).ok_or(AsmError::NoSuchMode(mnemonic, mode))?;
        self.code.push(opcode as u8);
        if mode == Mode::Relative || mode == Mode::Absolute && !operand.starts_with('$') {
            let label = heap::of::<u8, _>(|| operand.to_owned());
            self.fixups.push(Fixup { at: self.code.len(), relative: mode == Mode::Relative, label });
        }
        let bytes = usize::from(self.table[opcode].bytes) - 1;
        self.code.extend_from_slice(&value.to_le_bytes()[..bytes]);
        Ok(())
    }
}

// ---- cartridges ----

pub trait Mapper {
    fn read(&mut self, address: u16) -> u8;
    fn write(&mut self, address: u16, value: u8);
    fn line(&mut self) -> bool {
        false
    }
}

pub struct Flat {
    rom: Box<[u8]>,
    reads: u64,
}

pub struct Banked {
    banks: Vec<Bank>,
    selected: [u8; 4],
    irq: Option<LineCounter>,
}

pub struct Bank {
    bytes: [u8; 1024],
    reads: u32,
}

#[derive(Clone, Copy)]
pub struct LineCounter {
    latch: u8,
    left: u8,
}

impl Mapper for Flat {
    fn read(&mut self, address: u16) -> u8 {
        self.reads += 1;
        self.rom[address as usize & 4095]
    }
    fn write(&mut self, _: u16, _: u8) {}
}

impl Mapper for Banked {
    fn read(&mut self, address: u16) -> u8 {
        let number = self.selected[address as usize >> 10 & 3];
        let bank = &mut self.banks[number as usize];
        bank.reads += 1;
        bank.bytes[address as usize & 1023]
    }
    fn write(&mut self, address: u16, value: u8) {
        match address & 3 {
            3 => self.irq = Some(LineCounter { latch: value, left: value }),
            place => self.selected[place as usize + 1] = value % self.banks.len() as u8,
        }
    }
    fn line(&mut self) -> bool {
        let Some(counter) = &mut self.irq else { return false };
        if counter.left > 0 {
            counter.left -= 1;
            return false;
        }
        counter.left = counter.latch;
        true
    }
}

// ---- picture ----

#[derive(Clone, Copy, Default)]
pub struct Rgb(u8, u8, u8);

#[derive(Clone, Copy, Default)]
pub struct Cell {
    tile: u8,
    attribute: u8,
}

#[derive(Clone, Copy, Default)]
pub struct Sprite {
    y: u8,
    x: u8,
    tile: u8,
    attribute: u8,
}

#[derive(Clone, Copy)]
pub struct Tile {
    rows: [[u8; 8]; 8],
}

pub struct Plane {
    rows: [[Cell; COLUMNS]; 16],
}

pub struct Picture {
    plane: Box<Plane>,
    tiles: Vec<Tile>,
    sprites: [Sprite; 32],
    visible: Vec<(u8, Sprite)>,
    palette: [Rgb; 32],
    scroll: (u8, u8),
    indexes: Vec<u8>,
    pixels: Vec<Rgb>,
    line: usize,
    collisions: u32,
    address: u16,
}

impl Picture {
    fn write(&mut self, register: u16, value: u8) {
        match register {
            0 => self.scroll.0 = value,
            1 => self.scroll.1 = value,
            2 => self.address = self.address << 8 | u16::from(value),
            3 => {
                let at = self.address as usize;
                let cell = &mut self.plane.rows[at / COLUMNS % 16][at % COLUMNS];
                *cell = Cell { tile: value & 63, attribute: (value >> 6) | (at as u8 & 4) };
                self.address = self.address.wrapping_add(1);
            }
            _ => self.palette[register as usize % 32] = Rgb(value, value << 2, value << 4),
        }
    }

    #[inline(never)]
    fn evaluate_sprites(&mut self) {
        let line = self.line as u8;
        self.visible.clear();
        let on_line = |(_, sprite): &(usize, &Sprite)| line.wrapping_sub(sprite.y) < 8;
        let found = self.sprites.iter().enumerate().filter(on_line).take(8);
        self.visible.extend(found.map(|(number, sprite)| (number as u8, *sprite)));
    }

    #[inline(never)]
    fn render_line(&mut self) {
        let y = (self.line + self.scroll.1 as usize) % 128;
        let row = &self.plane.rows[y / 8];
        let start = self.line * WIDTH;
        for (i, pixel) in self.indexes[start..start + WIDTH].iter_mut().enumerate() {
            let x = (i + self.scroll.0 as usize) % (COLUMNS * 8);
            let cell = row[x / 8];
            let colour = self.tiles[cell.tile as usize].rows[y % 8][x % 8];
            *pixel = (colour | cell.attribute << 2) & 31;
        }
        for &(number, sprite) in self.visible.iter().rev() {
            let row = (self.line as u8).wrapping_sub(sprite.y);
            let row = if sprite.attribute & 0x80 != 0 { 7 - row } else { row };
            let tile = &self.tiles[sprite.tile as usize & 63];
            for (i, &colour) in tile.rows[row as usize].iter().enumerate() {
                let x = sprite.x as usize + i;
                if colour == 0 || x >= WIDTH {
                    continue;
                }
                self.collisions += u32::from(number == 0);
                self.indexes[start + x] = 16 + colour;
            }
        }
        self.line = (self.line + 1) % HEIGHT;
    }

    /// What is shown is small: every other pixel of every fourth line.
    #[inline(never)]
    fn present(&mut self) {
        let lines = self.indexes.chunks_exact(WIDTH).step_by(4);
        for (shown, index) in self.pixels.iter_mut().zip(lines.flat_map(|line| line.iter().step_by(2))) {
            *shown = self.palette[*index as usize];
        }
    }
}

// ---- sound ----

pub struct Envelope {
    volume: u8,
    decay: u8,
    divider: u8,
}

pub enum Channel {
    Pulse { timer: u16, period: u16, duty: u8, step: u8, envelope: Envelope },
    Triangle { timer: u16, period: u16, step: u8, length: u8 },
    Noise { shift: u16, timer: u16, period: u16, envelope: Envelope },
    Sample { data: std::rc::Rc<[i8]>, position: u32, step: u32 },
}

impl Envelope {
    fn tick(&mut self) {
        self.divider = self.divider.wrapping_sub(1);
        if self.divider == 0 {
            self.divider = self.decay;
            self.volume = self.volume.saturating_sub(1);
        }
    }
}

fn countdown(timer: &mut u16, period: u16) -> bool {
    *timer = timer.wrapping_sub(7);
    if *timer < period {
        return false;
    }
    *timer = period;
    true
}

impl Channel {
    fn output(&mut self) -> i32 {
        match self {
            Channel::Pulse { timer, period, duty, step, envelope } => {
                if countdown(timer, *period) {
                    *step = (*step + 1) & 7;
                    envelope.tick();
                }
                i32::from(*step < *duty) * i32::from(envelope.volume)
            }
            Channel::Triangle { timer, period, step, length } => {
                if countdown(timer, *period) && *length > 0 {
                    *step = (*step + 1) & 31;
                }
                i32::from(*step ^ (*step & 16).wrapping_neg() >> 3)
            }
            Channel::Noise { shift, timer, period, envelope } => {
                if countdown(timer, *period) {
                    *shift = *shift >> 1 | ((*shift ^ *shift >> 1) & 1) << 14;
                    envelope.tick();
                }
                i32::from(*shift & 1) * i32::from(envelope.volume)
            }
            Channel::Sample { data, position, step } => {
                *position = (*position + *step) % ((data.len() as u32) << 8);
                i32::from(data[(*position >> 8) as usize]) >> 2
            }
        }
    }

    fn write(&mut self, register: u16, value: u8) {
        match (self, register) {
            (Channel::Pulse { period, .. } | Channel::Triangle { period, .. } | Channel::Noise { period, .. }, 0) => {
                *period = u16::from(value) * 4 + 9;
            }
            (Channel::Pulse { envelope, .. } | Channel::Noise { envelope, .. }, _) => envelope.volume = value & 15,
            (Channel::Triangle { length, .. }, _) => *length = value,
            (Channel::Sample { step, .. }, _) => *step = u32::from(value) + 16,
        }
    }
}

trait Filter {
    fn run(&mut self, input: f32) -> f32;
}

#[derive(Default)]
struct LowPass {
    factor: f32,
    last: f32,
}

#[derive(Default)]
struct HighPass {
    factor: f32,
    last: (f32, f32),
}

struct Both<A, B>(A, B);

impl Filter for LowPass {
    fn run(&mut self, input: f32) -> f32 {
        self.last += (input - self.last) * self.factor;
        self.last
    }
}

impl Filter for HighPass {
    fn run(&mut self, input: f32) -> f32 {
        let output = self.factor * (self.last.1 + input - self.last.0);
        self.last = (input, output);
        output
    }
}

impl<A: Filter, B: Filter> Filter for Both<A, B> {
    fn run(&mut self, input: f32) -> f32 {
        self.1.run(self.0.run(input))
    }
}

pub struct Sound {
    channels: Vec<Channel>,
    filter: Both<HighPass, Both<LowPass, LowPass>>,
    queue: VecDeque<i16>,
    peak: f32,
}

impl Sound {
    #[inline(never)]
    fn sample(&mut self) {
        let mixed: i32 = self.channels.iter_mut().map(Channel::output).sum();
        let out = self.filter.run(mixed as f32 * 200.0);
        self.peak = self.peak.max(out) * 0.9999;
        if self.queue.len() == 1024 {
            self.queue.pop_front();
        }
        self.queue.push_back(out as i16);
    }
}

// ---- the machine ----

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Event {
    Line,
    Sample,
    Timer(u8),
    Frame,
}

pub struct Bus {
    ram: [u8; 2048],
    picture: Picture,
    sound: Sound,
    cartridge: Box<dyn Mapper>,
    events: BinaryHeap<Reverse<(u64, Event)>>,
    pad: u8,
    frames: u64,
}

impl Bus {
    fn read(&mut self, address: u16) -> u8 {
        match address >> 12 {
            0 | 1 => self.ram[address as usize & 2047],
            2 => self.picture.collisions as u8 ^ self.picture.line as u8,
            4 => self.pad,
            _ => self.cartridge.read(address),
        }
    }

    fn write(&mut self, address: u16, value: u8) {
        match address >> 12 {
            0 | 1 => self.ram[address as usize & 2047] = value,
            2 => self.picture.write(address & 31, value),
            3 => {
                let sprite = &mut self.picture.sprites[address as usize >> 2 & 31];
                *match address & 3 {
                    0 => &mut sprite.y,
                    1 => &mut sprite.x,
                    2 => &mut sprite.tile,
                    _ => &mut sprite.attribute,
                } = value;
            }
            4 => {
                let channels = self.sound.channels.len();
                self.sound.channels[(address as usize >> 1 & 7) % channels].write(address & 1, value);
            }
            _ => self.cartridge.write(address, value),
        }
    }
}

#[derive(Clone, Copy, Default)]
pub struct Cpu {
    a: u8,
    x: u8,
    y: u8,
    sp: u8,
    pc: u16,
    carry: bool,
    zero: bool,
    negative: bool,
    cycles: u64,
}

#[derive(Clone, Copy, Default)]
pub struct Trace {
    pc: u16,
    opcode: u8,
    a: u8,
    cycles: u64,
}

/// What differs from the frame before.
pub struct Delta {
    frame: u64,
    cpu: Cpu,
    runs: Vec<(u16, u16)>,
    bytes: Vec<u8>,
}

#[derive(Default)]
pub struct Calls {
    count: u32,
    deepest: u8,
    cycles: u64,
}

/// The memory as it was a frame ago.
pub struct Before {
    ram: [u8; 2048],
}

pub struct Console {
    cpu: Cpu,
    bus: Bus,
    table: Vec<Instruction>,
    trace: Vec<Trace>,
    traced: usize,
    history: VecDeque<Delta>,
    before: Box<Before>,
    profile: HashMap<u16, Calls>,
    depth: u8,
}

impl Console {
    fn operand(&mut self, mode: Mode) -> u16 {
        let pc = self.cpu.pc;
        let byte = |bus: &mut Bus, at: u16| u16::from(bus.read(pc.wrapping_add(at)));
        let bus = &mut self.bus;
        match mode {
            Mode::Implied => 0,
            Mode::Immediate => pc + 1,
            Mode::Zero => byte(bus, 1),
            Mode::ZeroX => (byte(bus, 1) + u16::from(self.cpu.x)) & 255,
            Mode::Absolute => byte(bus, 1) | byte(bus, 2) << 8,
            Mode::AbsoluteX => (byte(bus, 1) | byte(bus, 2) << 8).wrapping_add(self.cpu.x.into()),
            Mode::IndirectY => {
                let zero = byte(bus, 1);
                let base = u16::from(bus.read(zero)) | u16::from(bus.read(zero + 1)) << 8;
                base.wrapping_add(self.cpu.y.into())
            }
            Mode::Relative => pc.wrapping_add(2).wrapping_add(byte(bus, 1) as i8 as u16),
        }
    }

    fn flags(&mut self, value: u8) -> u8 {
        self.cpu.zero = value == 0;
        self.cpu.negative = value & 0x80 != 0;
        value
    }

    fn add(&mut self, value: u8) {
        let sum = u16::from(self.cpu.a) + u16::from(value) + u16::from(self.cpu.carry);
        self.cpu.carry = sum > 255;
        self.cpu.a = self.flags(sum as u8);
    }

    fn push(&mut self, value: u8) {
        self.bus.ram[256 + self.cpu.sp as usize] = value;
        self.cpu.sp = self.cpu.sp.wrapping_sub(1);
    }

    fn pull(&mut self) -> u8 {
        self.cpu.sp = self.cpu.sp.wrapping_add(1);
        self.bus.ram[256 + self.cpu.sp as usize]
    }

    fn call(&mut self, target: u16, back: u16) {
        self.push((back >> 8) as u8);
        self.push(back as u8);
        self.cpu.pc = target;
        self.depth = self.depth.wrapping_add(1);
        if let Some(calls) = self.profile.get_mut(&target) {
            calls.count += 1;
            calls.deepest = calls.deepest.max(self.depth);
            calls.cycles = self.cpu.cycles;
        } else {
            self.profile.insert(target, Calls::default());
        }
    }

    #[inline(never)]
    fn step(&mut self) {
        let opcode = self.bus.read(self.cpu.pc);
        let instruction = self.table[opcode as usize % self.table.len()];
        let length = self.trace.len();
        self.trace[self.traced % length] = Trace { pc: self.cpu.pc, opcode, a: self.cpu.a, cycles: self.cpu.cycles };
        self.traced += 1;
        let address = self.operand(instruction.mode);
        self.cpu.pc = self.cpu.pc.wrapping_add(instruction.bytes.into());
        self.cpu.cycles += u64::from(instruction.cycles);
        match instruction.mnemonic {
            Lda => { let v = self.bus.read(address); self.cpu.a = self.flags(v) }
            Ldx => { let v = self.bus.read(address); self.cpu.x = self.flags(v) }
            Ldy => { let v = self.bus.read(address); self.cpu.y = self.flags(v) }
            Sta => self.bus.write(address, self.cpu.a),
            Stx => self.bus.write(address, self.cpu.x),
            Sty => self.bus.write(address, self.cpu.y),
            Adc => { let v = self.bus.read(address); self.add(v) }
            Sbc => { let v = self.bus.read(address); self.add(!v) }
            And => { let v = self.bus.read(address); self.cpu.a = self.flags(self.cpu.a & v) }
            Ora => { let v = self.bus.read(address); self.cpu.a = self.flags(self.cpu.a | v) }
            Eor => { let v = self.bus.read(address); self.cpu.a = self.flags(self.cpu.a ^ v) }
            Cmp | Cpx => {
                let v = self.bus.read(address);
                let register = if instruction.mnemonic == Cmp { self.cpu.a } else { self.cpu.x };
                self.cpu.carry = register >= v;
                self.flags(register.wrapping_sub(v));
            }
            Inc => { let v = self.bus.read(address).wrapping_add(1); self.flags(v); self.bus.write(address, v) }
            Dec => { let v = self.bus.read(address).wrapping_sub(1); self.flags(v); self.bus.write(address, v) }
            Asl => { let v = self.bus.read(address); self.cpu.carry = v > 127; self.flags(v << 1); self.bus.write(address, v << 1) }
            Lsr => { let v = self.bus.read(address); self.cpu.carry = v & 1 != 0; self.flags(v >> 1); self.bus.write(address, v >> 1) }
            Inx => self.cpu.x = self.flags(self.cpu.x.wrapping_add(1)),
            Iny => self.cpu.y = self.flags(self.cpu.y.wrapping_add(1)),
            Dex => self.cpu.x = self.flags(self.cpu.x.wrapping_sub(1)),
            Tax => self.cpu.x = self.flags(self.cpu.a),
            Tay => self.cpu.y = self.flags(self.cpu.a),
            Txa => self.cpu.a = self.flags(self.cpu.x),
            Tya => self.cpu.a = self.flags(self.cpu.y),
            Bne if !self.cpu.zero => self.cpu.pc = address,
            Beq if self.cpu.zero => self.cpu.pc = address,
            Bcc if !self.cpu.carry => self.cpu.pc = address,
            Bmi if self.cpu.negative => self.cpu.pc = address,
            Jmp => self.cpu.pc = address,
            Jsr => self.call(address, self.cpu.pc),
            Rts | Rti => {
                let low = self.pull();
                self.cpu.pc = u16::from(low) | u16::from(self.pull()) << 8;
                self.depth = self.depth.wrapping_sub(1);
            }
            Pha => self.push(self.cpu.a),
            Pla => { let v = self.pull(); self.cpu.a = self.flags(v) }
            Clc => self.cpu.carry = false,
            Sec => self.cpu.carry = true,
            _ => {}
        }
    }

    /// Runs until the picture is whole.
    fn frame(&mut self) {
        loop {
            while self.bus.events.peek().is_none_or(|Reverse((due, _))| *due > self.cpu.cycles) {
                self.step();
            }
            let Some(Reverse((due, event))) = self.bus.events.pop() else { return };
            let period = match event {
                Event::Line => {
                    self.bus.picture.evaluate_sprites();
                    self.bus.picture.render_line();
                    if self.bus.cartridge.line() {
                        self.bus.ram[0x10] = self.bus.ram[0x10].wrapping_add(1);
                    }
                    LINE_CYCLES
                }
                Event::Sample => {
                    self.bus.sound.sample();
                    SAMPLE_CYCLES
                }
                Event::Timer(number) => {
                    self.bus.ram[0x20 + number as usize] = self.bus.ram[0x20 + number as usize].wrapping_add(1);
                    400 + 90 * u64::from(number)
                }
                Event::Frame => LINE_CYCLES * HEIGHT as u64,
            };
            self.bus.events.push(Reverse((due + period, event)));
            if event == Event::Frame {
                self.bus.frames += 1;
                self.bus.picture.present();
                return;
            }
        }
    }

    #[inline(never)]
    fn remember(&mut self) {
        let mut delta = match self.history.len() {
            32 => self.history.pop_front(),
            _ => None,
        }
        .unwrap_or_else(|| Delta {
            frame: 0,
            cpu: self.cpu,
            runs: heap::of::<(u16, u16), _>(|| Vec::with_capacity(64)),
            bytes: heap::of::<u8, _>(|| Vec::with_capacity(512)),
        });
        (delta.frame, delta.cpu) = (self.bus.frames, self.cpu);
        delta.runs.clear();
        delta.bytes.clear();
        for (place, (old, new)) in self.before.ram.iter_mut().zip(&self.bus.ram).enumerate() {
            if old == new {
                continue;
            }
            match delta.runs.last_mut() {
                Some((start, length)) if usize::from(*start + *length) == place => *length += 1,
                _ => delta.runs.push((place as u16, 1)),
            }
            delta.bytes.push(*old);
            *old = *new;
        }
        self.history.push_back(delta);
    }

    #[inline(never)]
    fn rewind(&mut self, frames: usize) {
        for _ in 0..frames {
            let Some(delta) = self.history.pop_back() else { return };
            let mut bytes = delta.bytes.iter();
            for &(start, length) in &delta.runs {
                for place in start..start + length {
                    let byte = *bytes.next().unwrap_or(&0);
                    self.before.ram[place as usize] = byte;
                    self.bus.ram[place as usize] = byte;
                }
            }
            self.bus.frames = delta.frame;
        }
    }

    #[inline(never)]
    fn hottest(&self) -> u64 {
        let recent = self.trace.iter().step_by(4).filter(|trace| trace.opcode != 0);
        let sum: u64 = recent.map(|trace| u64::from(trace.pc ^ u16::from(trace.a)) + (trace.cycles & 1)).sum();
        let calls = self.profile.iter().max_by_key(|(_, calls)| (calls.count, calls.cycles));
        sum + calls.map_or(0, |(&address, calls)| u64::from(address) + u64::from(calls.deepest))
    }
}

const PROGRAM: &str = "
start:
 ldx #00
 lda #10
 sta $31
 lda #00
 sta $30
fill:
 txa
 eor $20
 sta $0400,x
 adc $0400,x
 sta ($30),y
 iny
 inx
 cpx #30
 bne fill
 jsr sprites
 jsr map
 jsr sounds
 jsr sort
 lda $4000
 sta $2000
 inc $2001
 jmp start
sprites:
 ldx #00
 lda $21
next:
 sta $3000,x
 clc
 adc $0400,x
 sta $0500,x
 inx
 cpx #60
 bne next
 rts
map:
 lda $20
 sta $2002
 lda $22
 sta $2002
 ldx #18
cells:
 lda $8200,x
 eor $20
 sta $2003
 dex
 bne cells
 lda $23
 sta $8001
 rts
sounds:
 lda $20
 sta $4000
 lda $22
 sta $4002
 sta $4001
 lda #0f
 sta $4003
 sta $4005
 rts
sort:
 ldx #00
pairs:
 lda $0500,x
 cmp $0501,x
 bcc ordered
 pha
 lda $0501,x
 sta $0500,x
 pla
 sta $0501,x
ordered:
 inx
 cpx #28
 bne pairs
 asl $40
 lsr $41
 dec $42
 rts
";

fn picture() -> Picture {
    let mut tiles = heap::of::<Tile, _>(|| Vec::with_capacity(64));
    for number in 0..64usize {
        let row = |y: usize| std::array::from_fn(|x| ((x * number + y * 3) / 5 % 4) as u8);
        tiles.push(Tile { rows: std::array::from_fn(row) });
    }
    Picture {
        plane: heap::of::<Plane, _>(|| Box::new(Plane { rows: [[Cell::default(); COLUMNS]; 16] })),
        tiles,
        sprites: [Sprite::default(); 32],
        visible: heap::of::<(u8, Sprite), _>(|| Vec::with_capacity(8)),
        palette: std::array::from_fn(|i| Rgb(i as u8 * 8, 255 - i as u8 * 7, i as u8 * 3)),
        scroll: (0, 0),
        indexes: heap::of::<u8, _>(|| vec![0; WIDTH * HEIGHT]),
        pixels: heap::of::<Rgb, _>(|| vec![Rgb::default(); WIDTH * HEIGHT / 8]),
        line: 0,
        collisions: 0,
        address: 0,
    }
}

fn sound() -> Sound {
    let mut channels = heap::of::<Channel, _>(|| Vec::with_capacity(6));
    let envelope = |decay| Envelope { volume: 15, decay, divider: decay };
    channels.push(Channel::Pulse { timer: 0, period: 300, duty: 4, step: 0, envelope: envelope(200) });
    channels.push(Channel::Pulse { timer: 0, period: 420, duty: 2, step: 0, envelope: envelope(90) });
    channels.push(Channel::Triangle { timer: 0, period: 160, step: 0, length: 9 });
    channels.push(Channel::Noise { shift: 1, timer: 0, period: 90, envelope: envelope(60) });
    let wave: Vec<i8> = (0..700).map(|i: i32| (i * i / 50) as i8).collect();
    channels.push(Channel::Sample { data: wave.into(), position: 0, step: 60 });
    let low = |factor| LowPass { factor, last: 0.0 };
    Sound {
        channels,
        filter: Both(HighPass { factor: 0.996, last: (0.0, 0.0) }, Both(low(0.6), low(0.4))),
        queue: heap::of::<i16, _>(|| VecDeque::with_capacity(1024)),
        peak: 0.0,
    }
}

fn console(code: &[u8], banked: bool) -> Box<Console> {
    let cartridge: Box<dyn Mapper> = if banked {
        let mut banks = heap::of::<Bank, _>(|| Vec::with_capacity(6));
        for number in 0..6usize {
            let byte = |i: usize| if number == 0 { code.get(i).copied().unwrap_or(i as u8) } else { (i * number) as u8 };
            banks.push(Bank { bytes: std::array::from_fn(byte), reads: 0 });
        }
        heap::of::<Banked, _>(|| Box::new(Banked { banks, selected: [0, 1, 2, 3], irq: Some(LineCounter { latch: 9, left: 9 }) }))
    } else {
        let mut rom = heap::of::<u8, _>(|| vec![0; 4096].into_boxed_slice());
        rom[..code.len()].copy_from_slice(code);
        heap::of::<Flat, _>(|| Box::new(Flat { rom, reads: 0 }))
    };
    let mut events = heap::of::<Reverse<(u64, Event)>, _>(|| BinaryHeap::with_capacity(16));
    for event in [Event::Line, Event::Sample, Event::Timer(0), Event::Timer(1), Event::Timer(2), Event::Timer(3), Event::Frame] {
        events.push(Reverse((60, event)));
    }
    let bus = Bus { ram: [0; 2048], picture: picture(), sound: sound(), cartridge, events, pad: 0, frames: 0 };
    let made = Console {
        cpu: Cpu { pc: 0x8000, sp: 255, ..Cpu::default() },
        bus,
        table: instructions(),
        trace: heap::of::<Trace, _>(|| vec![Trace::default(); 512]),
        traced: 0,
        history: heap::of::<Delta, _>(|| VecDeque::with_capacity(32)),
        before: heap::of::<Before, _>(|| Box::new(Before { ram: [0; 2048] })),
        profile: heap::table::<u16, Calls, _>(|| HashMap::with_capacity(28)),
        depth: 0,
    };
    heap::of::<Console, _>(|| Box::new(made))
}

fn main() {
    heap::init();
    let table = instructions();
    let code = match Assembler::new(&table, 0x8000).assemble(PROGRAM) {
        Ok(code) => code,
        Err(error) => panic!("{error}"),
    };
    let mut consoles = heap::of::<Box<Console>, _>(|| Vec::with_capacity(2));
    consoles.push(console(&code, false));
    consoles.push(console(&code, true));
    let mut sum = 0;
    for round in 0usize.. {
        if !heap::more() {
            break;
        }
        for console in &mut consoles {
            console.bus.pad = (heap::random() >> 30) as u8;
            console.frame();
            console.remember();
            if round % 16 == 15 {
                console.rewind(6);
            }
            sum += console.hottest() + console.bus.picture.collisions as u64;
        }
    }
    if std::env::var("VERBOSE").is_ok() {
        for console in &consoles {
            let bus = &console.bus;
            println!("{} frames {} cycles {} traced peak {} {:?}", bus.frames, console.cpu.cycles, console.traced, bus.sound.peak, console.profile.len());
        }
    }
    std::hint::black_box(sum);
    std::process::exit(0);
}
