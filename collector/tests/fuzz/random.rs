//! Numbers that look random, and bytes damaged by them.

/// xorshift64 of Marsaglia (2003).
pub(crate) struct Random(u64);

impl Random {
    /// The numbers of one seed.
    pub(crate) fn new(seed: u64) -> Self {
        // Small seeds have few bits set: the golden ratio's bits spread them.
        let mut random = Self(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// One below `n`, or 0.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() >> 16) as usize % n.max(1)
    }

    pub(crate) fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    /// A number of the kind that readers stumble over.
    pub(crate) fn number(&mut self) -> u64 {
        const EDGES: [u64; 12] = [
            0,
            1,
            7,
            8,
            0x7f,
            0xff,
            0xffff,
            0x7fff_ffff,
            0xffff_ffff,
            1 << 47,
            i64::MAX as u64,
            u64::MAX,
        ];
        match self.below(4) {
            0 => self.next(),
            1 => self.next() & 0xffff,
            _ => {
                let edge = EDGES[self.below(EDGES.len())];
                edge.wrapping_add(self.below(3) as u64).wrapping_sub(1)
            }
        }
    }
}

/// Changes a few bytes of `bytes`, most of them near the front.
pub(crate) fn damage(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(8) {
        let reach = if random.one_in(2) { bytes.len().min(512) } else { bytes.len() };
        let at = random.below(reach);
        match random.below(8) {
            0..3 => write(bytes, at & !7, &random.number().to_ne_bytes()),
            3 => write(bytes, at & !3, &(random.number() as u32).to_ne_bytes()),
            4 => write(bytes, at & !1, &(random.number() as u16).to_ne_bytes()),
            5 => write(bytes, at, &[random.next() as u8]),
            6 => {
                let (from, n) = (random.below(bytes.len()), random.below(256));
                let piece = bytes[from..bytes.len().min(from + n)].to_vec();
                let at = at.min(bytes.len());
                bytes.splice(at..at, piece);
            }
            _ => {
                let end = bytes.len().min(at + random.below(256));
                bytes.drain(at.min(end)..end);
            }
        }
    }
    if random.one_in(6) {
        bytes.truncate(random.below(bytes.len()));
    }
}

pub(crate) fn write(bytes: &mut [u8], at: usize, new: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + new.len()) {
        place.copy_from_slice(new);
    }
}
