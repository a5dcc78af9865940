//! Machine code made of random bytes, of real code that was cut up, and of jumps into it.

use crate::truth::step::Random;
use object::{Object as _, ObjectSection as _};

/// Bytes of real code that one piece is cut from.
const MAX_CUT_BYTES: u64 = 400;

/// Times that a piece is repeated at most.
const MAX_REPEATED: u64 = 300;

/// What pieces are made of.
pub(crate) struct Maker {
    /// The text of this very program and of the C library.
    real: Vec<Vec<u8>>,
}

/// What one text is made of: of each kind of piece how much, compared with the others.
type Mixture = [u64; 8];

impl Maker {
    pub(crate) fn new() -> Self {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mapped = |part: &str| {
            let line = maps.lines().find(|line| line.contains(part) && line.contains("r-xp"));
            line.and_then(|line| line.split_whitespace().nth(5)).map(str::to_owned)
        };
        let own = std::env::current_exe().ok().map(|path| path.to_string_lossy().into_owned());
        let paths = [own, mapped("libc.so"), mapped("libc-")];
        let text = |path: String| {
            let bytes = std::fs::read(path).ok()?;
            let file = object::File::parse(&*bytes).ok()?;
            Some(file.section_by_name(".text")?.data().ok()?.to_vec())
        };
        Self { real: paths.into_iter().flatten().filter_map(text).collect() }
    }

    /// `n_bytes` of code that refers to itself as if it stood at `start`; `others` are addresses
    /// that it may refer to besides.
    pub(crate) fn make(
        &self,
        random: &mut Random,
        (start, n_bytes): (u64, usize),
        others: &[u64],
    ) -> Vec<u8> {
        let mixture: Mixture = std::array::from_fn(|_| {
            let is_there = random.below(3) != 0;
            if is_there { 1 + random.below(10) } else { 0 }
        });
        let total = mixture.iter().sum::<u64>().max(1);
        let mut text = Text { random, code: Vec::with_capacity(n_bytes), starts: vec![0], start };
        while text.code.len() < n_bytes {
            text.starts.push(text.code.len() as u64);
            let mut at = text.random.below(total);
            let kind = mixture.iter().position(|weight| match at.checked_sub(*weight) {
                Some(rest) => {
                    at = rest;
                    false
                }
                None => true,
            });
            self.piece(&mut text, kind.unwrap_or_default(), n_bytes as u64, others);
        }
        text.code.truncate(n_bytes);
        text.code
    }

    fn piece(&self, text: &mut Text<'_>, kind: usize, n_bytes: u64, others: &[u64]) {
        match kind {
            0 => text.noise(),
            1 => self.cut(text, 0),
            2 => self.cut(text, 20),
            3 => text.direct(n_bytes),
            4 => text.indirect(others),
            5 => text.arithmetic(),
            6 => text.string(),
            _ => text.repeated(),
        }
    }

    /// A cut of real code of which one byte in `damage` is changed.
    fn cut(&self, text: &mut Text<'_>, damage: u64) {
        let Some(real) = self.real.get(text.random.below(self.real.len() as u64) as usize) else {
            return text.noise();
        };
        let n = 1 + text.random.below(MAX_CUT_BYTES);
        let at = text.random.below(real.len() as u64) as usize;
        for byte in real[at..].iter().take(n as usize) {
            let is_damaged = damage != 0 && text.random.below(damage) == 0;
            let changed = text.random.below(256) as u8;
            text.code.push(if is_damaged { changed } else { *byte });
        }
    }
}

/// A text in the making.
struct Text<'a> {
    random: &'a mut Random,
    code: Vec<u8>,
    /// Where pieces began.
    starts: Vec<u64>,
    start: u64,
}

