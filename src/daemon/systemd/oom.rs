//! Choice of the process that the kernel ends when memory runs out: rather the daemon than what it looks at.

/// Half of all memory is added to what is ours when the kernel looks for the largest
/// (`proc_pid_oom_score_adj(5)`). The unit says more, in `OOMScoreAdjust=`.
const WANTED: i32 = 500;

const FILE: &str = "/proc/self/oom_score_adj";

/// Raises our own score, which needs no privilege. Under systemd the unit has decided.
pub(crate) fn offer_itself(is_decided: bool) {
    let current = std::fs::read_to_string(FILE).ok().and_then(|text| text.trim().parse().ok());
    let Some(wanted) = current.and_then(|current| wanted(current, is_decided)) else { return };
    if let Err(error) = std::fs::write(FILE, wanted.to_string()) {
        tracing::warn!(%error, "oom_score_adj stays as it is");
    }
}

const fn wanted(current: i32, is_decided: bool) -> Option<i32> {
    if is_decided || current >= WANTED { None } else { Some(WANTED) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_is_only_raised_and_only_where_no_unit_has_decided() {
        assert_eq!(wanted(0, false), Some(WANTED));
        assert_eq!(wanted(-1000, false), Some(WANTED));
        assert_eq!(wanted(WANTED + 1, false), None);
        assert_eq!(wanted(0, true), None);
    }
}
