//! Functions of the C library that call another one with what they were given (C17 7.22.5, POSIX.1-2017).

/// An argument that is handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HandedOn {
    /// The argument of the function that is called back.
    pub(crate) to: u8,
    /// The argument of the library's function.
    pub(crate) from: u8,
    /// Of an array any element is handed on: the argument that tells the size of one.
    pub(crate) element_bytes: Option<u8>,
}

/// A function that calls back: which of its arguments is the other function, and what that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallsBack {
    pub(crate) function: u8,
    pub(crate) given: &'static [HandedOn],
}

const fn whole(to: u8, from: u8) -> HandedOn {
    HandedOn { to, from, element_bytes: None }
}

const fn element(to: u8, from: u8, size: u8) -> HandedOn {
    HandedOn { to, from, element_bytes: Some(size) }
}

const KNOWN: [(&str, CallsBack); 9] = [
    ("bsearch", CallsBack { function: 4, given: &[whole(0, 0), element(1, 1, 3)] }),
    ("lfind", CallsBack { function: 4, given: &[whole(0, 0), element(1, 1, 3)] }),
    ("lsearch", CallsBack { function: 4, given: &[whole(0, 0), element(1, 1, 3)] }),
    ("pthread_create", CallsBack { function: 2, given: &[whole(0, 3)] }),
    ("qsort", CallsBack { function: 3, given: &[element(0, 0, 2), element(1, 0, 2)] }),
    (
        "qsort_r",
        CallsBack { function: 3, given: &[element(0, 0, 2), element(1, 0, 2), whole(2, 4)] },
    ),
    ("tfind", CallsBack { function: 2, given: &[whole(0, 0)] }),
    ("thrd_create", CallsBack { function: 1, given: &[whole(0, 2)] }),
    ("tsearch", CallsBack { function: 2, given: &[whole(0, 0)] }),
];

impl CallsBack {
    /// The one that has this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let at = KNOWN.binary_search_by_key(&name, |(known, _)| known).ok()?;
        Some(KNOWN[at].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_found_by_their_names() {
        for (name, known) in KNOWN {
            assert_eq!(CallsBack::named(name), Some(known), "{name}");
        }
        assert_eq!(CallsBack::named("printf"), None);
    }
}
