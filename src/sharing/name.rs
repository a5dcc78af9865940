//! Names of parts of a line as they stand in the source.

use dataspace_analyzer::sharing::survey::LinePart;

/// Members by which the libraries of C++ and Rust hold the number of an atomic variable: no program names them.
const ATOMIC_VALUES: [&str; 2] = [".v.value", "._M_i"];

/// `g_stats.hits`, `counts[3]`, `order.price`; `None` where the descriptor tells more.
pub(super) fn of(part: &LinePart) -> Option<String> {
    let mut name = whole(part)?;
    name.push_str(&member(part).unwrap_or_default());
    Some(name)
}

/// The same without the member: `g_stats`, `counts[3]`, `order`.
pub(super) fn whole(part: &LinePart) -> Option<String> {
    let base = part.variable.as_deref().or(part.type_name.as_deref())?;
    Some(match part.index {
        Some(index) => format!("{base}[{index}]"),
        None => base.to_owned(),
    })
}

/// The member with its dot, as a program says it: `.hits` for `hits.<base>._M_i`, `.0` for `__0.v.value`.
pub(super) fn member(part: &LinePart) -> Option<String> {
    let mut member = format!(".{}", part.member.as_deref()?);
    if part.object.contains("atomic") {
        for value in ATOMIC_VALUES {
            member.truncate(member.strip_suffix(value).map_or(member.len(), str::len));
        }
    }
    let parts = member.split('.').filter(|part| !part.is_empty() && !part.contains('<'));
    let parts = parts.map(|part| match part.strip_prefix("__") {
        Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => format!(".{number}"),
        _ => format!(".{part}"),
    });
    let member: String = parts.collect();
    (!member.is_empty()).then_some(member)
}

#[cfg(test)]
mod tests {
    use super::super::advice::tests::part;
    use super::*;

    #[test]
    fn names_are_those_that_a_program_says() {
        let check = |variable: Option<&str>, member: Option<&str>, index, expected: &str| {
            let object = "{structure:std::atomic<long> x}".into();
            let part = LinePart { object, index, ..part(1, 0, variable, member) };
            assert_eq!(of(&part).unwrap(), expected);
        };
        check(Some("g_stats"), Some("hits"), None, "g_stats.hits");
        check(Some("g_stats"), Some("hits.<base>._M_i"), None, "g_stats.hits");
        check(Some("STATS"), Some("hits.v.value"), None, "STATS.hits");
        check(Some("PAIR"), Some("__0.v.value"), None, "PAIR.0");
        check(Some("counts"), None, Some(3), "counts[3]");
        check(Some("counter"), Some("v.value"), None, "counter");
        check(None, Some("pos.x"), Some(2), "stats[2].pos.x");
    }
}
