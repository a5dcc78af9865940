//! Table of calls: the direct calls and jumps in a load object's code, by their target.

use crate::limit;
use crate::x86_64::image_bytes::ImageBytes;
use dataspace_proto::address::Svma;

/// Direct near calls and jumps, sorted by target. Found by their opcode bytes, so that some are no
/// instructions: whoever follows one decodes it. Short jumps are kept that lead to where a function begins:
/// that is how one calls its neighbour in the last place.
#[derive(Debug, Default)]
pub struct CallTable {
    /// Target and site, counted from `start`; the site is doubled, and one more for a jump.
    sites: Vec<(u32, u32)>,
    start: u64,
    /// All code was read, and all sites are kept.
    is_whole: bool,
}

/// Addresses in a range, each of which is asked for in one step.
struct AddressSet {
    start: u64,
    bits: Vec<u64>,
}

impl AddressSet {
    /// Those of `addresses` that lie in `length` bytes from `start` on.
    fn new(start: u64, length: u64, addresses: &[u64]) -> Self {
        let n_words = usize::try_from(length.div_ceil(u64::BITS.into())).unwrap_or(0);
        let mut set = Self { start, bits: vec![0; n_words] };
        for address in addresses {
            if let Some((word, bit)) = set.place(*address) {
                set.bits[word] |= bit;
            }
        }
        set
    }

    fn place(&self, address: u64) -> Option<(usize, u64)> {
        let into = address.wrapping_sub(self.start);
        let word = usize::try_from(into / u64::from(u64::BITS)).ok()?;
        (word < self.bits.len()).then_some((word, 1 << (into % u64::from(u64::BITS))))
    }

    fn contains(&self, address: u64) -> bool {
        self.place(address).is_some_and(|(word, bit)| self.bits[word] & bit != 0)
    }
}

/// Opcode of `call rel32` (SDM volume 2).
const CALL: u8 = 0xe8;

/// Opcode of `jmp rel32`.
const JUMP: u8 = 0xe9;

/// Opcode of `jmp rel8`.
const SHORT_JUMP: u8 = 0xeb;

/// Opcode of `lea`.
const LEA: u8 = 0x8d;

/// Bits of the byte after an opcode that tell the operand, and those of a distance from the next instruction (SDM volume 2,
/// table 2-2).
const RIP_MASK: u8 = 0xc7;
const RIP_OPERAND: u8 = 0x05;

/// Tells whether the instruction with this first byte is a direct jump.
const fn is_jump(opcode: u8) -> bool {
    matches!(opcode, JUMP | SHORT_JUMP)
}

impl CallTable {
    /// Reads the calls and jumps in code ranges, each a start and a length in bytes. Functions begin at `starts`, which are
    /// sorted.
    pub fn read(
        ranges: impl Iterator<Item = (Svma, u64)>,
        starts: &[u64],
        image: &dyn ImageBytes,
    ) -> Self {
        Self::search(ranges, image, |table, code, start, end| {
            for at in memchr::memchr3_iter(CALL, JUMP, SHORT_JUMP, code) {
                let (len_bytes, distance) = match code[at..] {
                    [CALL | JUMP, a, b, c, d, ..] => (5, i32::from_le_bytes([a, b, c, d])),
                    [SHORT_JUMP, distance, ..] => (2, i32::from(distance.cast_signed())),
                    _ => continue,
                };
                let site = start.wrapping_add(at as u64);
                let next = site.wrapping_add(len_bytes);
                let target = next.wrapping_add_signed(i64::from(distance));
                let is_kept = code[at] != SHORT_JUMP || starts.binary_search(&target).is_ok();
                if is_kept && !table.push(site, is_jump(code[at]), target, end) {
                    break;
                }
            }
        })
    }

    /// The same for instructions that take the address of a function: each site is that of the four bytes by which it is
    /// told, as a distance (`lea compare(%rip),%rcx`) or, where code has fixed addresses, as a number.
    pub(crate) fn of_addresses(
        ranges: impl Iterator<Item = (Svma, u64)>,
        starts: &[u64],
        image: &dyn ImageBytes,
    ) -> Self {
        let ranges: Vec<(Svma, u64)> = ranges.collect();
        let Some((start, end)) = around(&ranges) else { return Self::default() };
        // Where code has fixed addresses, each of its bytes may begin a number that is one.
        let starts = AddressSet::new(start, end - start, starts);
        let is_fixed = image.is_at_fixed_addresses();
        Self::search(ranges.into_iter(), image, |table, code, start, end| {
            let word =
                |at: usize| code.get(at..)?.first_chunk().map(|bytes| i32::from_le_bytes(*bytes));
            let site = |at: usize| start.wrapping_add(at as u64);
            // The operand lies between the opcode and the distance.
            let leas = memchr::memchr_iter(LEA, code)
                .filter(|lea| code.get(lea + 1).is_some_and(|it| it & RIP_MASK == RIP_OPERAND));
            let relative = leas.map(|lea| lea + 2).filter_map(|at| {
                let next = site(at).wrapping_add(4);
                Some((at, next.wrapping_add_signed(i64::from(word(at)?))))
            });
            let n_numbers = if is_fixed { code.len() } else { 0 };
            let numbers =
                (0..n_numbers).filter_map(|at| Some((at, u64::from(word(at)?.cast_unsigned()))));
            for (at, target) in relative.chain(numbers) {
                if starts.contains(target) && !table.push(site(at), false, target, end) {
                    break;
                }
            }
        })
    }

