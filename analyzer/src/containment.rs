//! Whether the answers of the two paths contradict each other, or one is a part of the other.

use crate::descriptor::DataObject;

/// Which of two answers that agree says more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finer {
    /// The type path's.
    Typed,
    /// The address path's.
    Located,
}

/// The answer that says more, if one contains the other; `None` if they contradict each other.
pub(crate) fn finer(typed: &DataObject, located: &DataObject) -> Option<Finer> {
    let typed_root = element_type(component(typed, 0));
    if is_byte(typed_root) {
        // A pointer to characters is how C reads the bytes of anything.
        return Some(Finer::Located);
    }
    let below = |object: &DataObject, level: usize| -> Option<String> {
        let (leaf, outer) = (object.leaf()?, object.levels.get(level)?);
        Some(leaf.descriptor[outer.descriptor.len()..].to_owned())
    };
    let typed_path = below(typed, 0)?;
    for level in 0..located.levels.len() {
        if element_type(component(located, level)) != typed_root {
            continue;
        }
        // The same type on the way to the located part: one path must be the other's beginning.
        let located_path = below(located, level)?;
        if located_path.starts_with(&typed_path) {
            return Some(Finer::Located);
        }
        if typed_path.starts_with(&located_path) {
            return Some(Finer::Typed);
        }
    }
    // Characters are storage for whatever the program puts there.
    let last = located.levels.len().checked_sub(1)?;
    is_byte(element_type(component(located, last))).then_some(Finer::Typed)
}

/// What the level at `level` adds to the descriptor around it.
fn component(object: &DataObject, level: usize) -> &str {
    let outer = level.checked_sub(1).and_then(|outer| object.levels.get(outer));
    let from = outer.map_or(0, |outer| outer.descriptor.len());
    object.levels.get(level).map_or("", |level| &level.descriptor[from..])
}

/// The type of a descriptor's component, without array, qualifiers and sign: C lets a program
/// reach an object through a pointer that differs in these.
fn element_type(component: &str) -> &str {
    let component = component.trim_start_matches('.').trim_start_matches('{');
    let mut spelled = component.split([' ', '}']).next().unwrap_or(component);
    loop {
        let qualifiers = ["const+", "volatile+", "atomic+", "restrict+", "unsigned_", "signed_"];
        let below =
            qualifiers.iter().find_map(|prefix| spelled.strip_prefix(prefix)).or_else(|| {
                let dimension = spelled.strip_prefix("array[")?;
                Some(dimension.split_once("]:")?.1)
            });
        match below {
            Some(below) => spelled = below,
            // gcc says `long unsigned int` and `long int`.
            None => {
                let sign = spelled.strip_suffix("_unsigned_int");
                return sign.or_else(|| spelled.strip_suffix("_int")).unwrap_or(spelled);
            }
        }
    }
}

fn is_byte(spelled: &str) -> bool {
    matches!(spelled, "char" | "u8" | "i8" | "std::byte" | "enumeration:std::byte")
}
