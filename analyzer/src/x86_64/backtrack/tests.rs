//! The way back from an instruction, in code that is written out byte by byte.

use super::*;
use crate::x86_64::image_bytes::NoBytes;

/// One function, which nothing is known to call.
struct One(Arc<FunctionCode>);

impl CodeSource for One {
    fn function(&mut self, _: Svma) -> Result<Arc<FunctionCode>, Reason> {
        Ok(Arc::clone(&self.0))
    }

    fn callers(&mut self, _: Svma) -> Vec<Svma> {
        Vec::new()
    }
}

/// The addresses on the trail of a sample at `ip` in code at 0x1000, and of those that may be its trigger.
fn addresses(code: &[u8], ip: u64, skid: Skid) -> (Vec<u64>, Vec<u64>) {
    let function = Arc::new(FunctionCode::decode(Svma(0x1000), code, &NoBytes));
    let (trail, triggers) = trail(&mut One(function), Svma(ip), skid).unwrap();
    let nodes = trail.nodes.iter().map(|node| node.svma.0).collect();
    (nodes, triggers.iter().map(|(svma, _)| svma.0).collect())
}

#[test]
fn only_what_may_have_run_two_ways_is_looked_back_from() {
    // 1000: mov (%rsi),%rcx  1003: mov %rcx,%rdx  1006: movsb (%rsi),(%rdi)  1007: ret
    let once = [0x48, 0x8b, 0x0e, 0x48, 0x89, 0xca, 0xa4, 0xc3];
    let expected = (vec![0x1006, 0x1003], vec![0x1003]);
    assert_eq!(addresses(&once, 0x1006, Skid::AfterOne), expected, "nothing to weigh");
    // The same with `rep`: its own last round may have run before, and what lies further back tells which.
    let repeated = [0x48, 0x8b, 0x0e, 0x48, 0x89, 0xca, 0xf3, 0xa4, 0xc3];
    let expected = (vec![0x1006, 0x1003, 0x1000], vec![0x1006, 0x1003]);
    assert_eq!(addresses(&repeated, 0x1006, Skid::AfterOne), expected);
}