impl Text<'_> {
    fn byte(&mut self) -> u8 {
        self.random.below(256) as u8
    }

    fn noise(&mut self) {
        for _ in 0..1 + self.random.below(64) {
            let byte = self.byte();
            self.code.push(byte);
        }
    }

    /// Somewhere in the text, often where a piece began, sometimes outside.
    fn target(&mut self, n_bytes: u64) -> u64 {
        match self.random.below(8) {
            0..5 => {
                let idx = self.random.below(self.starts.len() as u64) as usize;
                self.start + self.starts[idx]
            }
            5 | 6 => self.start + self.random.below(n_bytes),
            _ => self.start.wrapping_add(self.random.below(1 << 24)).wrapping_sub(1 << 23),
        }
    }

    /// Jumps, calls and returns.
    fn direct(&mut self, n_bytes: u64) {
        for _ in 0..1 + self.random.below(6) {
            let target = self.target(n_bytes);
            let condition = self.random.below(16) as u8;
            let opcode: &[u8] = match self.random.below(8) {
                0 => &[0xe9],
                1..3 => &[0xe8],
                3..6 => &[0x0f, 0x80 | condition],
                6 => {
                    let distance = self.byte();
                    let opcode = [0xeb, 0x70 | condition, 0xe0 | condition & 3];
                    let opcode = opcode[self.random.below(3) as usize];
                    self.code.extend([opcode, distance]);
                    continue;
                }
                _ => {
                    self.code.push(0xc3);
                    continue;
                }
            };
            self.code.extend(opcode);
            let next = self.start + self.code.len() as u64 + 4;
            self.code.extend((target.wrapping_sub(next) as u32).to_le_bytes());
        }
    }

    /// Jumps and calls through registers, memory and tables.
    fn indirect(&mut self, others: &[u64]) {
        let other = others.get(self.random.below(others.len() as u64) as usize).copied();
        let other = other.unwrap_or_default();
        match self.random.below(5) {
            0 => self.code.extend([0xff, 0xe0 | self.random.below(8) as u8]),
            1 => self.code.extend([0xff, 0xd0 | self.random.below(8) as u8]),
            2 => {
                // jmp *other(,%rax,8)
                self.code.extend([0xff, 0x24, 0xc5]);
                self.code.extend((other as u32).to_le_bytes());
            }
            _ => {
                // lea other(%rip),%rdx   movslq (%rdx,%rax,4),%rax   add %rdx,%rax   jmp *%rax
                self.code.extend([0x48, 0x8d, 0x15]);
                let next = self.start + self.code.len() as u64 + 4;
                self.code.extend((other.wrapping_sub(next) as u32).to_le_bytes());
                self.code.extend([0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0]);
            }
        }
    }

    /// What is followed backwards: moves and arithmetic of registers.
    fn arithmetic(&mut self) {
        const OPCODES: [u8; 24] = [
            0x01, 0x03, 0x09, 0x0b, 0x11, 0x19, 0x21, 0x29, 0x2b, 0x31, 0x33, 0x39, 0x3b, 0x63,
            0x85, 0x87, 0x89, 0x8b, 0x8d, 0x88, 0x8a, 0x02, 0x28, 0x38,
        ];
        for _ in 0..1 + self.random.below(12) {
            let prefix = [0x48, 0x40, 0x66, 0x49, 0x4c][self.random.below(5) as usize];
            let modrm = self.byte() | if self.random.below(3) == 0 { 0 } else { 0xc0 };
            match self.random.below(6) {
                0 => self.code.extend([prefix, 0xc1, modrm | 0xc0, self.random.below(70) as u8]),
                1 => self.code.extend([prefix, 0x83, modrm | 0xc0, self.random.below(256) as u8]),
                2 => self.code.extend([prefix, 0x0f, 0x40 | modrm & 15, modrm | 0xc0]),
                _ => self.code.extend([prefix, OPCODES[self.random.below(24) as usize], modrm]),
            }
            if modrm < 0xc0 {
                let displacement = self.byte();
                self.code.extend([displacement, 0, 0, 0]);
            }
        }
    }

    /// String instructions, with and without their prefixes.
    fn string(&mut self) {
        for _ in 0..1 + self.random.below(4) {
            let prefixes: &[u8] =
                [&[0xf3][..], &[0xf2], &[], &[0x67, 0xf3], &[0xf3, 0x48], &[0x66]]
                    [self.random.below(6) as usize];
            self.code.extend(prefixes);
            let opcode = [0xa4, 0xa5, 0xa6, 0xa7, 0xaa, 0xab, 0xac, 0xad, 0xae, 0xaf];
            self.code.push(opcode[self.random.below(10) as usize]);
        }
    }

    /// One short instruction many times.
    fn repeated(&mut self) {
        const PATTERNS: [&[u8]; 14] = [
            &[0x90],
            &[0xcc],
            &[0x74, 0x00],
            &[0xeb, 0xfe],
            &[0xeb, 0x00],
            &[0xe8, 0, 0, 0, 0],
            &[0xe8, 0xfb, 0xff, 0xff, 0xff],
            &[0xff, 0xe0],
            &[0xc3],
            &[0x50],
            &[0x58],
            &[0x75, 0xfe, 0x75, 0xfc],
            &[0x48, 0x8b, 0x00],
            &[0x74, 0x02, 0x75, 0x00],
        ];
        let pattern = PATTERNS[self.random.below(14) as usize];
        for _ in 0..self.random.below(MAX_REPEATED) {
            self.code.extend(pattern);
        }
    }
}
