//! Accesses to a header that lies before the address by which it is known.

use crate::dataflow::{Address, BytesBefore};
use crate::dwarf::layout::leading_header::LeadingHeader;
use crate::index::site::TypeAnswer;
use crate::index::type_path::{TypePath, named};
use crate::types::data_object::Root;
use crate::x86_64::access::MemoryAccess;

/// Headers of a kind of which an access tells that can be to no other of them: one may be anything.
const N_TOLD: usize = 2;

impl TypePath<'_> {
    /// Answers by the header that ends where a pointer to bytes points. No type says that one is there; a function tells,
    /// which reads a flag byte just before and goes on to members of several headers of the unit that end in that flag, each
    /// at the distance and in the width that are its own.
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
        let mut flags: Vec<_> = headers.iter().map(LeadingHeader::flag).collect();
        flags.sort_unstable();
        flags.dedup();
        let kinds = flags.into_iter().map(|flag| {
            headers.iter().filter(|it| it.flag() == flag).collect::<Vec<&LeadingHeader>>()
        });
        let mut told = kinds.filter(|kin| are_told(kin, before));
        let kin = told.next().filter(|_| told.next().is_none())?;
        // Where several have the same there, what else is known of the address tells.
        let (header, place) = only_with(&kin, distance, u64::from(access.size))?;
        Some(named(&header.layout, Root::Pointer(""), place, access))
    }
}

/// Tells whether accesses before a pointer are to headers of this kind: each is to a member of one, and some can be to no
/// other one. Characters are looked at one by one: words are too.
fn are_told(kin: &[&LeadingHeader], before: &[BytesBefore]) -> bool {
    let mut told: Vec<u64> = Vec::new();
    let mut has_word = false;
    for access in before.iter().filter(|it| **it != BytesBefore::FLAG) {
        let (distance, n_bytes) = (access.distance.into(), access.n_bytes.into());
        if !kin.iter().any(|it| it.place_before_end(distance, n_bytes).is_some()) {
            return false;
        }
        if let Some((header, _)) = only_with(kin, distance, n_bytes) {
            told.push(header.layout.fingerprint);
            has_word |= n_bytes > 1;
        }
    }
    told.sort_unstable();
    told.dedup();
    told.len() >= N_TOLD && has_word
}

/// The only header that has a member at a distance before its end, and the member's place.
fn only_with<'a>(
    kin: &[&'a LeadingHeader],
    distance: u64,
    n_bytes: u64,
) -> Option<(&'a LeadingHeader, u64)> {
    let mut fitting =
        kin.iter().filter_map(|it| Some((*it, it.place_before_end(distance, n_bytes)?)));
    let (header, place) = fitting.next()?;
    let is_same = |other: &LeadingHeader| other.layout.fingerprint == header.layout.fingerprint;
    fitting.all(|(other, _)| is_same(other)).then_some((header, place))
}
