//! Sites that samples had lately, found again without the tables that know them.

use crate::attribution::site_table::SiteIdx;
use crate::bytes::file::LoadObjectIdx;
use crate::process::recent::Places;
use crate::x86_64::backtrack::Skid;
use dataspace_proto::address::Avma;

/// Sites that are remembered: 20 KiB. The code that most samples are in has fewer.
const N_SITES: usize = 512;

/// The place of a sample's code, as the sample tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CodePlace {
    pub(crate) pid: i32,
    pub(crate) ip: Avma,
    pub(crate) skid: Skid,
}

/// The same as the tables know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownCode {
    pub(crate) object: LoadObjectIdx,
    /// Number that the loader added to the load object's addresses.
    pub(crate) bias: u64,
    pub(crate) site: SiteIdx,
}

/// Sites that samples had lately.
#[derive(Debug, Default)]
pub(crate) struct RecentSites(Places<(CodePlace, KnownCode), N_SITES>);

impl RecentSites {
    /// The site of a sample; `n_changes` is that of the mappings.
    pub(crate) fn find(&mut self, code: CodePlace, n_changes: u64) -> Option<KnownCode> {
        self.0.find(code.ip.0, code, n_changes)
    }

    pub(crate) fn keep(&mut self, code: CodePlace, n_changes: u64, answer: KnownCode) {
        self.0.keep(code.ip.0, code, n_changes, answer);
    }

    /// The sites are other ones now.
    pub(crate) fn forget(&mut self) {
        self.0.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_code_of_a_sample_is_found_and_only_while_nothing_is_mapped() {
        let code = CodePlace { pid: 1, ip: Avma(0x1000), skid: Skid::Exact };
        let answer = KnownCode { object: LoadObjectIdx(0), bias: 0, site: SiteIdx::at(0) };
        let mut recent = RecentSites::default();
        assert_eq!(recent.find(code, 0), None);
        recent.keep(code, 0, answer);
        assert_eq!(recent.find(code, 0), Some(answer));
        assert_eq!(recent.find(CodePlace { pid: 2, ..code }, 0), None);
        assert_eq!(recent.find(CodePlace { skid: Skid::AfterOne, ..code }, 0), None);
        recent.forget();
        assert_eq!(recent.find(code, 0), None);
        recent.keep(code, 0, answer);
        assert_eq!(recent.find(code, 1), None);
    }
}
