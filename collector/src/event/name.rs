//! The names that perf gives to events of the kernel's own lists.

use super::term::raw;
use super::wanted::Wanted;
use perf_event_open_sys::bindings as abi;

/// The event that needs no look at the machine: a clock, page faults, a generic or a raw one.
pub(super) fn known(name: &str) -> Option<Wanted> {
    software(name)
        .or_else(|| generic(name).map(Wanted::Generic))
        .or_else(|| cache(name).map(Wanted::Cache))
        .or_else(|| raw(name).map(Wanted::Raw))
}

fn software(name: &str) -> Option<Wanted> {
    Some(match name {
        "cpu-clock" => Wanted::Clock { config: abi::PERF_COUNT_SW_CPU_CLOCK },
        "task-clock" => Wanted::Clock { config: abi::PERF_COUNT_SW_TASK_CLOCK },
        "page-faults" | "faults" => Wanted::Software { config: abi::PERF_COUNT_SW_PAGE_FAULTS },
        "minor-faults" => Wanted::Software { config: abi::PERF_COUNT_SW_PAGE_FAULTS_MIN },
        "major-faults" => Wanted::Software { config: abi::PERF_COUNT_SW_PAGE_FAULTS_MAJ },
        "context-switches" | "cs" => {
            Wanted::Software { config: abi::PERF_COUNT_SW_CONTEXT_SWITCHES }
        }
        "cpu-migrations" | "migrations" => {
            Wanted::Software { config: abi::PERF_COUNT_SW_CPU_MIGRATIONS }
        }
        _ => return None,
    })
}

/// `enum perf_hw_id`.
fn generic(name: &str) -> Option<u64> {
    Some(u64::from(match name {
        "cycles" | "cpu-cycles" => abi::PERF_COUNT_HW_CPU_CYCLES,
        "instructions" => abi::PERF_COUNT_HW_INSTRUCTIONS,
        "cache-references" => abi::PERF_COUNT_HW_CACHE_REFERENCES,
        "cache-misses" => abi::PERF_COUNT_HW_CACHE_MISSES,
        "branches" | "branch-instructions" => abi::PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
        "branch-misses" => abi::PERF_COUNT_HW_BRANCH_MISSES,
        "bus-cycles" => abi::PERF_COUNT_HW_BUS_CYCLES,
        "stalled-cycles-frontend" | "idle-cycles-frontend" => {
            abi::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND
        }
        "stalled-cycles-backend" | "idle-cycles-backend" => {
            abi::PERF_COUNT_HW_STALLED_CYCLES_BACKEND
        }
        "ref-cycles" => abi::PERF_COUNT_HW_REF_CPU_CYCLES,
        _ => return None,
    }))
}

/// `CACHE-OPERATION[-RESULT]` in the words of perf's man page: the cache in bits 0–7, the operation
/// in 8–15, the result in 16–23.
fn cache(name: &str) -> Option<u64> {
    const CACHES: [(&str, u32); 13] = [
        ("L1-dcache", abi::PERF_COUNT_HW_CACHE_L1D),
        ("l1-d", abi::PERF_COUNT_HW_CACHE_L1D),
        ("L1-icache", abi::PERF_COUNT_HW_CACHE_L1I),
        ("l1-i", abi::PERF_COUNT_HW_CACHE_L1I),
        ("LLC", abi::PERF_COUNT_HW_CACHE_LL),
        ("L2", abi::PERF_COUNT_HW_CACHE_LL),
        ("dTLB", abi::PERF_COUNT_HW_CACHE_DTLB),
        ("d-tlb", abi::PERF_COUNT_HW_CACHE_DTLB),
        ("iTLB", abi::PERF_COUNT_HW_CACHE_ITLB),
        ("i-tlb", abi::PERF_COUNT_HW_CACHE_ITLB),
        ("branch", abi::PERF_COUNT_HW_CACHE_BPU),
        ("bpu", abi::PERF_COUNT_HW_CACHE_BPU),
        ("node", abi::PERF_COUNT_HW_CACHE_NODE),
    ];
    let (read, write, prefetch) = (
        abi::PERF_COUNT_HW_CACHE_OP_READ,
        abi::PERF_COUNT_HW_CACHE_OP_WRITE,
        abi::PERF_COUNT_HW_CACHE_OP_PREFETCH,
    );
    let (cache, rest) = CACHES
        .iter()
        .find_map(|(prefix, cache)| Some((cache, name.strip_prefix(prefix)?.strip_prefix('-')?)))?;
    let (operation, result) = match rest {
        "loads" | "load" => (read, abi::PERF_COUNT_HW_CACHE_RESULT_ACCESS),
        "load-misses" | "misses" => (read, abi::PERF_COUNT_HW_CACHE_RESULT_MISS),
        "stores" | "store" => (write, abi::PERF_COUNT_HW_CACHE_RESULT_ACCESS),
        "store-misses" => (write, abi::PERF_COUNT_HW_CACHE_RESULT_MISS),
        "prefetches" | "prefetch" => (prefetch, abi::PERF_COUNT_HW_CACHE_RESULT_ACCESS),
        "prefetch-misses" => (prefetch, abi::PERF_COUNT_HW_CACHE_RESULT_MISS),
        _ => return None,
    };
    Some(u64::from(cache | operation << 8 | result << 16))
}
