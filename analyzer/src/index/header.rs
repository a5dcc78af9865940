//! Accesses to a header that lies before the address by which it is known.

use crate::dataflow::{Address, BytesBefore};
use crate::dwarf::layout::leading_header::LeadingHeader;
use crate::index::site::TypeAnswer;
use crate::index::type_path::{TypePath, named};
use crate::types::data_object::Root;
use crate::types::layout::Member;
use crate::x86_64::access::MemoryAccess;

/// Headers of a kind whose member of one name has to be accessed: a header for short texts, for longer ones, for the longest.
/// Ends of texts are compared by the word, too, and one or two such words may lie as members do.
const N_TOLD: usize = 3;

impl TypePath<'_> {
    /// Answers by the header that ends where a pointer to bytes points. No type says that one is there; a function tells,
    /// which tests the byte just before for a kind and goes on to the member of one name of several headers of the unit that
    /// end in such a byte, each at the distance and in the width that are its own.
    pub(crate) fn header_answer(
        &mut self,
        access: &MemoryAccess,
        address: &Address,
    ) -> Option<TypeAnswer> {
        let operand = &access.address;
        let distance = u64::try_from(operand.displacement.checked_neg()?).ok()?;
        if operand.index.is_some() || !address.is_erased() {
            return None;
        }
        let before = self.flow.before(self.svma, operand.base?.dwarf?);
        if !before.contains(&BytesBefore::FLAG) {
            return None;
        }
        let unit = self.debug.unit_of_code(self.svma)?;
        let headers = self.debug.headers_of(unit);
        let kinds = headers.chunk_by(|one, other| one.flag() == other.flag());
        let mut told = kinds.filter(|kin| are_told(kin, before));
        let kin = told.next().filter(|_| told.next().is_none())?;
        // Where several have the same there, what else is known of the address tells.
        let (header, member) = only_with(kin, distance, u64::from(access.size))?;
        Some(named(&header.layout, Root::Pointer(""), member.offset, access))
    }
}

/// Tells whether accesses before a pointer are to headers of this kind: each is to a member of one, and those of one name are
/// told for several.
fn are_told(kin: &[LeadingHeader], before: &[BytesBefore]) -> bool {
    let mut told: Vec<(&str, u64)> = Vec::new();
    for access in before.iter().filter(|it| **it != BytesBefore::FLAG) {
        let (distance, n_bytes) = (access.distance.into(), access.n_bytes.into());
        if !kin.iter().any(|it| it.member_before_end(distance, n_bytes).is_some()) {
            return false;
        }
        if let Some((header, member)) = only_with(kin, distance, n_bytes) {
            told.push((&member.name, header.layout.fingerprint));
        }
    }
    told.sort_unstable();
    told.dedup();
    told.chunk_by(|one, other| one.0 == other.0).any(|of_name| of_name.len() >= N_TOLD)
}

/// The only header that has a member at a distance before its end, and the member.
fn only_with(
    kin: &[LeadingHeader],
    distance: u64,
    n_bytes: u64,
) -> Option<(&LeadingHeader, &Member)> {
    let mut fitting =
        kin.iter().filter_map(|it| Some((it, it.member_before_end(distance, n_bytes)?)));
    let (header, member) = fitting.next()?;
    let is_same = |other: &LeadingHeader| other.layout.fingerprint == header.layout.fingerprint;
    fitting.all(|(other, _)| is_same(other)).then_some((header, member))
}