    /// Takes in the sites that `find` finds in the code of each range, which begins at an address; all code ends at another.
    fn search(
        ranges: impl Iterator<Item = (Svma, u64)>,
        image: &dyn ImageBytes,
        mut find: impl FnMut(&mut Self, &[u8], u64, u64),
    ) -> Self {
        let ranges: Vec<(Svma, u64)> = ranges.collect();
        let Some((start, end)) = around(&ranges) else { return Self::default() };
        let mut table = Self { sites: Vec::new(), start, is_whole: true };
        for (start, len_bytes) in ranges {
            let n = usize::try_from(len_bytes).ok();
            let Some(code) = n.and_then(|n| image.bytes_at(start, n)) else {
                table.is_whole = false;
                continue;
            };
            find(&mut table, &code, start.0, end);
        }
        table.sites.sort_unstable();
        table
    }

    /// Takes in what leads to the code, while there is room.
    fn push(&mut self, site: u64, is_jump: bool, target: u64, end: u64) -> bool {
        if self.sites.len() >= limit::MAX_CALLS {
            self.is_whole = false;
            return false;
        }
        if (self.start..end).contains(&target) {
            let site = (site - self.start) << 1 | u64::from(is_jump);
            self.sites.push(((target - self.start) as u32, site as u32));
        }
        true
    }

    /// Tells whether these are all: all code was read, and none was left out.
    pub(crate) const fn is_whole(&self) -> bool {
        self.is_whole
    }

    /// Tells whether nothing was found: there is too much code, or none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// The sites that call or jump to `entry`.
    pub fn to(&self, entry: Svma) -> impl Iterator<Item = Svma> {
        self.with_kinds(entry).map(|(site, _)| site)
    }

    /// The sites that jump to `entry`.
    pub(crate) fn jumps_to(&self, entry: Svma) -> impl Iterator<Item = Svma> {
        self.with_kinds(entry).filter(|(_, is_jump)| *is_jump).map(|(site, _)| site)
    }

    /// The sites that call or jump to `entry`, each with whether it is a jump.
    fn with_kinds(&self, entry: Svma) -> impl Iterator<Item = (Svma, bool)> {
        let target = u32::try_from(entry.0.wrapping_sub(self.start)).ok();
        let first = self.sites.partition_point(|(to, _)| target.is_none_or(|target| *to < target));
        let sites = self.sites[first..].iter().take_while(move |(to, _)| Some(*to) == target);
        sites.map(|(_, site)| (Svma(self.start + u64::from(site >> 1)), site & 1 != 0))
    }
}

/// The start and the end of all code that is searched; `None` where it is too much.
fn around(ranges: &[(Svma, u64)]) -> Option<(u64, u64)> {
    let start = ranges.iter().map(|(start, _)| start.0).min()?;
    let end = ranges.iter().map(|(start, len)| start.0.saturating_add(*len)).max()?;
    (end - start <= limit::MAX_CALLING_BYTES).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Code(Vec<u8>);

    impl ImageBytes for Code {
        fn bytes_at(&self, _: Svma, _: usize) -> Option<Vec<u8>> {
            Some(self.0.clone())
        }
    }

    #[test]
    fn calls_and_tail_jumps_are_found_by_their_target() {
        // 1000: call 100b   1005: jmp 100b   100a: ret   100b: ret
        let code = vec![0xe8, 6, 0, 0, 0, 0xe9, 1, 0, 0, 0, 0xc3, 0xc3];
        let ranges = [(Svma(0x1000), code.len() as u64)];
        let table = CallTable::read(ranges.into_iter(), &[], &Code(code));
        let sites: Vec<u64> = table.to(Svma(0x100b)).map(|site| site.0).collect();
        assert_eq!(sites, [0x1000, 0x1005]);
        assert_eq!(table.to(Svma(0x100a)).count(), 0);
        assert_eq!(table.to(Svma(0)).count(), 0);
    }

    #[test]
    fn short_jumps_are_found_if_they_lead_to_a_function() {
        // 1000: jmp 1005   1002: jmp 1004   1004: ret   1005: jmp 1000
        let code = vec![0xeb, 3, 0xeb, 0, 0xc3, 0xeb, 0xf9];
        let ranges = [(Svma(0x1000), code.len() as u64)];
        let table = CallTable::read(ranges.into_iter(), &[0x1000, 0x1005], &Code(code));
        let sites = |to| table.to(Svma(to)).map(|site| site.0).collect::<Vec<u64>>();
        assert_eq!(
            (sites(0x1000), sites(0x1004), sites(0x1005)),
            (vec![0x1005], vec![], vec![0x1000])
        );
    }

    #[test]
    fn jumps_are_told_from_calls_by_their_opcode() {
        // jmp rel32, jmp rel8, call rel32, jne rel8, the group of jmp *%rax
        let jumps = [0xe9, 0xeb, 0xe8, 0x75, 0xff].map(is_jump);
        assert_eq!(jumps, [true, true, false, false, false]);
    }
}
