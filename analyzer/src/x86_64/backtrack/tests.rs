//! The way back from an instruction, in code that is written out byte by byte.

use super::*;
use crate::x86_64::image_bytes::NoBytes;

/// Functions, which nothing else is known to call.
struct Functions(Vec<Arc<FunctionCode>>);

impl CodeSource for Functions {
    fn function(&mut self, svma: Svma) -> Result<Arc<FunctionCode>, Reason> {
        let mut around = self.0.iter().filter(|function| function.index_of(svma).is_some());
        around.next().cloned().ok_or(Reason::Unidentified)
    }

    fn callers(&mut self, _: Svma) -> Vec<Svma> {
        Vec::new()
    }
}

/// The trail of a sample at `ip` in functions that begin at 0x1000, 0x2000 and so on.
fn trail_in(functions: &[&[u8]], ip: u64, skid: Skid) -> (Trail, Vec<(Svma, Vec<MemoryAccess>)>) {
    let functions = (0x1000..)
        .step_by(0x1000)
        .zip(functions)
        .map(|(start, code)| Arc::new(FunctionCode::decode(Svma(start), code, &NoBytes)));
    trail(&mut Functions(functions.collect()), Svma(ip), skid).unwrap()
}

/// The addresses on a trail, and of those that may be the trigger.
fn addresses(functions: &[&[u8]], ip: u64, skid: Skid) -> (Vec<u64>, Vec<u64>) {
    let (trail, triggers) = trail_in(functions, ip, skid);
    let nodes = trail.nodes.iter().map(|node| node.svma.0).collect();
    (nodes, triggers.iter().map(|(svma, _)| svma.0).collect())
}

#[test]
fn only_what_may_have_run_two_ways_is_looked_back_from() {
    // 1000: mov (%rsi),%rcx  1003: mov %rcx,%rdx  1006: movsb (%rsi),(%rdi)  1007: ret
    let once = [0x48, 0x8b, 0x0e, 0x48, 0x89, 0xca, 0xa4, 0xc3];
    let expected = (vec![0x1006, 0x1003], vec![0x1003]);
    assert_eq!(addresses(&[&once], 0x1006, Skid::AfterOne), expected, "nothing to weigh");
    // The same with `rep`: its own last round may have run before, and what lies further back tells which.
    let repeated = [0x48, 0x8b, 0x0e, 0x48, 0x89, 0xca, 0xf3, 0xa4, 0xc3];
    let expected = (vec![0x1006, 0x1003, 0x1000], vec![0x1006, 0x1003]);
    assert_eq!(addresses(&[&repeated], 0x1006, Skid::AfterOne), expected);
}

#[test]
fn what_runs_after_a_call_is_looked_back_from_through_the_callee() {
    // 1000: call 2000  1005: mov (%rax),%rax  1008: ret, and 2000: mov (%rdi),%rax  2003: ret
    let caller = [0xe8, 0xfb, 0x0f, 0, 0, 0x48, 0x8b, 0x00, 0xc3];
    let callee = [0x48, 0x8b, 0x07, 0xc3];
    let found = addresses(&[&caller, &callee], 0x1005, Skid::AfterOne);
    assert_eq!(found, (vec![0x1005, 0x2003, 0x2000], vec![0x2003]));
    let found = addresses(&[&caller, &callee], 0x1005, Skid::Within(2));
    assert_eq!(found.1, [0x2003, 0x2000]);
}

#[test]
fn of_a_round_nothing_but_the_round_before_is_told() {
    // rep movsb; ret: entered from elsewhere, or in its next round.
    let code: &[u8] = &[0xf3, 0xa4, 0xc3];
    let here = |skid| {
        let (trail, _) = trail_in(&[code], 0x1000, skid);
        let ways: Vec<bool> = trail.nodes[0].ways.iter().map(|way| way.is_round).collect();
        (ways, trail.nodes[0].entrances.is_entry)
    };
    assert_eq!(here(Skid::AfterOne), (vec![true], true));
    assert_eq!(here(Skid::Round), (vec![true], false));
    // 1000: mov (%rsi),%rcx  1003: rep movsb  1005: ret
    let code: &[u8] = &[0x48, 0x8b, 0x0e, 0xf3, 0xa4, 0xc3];
    let ways = |skid| trail_in(&[code], 0x1003, skid).0.nodes[0].ways.len();
    assert_eq!((ways(Skid::AfterOne), ways(Skid::Round)), (2, 1));
}

#[test]
fn where_ways_meet_all_of_them_are_looked_back_from() {
    // 1000: mov (%rsi),%rcx  1003: mov %rcx,%rdx  1006: dec %rdi  1009: jne 1006  100b: ret
    let code = [0x48, 0x8b, 0x0e, 0x48, 0x89, 0xca, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3];
    // The trigger is the instruction itself: which way led there is told by what lies before.
    let (mut nodes, triggers) = addresses(&[&code], 0x1006, Skid::Exact);
    nodes.sort_unstable();
    assert_eq!((nodes, triggers), (vec![0x1000, 0x1003, 0x1006, 0x1009], vec![0x1006]));
    let (nodes, _) = addresses(&[&code], 0x1003, Skid::Exact);
    assert_eq!(nodes, [0x1003], "nothing to weigh");
    // One more instruction than is looked back from, and a loop at the end.
    let long =
        [vec![0x90; limit::LOOKBACK as usize + 4], vec![0x48, 0xff, 0xcf, 0x75, 0xfb]].concat();
    let at = 0x1000 + u64::from(limit::LOOKBACK) + 4;
    for (skid, reach) in [(Skid::Exact, 0), (Skid::Within(2), 2)] {
        let (nodes, _) = addresses(&[&long], at, skid);
        let first = nodes.iter().min().copied();
        assert_eq!(first, Some(at - u64::from(limit::LOOKBACK) - reach), "{skid:?}");
    }
}
