//! Instructions of a function that are reached, and from where: the making of a [`FunctionCode`].

use super::exit::{Destination, Exit, is_filler};
use super::function::FunctionCode;
use super::jump_table::{Targets, Tracer, labels};
use super::sweep::Sweep;
use crate::limit;
use crate::x86_64::edge::{Entrances, Predecessor};
use crate::x86_64::image_bytes::ImageBytes;
use crate::x86_64::outline::Outline;
use crate::x86_64::view::View;
use iced_x86::{Instruction, Mnemonic};
use rustc_hash::FxHashSet;

/// Strength of the grounds to believe that an instruction runs. What is less well founded leads to nothing
/// that is more so: bytes that are data or fillers must not become predecessors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Footing {
    /// The function's entries and what is known of its jumps lead there.
    Reached,
    /// It stands behind a jump or return, and nothing leads there: dead, data, or a gap in what
    /// we know.
    Apart,
    /// The rest: fillers.
    Filler,
}

/// A flow graph in the making. Indices are in the order in which instructions were found.
pub(super) struct Flow<'a> {
    image: &'a dyn ImageBytes,
    outline: &'a Outline,
    sweep: Sweep<'a>,
    footings: Vec<Option<Footing>>,
    entrances: Vec<Entrances>,
    /// Target and source of each edge.
    edges: Vec<(u32, Predecessor)>,
    /// Instructions after calls, each with its call.
    returns: Vec<(u32, u32)>,
    /// Indirect jumps that are reached.
    indirect: Vec<u32>,
    /// Jump and target of each edge of an indirect jump.
    indirect_edges: FxHashSet<(u32, u32)>,
    /// Instructions that read a jump's target from a table, with the table's address.
    table_reads: Vec<(u32, u64)>,
    work: Vec<u32>,
    /// Some indirect jump leads to places that are not known.
    has_unknown_jumps: bool,
    /// Something that is reached does not decode: an instruction that is not known, or data.
    reaches_invalid: bool,
}

impl<'a> Flow<'a> {
    /// Finds the flow of a function; `None` for too many instructions.
    pub(super) fn new(outline: &'a Outline, image: &'a dyn ImageBytes) -> Option<Self> {
        let sweep = Sweep::new(&outline.parts)?;
        let mut flow = Self {
            image,
            outline,
            sweep,
            footings: Vec::new(),
            entrances: Vec::new(),
            edges: Vec::new(),
            returns: Vec::new(),
            indirect: Vec::new(),
            indirect_edges: FxHashSet::default(),
            table_reads: Vec::new(),
            work: Vec::new(),
            has_unknown_jumps: false,
            reaches_invalid: false,
        };
        flow.enter();
        flow.follow_all(Footing::Reached);
        let has_jumps_in_doubt = flow.resolve_jumps();
        let is_open = flow.reaches_invalid || outline.has_more_ways_in;
        // Code that nothing leads to, and a jump of which we cannot be sure: they may belong together.
        let is_in_doubt = has_jumps_in_doubt || (is_open && !flow.indirect.is_empty());
        flow.has_unknown_jumps |= is_in_doubt && flow.has_code_apart();
        if flow.has_unknown_jumps || is_open {
            flow.open_blocks(Footing::Reached);
            flow.resolve_jumps();
        }
        flow.mark_labels();
        flow.open_blocks(Footing::Apart);
        flow.open_rest();
        Some(flow)
    }

    /// Enters the function wherever it is known to be entered.
    fn enter(&mut self) {
        let outline = self.outline;
        let starts = outline.parts.iter().filter(|part| part.is_entered).map(|part| part.start);
        for svma in starts.chain(outline.entries.iter().copied()) {
            self.open(svma.0, Entrances::ENTRY, Footing::Reached);
        }
        for svma in &outline.landing_pads {
            self.open(svma.0, Entrances::LANDING_PAD, Footing::Reached);
        }
        for svma in &outline.jumped_to {
            self.open(svma.0, Entrances::UNKNOWN, Footing::Reached);
        }
    }

    /// Lets control into the instruction at `address` from outside.
    fn open(&mut self, address: u64, entrance: Entrances, footing: Footing) -> Option<u32> {
        let to = self.reach(address, footing)?;
        self.entrances[to as usize].include(entrance);
        Some(to)
    }

    /// The instruction at `address`, reached now; `None` where it stands on better footing.
    fn reach(&mut self, address: u64, footing: Footing) -> Option<u32> {
        let to = self.sweep.enter(address)?;
        self.footings.resize(self.sweep.instructions.len(), None);
        self.entrances.resize(self.sweep.instructions.len(), Entrances::default());
        match &mut self.footings[to as usize] {
            Some(better) if *better < footing => return None,
            Some(_) => {}
            free => {
                *free = Some(footing);
                self.work.push(to);
            }
        }
        Some(to)
    }

    fn follow_all(&mut self, footing: Footing) {
        while let Some(from) = self.work.pop() {
            self.follow(from, footing);
        }
    }

    fn follow(&mut self, from: u32, footing: Footing) {
        let here = self.sweep.instructions[from as usize];
        let next = here.next_ip();
        let is_reached = footing == Footing::Reached;
        self.reaches_invalid |= is_reached && here.is_invalid();
        match Exit::of(&here) {
            Exit::Next | Exit::System => self.add_edge(from, next, false, footing),
            Exit::Branch(target) => {
                self.add_edge(from, next, false, footing);
                self.add_edge(from, target, true, footing);
                if here.mnemonic() == Mnemonic::Xbegin {
                    // Whatever ran last before the transaction was given up.
                    self.open(target, Entrances::UNKNOWN, footing);
                }
            }
            Exit::Jump(target) => self.add_edge(from, target, true, footing),
            Exit::Indirect if is_reached => self.indirect.push(from),
            Exit::Call(target) => self.follow_call(from, &here, target, footing),
            Exit::Indirect | Exit::Return | Exit::Never => {}
        }
    }

    fn follow_call(
        &mut self,
        from: u32,
        here: &Instruction,
        target: Option<u64>,
        footing: Footing,
    ) {
        if let Some(target) = target {
            self.open(target, Entrances::ENTRY, footing);
        }
        if Destination::of(here).is_some_and(|callee| self.image.is_noreturn(callee)) {
            return;
        }
        if let Some(to) = self.open(here.next_ip(), Entrances::RETURN, footing) {
            self.returns.push((to, from));
        }
    }

    fn add_edge(&mut self, from: u32, address: u64, is_taken: bool, footing: Footing) {
        if let Some(to) = self.reach(address, footing) {
            self.edges.push((to, Predecessor { from, is_taken }));
        }
    }

    /// Finds the targets of indirect jumps, and of those that they lead to, until nothing new
    /// turns up: first each by its own table, then the rest by all tables of the function. Tells whether some may lead to
    /// more places than were found.
    fn resolve_jumps(&mut self) -> bool {
        let mut with_all_tables = false;
        for _ in 0..limit::MAX_TRACE_ROUNDS {
            if self.indirect.is_empty() {
                return false;
            }
            self.sort();
            let is_reached = self.reached();
            let mut tracer = Tracer::new(self.view(&is_reached), self.image);
            let found = tracer.resolve(&self.indirect, with_all_tables);
            let (reads, is_in_doubt) = (tracer.reads, tracer.is_in_doubt);
            self.table_reads.extend(reads);
            let n_before = self.indirect_edges.len();
            let mut is_whole = true;
            for (jump, targets) in found {
                is_whole &= self.add_targets(jump, targets);
            }
            self.follow_all(Footing::Reached);
            if self.indirect_edges.len() == n_before {
                if with_all_tables {
                    self.has_unknown_jumps |= !is_whole;
                    return is_in_doubt;
                }
                with_all_tables = true;
            }
        }
        self.has_unknown_jumps = true;
        true
    }

    /// Adds a jump's targets, and tells whether they are all there are.
    fn add_targets(&mut self, jump: u32, targets: Targets) -> bool {
        let Targets::Known(addresses) = targets else { return targets == Targets::Elsewhere };
        for address in addresses.iter().copied() {
            if self.indirect_edges.len() >= limit::MAX_INDIRECT_EDGES {
                return false;
            }
            let target = self.sweep.enter(address);
            if target.is_some_and(|target| self.indirect_edges.insert((jump, target))) {
                self.add_edge(jump, address, true, Footing::Reached);
            }
        }
        true
    }

    /// Puts the flow in order for tracing.
    fn sort(&mut self) {
        // They are found in runs that are in order.
        self.edges.sort();
        self.returns.sort();
    }

    /// Tells of each instruction whether it is reached.
    fn reached(&self) -> Vec<bool> {
        self.footings.iter().map(|footing| *footing == Some(Footing::Reached)).collect()
    }

    fn view<'v>(&'v self, is_reached: &'v [bool]) -> View<'v> {
        View {
            sweep: &self.sweep,
            is_reached,
            entrances: &self.entrances,
            edges: &self.edges,
            returns: &self.returns,
            labels: &self.outline.labels,
        }
    }

    /// Labels whose address is taken and that no jump of the function is known to lead to.
    fn mark_labels(&mut self) {
        let targets: FxHashSet<u32> = self.indirect_edges.iter().map(|(_, to)| *to).collect();
        let is_reached = self.reached();
        let labels = labels(self.view(&is_reached), self.image);
        let labels = labels.into_iter().filter_map(|label| self.sweep.index_of(label));
        for to in labels.filter(|to| !targets.contains(to)).map(|to| to as usize) {
            if is_reached.get(to) == Some(&true) {
                self.entrances[to].is_unknown = true;
            }
        }
    }

    /// Instructions found so far, by address.
    fn by_address(&self) -> Vec<u32> {
        let mut order: Vec<u32> = self.sweep.by_part().collect();
        if self.outline.parts.len() > 1 {
            order.sort_by_key(|idx| self.sweep.instructions[*idx as usize].ip());
        }
        order
    }

    /// Tells whether there is code after a jump or return that nothing leads to. A jump or trap that a compiler
    /// puts behind a call, in case it came back, is none.
    fn has_code_apart(&self) -> bool {
        let mut cut = Cut::default();
        let mut is_behind_call = false;
        self.by_address().into_iter().any(|idx| {
            let here = &self.sweep.instructions[idx as usize];
            let exit = Exit::of(here);
            let is_left_over =
                is_behind_call && matches!(exit, Exit::Jump(_) | Exit::Return | Exit::Never);
            is_behind_call = matches!(exit, Exit::Call(_));
            cut.is_head(self, idx) && self.is_free(idx) && !is_left_over
        })
    }

    fn is_free(&self, idx: u32) -> bool {
        self.footings.get(idx as usize).copied().flatten().is_none()
    }

    /// Lets control into what stands behind a jump or return and is not reached; and, where a jump
    /// may lead anywhere, into what is reached there as well.
    fn open_blocks(&mut self, footing: Footing) {
        let may_be_jumped_to = footing == Footing::Reached && self.has_unknown_jumps;
        let mut cut = Cut::default();
        for idx in self.by_address() {
            let is_head = cut.is_head(self, idx);
            if is_head && (may_be_jumped_to || self.is_free(idx)) {
                self.open_unknown(idx, footing);
            }
        }
    }

    /// Gives what is left its straight line.
    fn open_rest(&mut self) {
        for idx in self.by_address() {
            if self.is_free(idx) {
                self.open_unknown(idx, Footing::Filler);
            }
        }
    }

    fn open_unknown(&mut self, idx: u32, footing: Footing) {
        let ip = self.sweep.instructions[idx as usize].ip();
        self.open(ip, Entrances::UNKNOWN, footing);
        self.follow_all(footing);
    }

    /// The graph, in the order of addresses.
    pub(super) fn graph(mut self) -> FunctionCode {
        if self.has_unknown_jumps {
            for (to, _) in self.edges.iter().filter(|(_, from)| from.is_taken) {
                self.entrances[*to as usize].is_unknown = true;
            }
        }
        let order = self.by_address();
        let mut rank = vec![0u32; order.len()];
        for (new, old) in order.iter().enumerate() {
            rank[*old as usize] = new as u32;
        }
        for (to, predecessor) in &mut self.edges {
            *to = rank[*to as usize];
            predecessor.from = rank[predecessor.from as usize];
        }
        self.edges.sort_unstable();
        self.edges.dedup();
        let pick = |idx: &u32| self.sweep.instructions[*idx as usize];
        let instructions = order.iter().map(pick).collect();
        let entrances = order.iter().map(|idx| self.entrances[*idx as usize]).collect();
        for (read, _) in &mut self.table_reads {
            *read = rank[*read as usize];
        }
        self.table_reads.sort_unstable();
        self.table_reads.dedup();
        let mut function = FunctionCode::assemble(instructions, &self.edges, entrances);
        function.table_reads = self.table_reads;
        function
    }
}

/// Goes over the instructions by address and tells which stand behind one that does not go on.
#[derive(Default)]
struct Cut {
    is_cut_off: bool,
    end: Option<u64>,
}

impl Cut {
    /// Tells whether a block begins with this instruction, as the one before does not go on. Fillers that
    /// nothing leads to are passed over.
    fn is_head(&mut self, flow: &Flow<'_>, idx: u32) -> bool {
        let here = &flow.sweep.instructions[idx as usize];
        let is_head = self.is_cut_off || self.end.is_none_or(|end| end < here.ip());
        self.end = Some(here.next_ip());
        if is_head && flow.is_free(idx) && (is_filler(here) || here.is_invalid()) {
            self.is_cut_off = true;
            return false;
        }
        self.is_cut_off = match Exit::of(here) {
            // It may be known not to return.
            Exit::Call(_) if !flow.is_free(idx) => {
                let next = flow.sweep.index_of(here.next_ip());
                !next.is_some_and(|next| flow.entrances[next as usize].is_return)
            }
            exit => !exit.goes_on(),
        };
        is_head
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x86_64::image_bytes::NoBytes;
    use crate::x86_64::outline::CodePart;
    use dataspace_proto::address::Svma;
    use proptest::prelude::*;

    /// One part of code at 0x1000, and a table at 0x2000.
    struct Table(Vec<u8>);

    impl ImageBytes for Table {
        fn bytes_at(&self, svma: Svma, n_bytes: usize) -> Option<Vec<u8>> {
            let into =
                svma.offset_from(Svma(0x2000)).and_then(|into| usize::try_from(into).ok())?;
            let rest = self.0.get(into..)?;
            Some(rest[..n_bytes.min(rest.len())].to_vec())
        }
    }

    fn part(start: u64, code: &[u8], is_entered: bool) -> CodePart {
        CodePart { start: Svma(start), code: code.to_vec(), is_entered }
    }

    fn sources(function: &FunctionCode, svma: u64) -> Vec<u64> {
        let at = function.index_of(Svma(svma)).unwrap();
        let from = function.predecessors(at).iter().map(|from| from.from as usize);
        from.map(|from| function.code(from).unwrap().start).collect()
    }

    fn entrances(function: &FunctionCode, svma: u64) -> Entrances {
        function.entrances(function.index_of(Svma(svma)).unwrap())
    }

    #[test]
    fn a_part_that_was_moved_away_jumps_back() {
        // 1000: js 2000  1006: mov (%rax),%rax  1009: ret   and far off 2000: jmp 1006
        let main = [0x0f, 0x88, 0xfa, 0x0f, 0, 0, 0x48, 0x8b, 0x00, 0xc3];
        let moved = [0xe9, 0x01, 0xf0, 0xff, 0xff];
        let parts = vec![part(0x1000, &main, true), part(0x2000, &moved, false)];
        let outline = Outline { parts, ..Outline::default() };
        let function = FunctionCode::of(&outline, &NoBytes).unwrap();
        assert_eq!(sources(&function, 0x1006), [0x1000, 0x2000]);
        assert_eq!(sources(&function, 0x2000), [0x1000]);
        assert_eq!(entrances(&function, 0x2000), Entrances::default(), "nothing calls it");
    }

    #[test]
    fn a_jump_past_a_prefix_begins_a_second_stream() {
        // 1000: je 1003  1002: lock incl (%rdi)  1005: ret
        let code = [0x74, 0x01, 0xf0, 0xff, 0x07, 0xc3];
        let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        assert_eq!(sources(&function, 0x1002), [0x1000]);
        assert_eq!(sources(&function, 0x1003), [0x1000]);
        assert_eq!(sources(&function, 0x1005), [0x1002, 0x1003]);
    }

    #[test]
    fn data_and_fillers_behind_a_jump_come_before_nothing() {
        // 1000: jmp 1006  1002: data that reads as jmp 1006, and nops  1006: ret
        let code = [0xeb, 0x04, 0xeb, 0x02, 0x90, 0x90, 0xc3];
        let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        assert_eq!(sources(&function, 0x1006), [0x1000]);
        assert!(entrances(&function, 0x1002).is_unknown);
    }

    #[test]
    fn zero_bytes_fill_up_and_other_additions_do_not() {
        // 1000: jmp 1005  1002: add %cl,%al or add %al,(%rax)  1004: ret  1005: ret
        let decode = |fill: [u8; 2]| {
            let code = [0xeb, 0x03, fill[0], fill[1], 0xc3, 0xc3];
            FunctionCode::decode(Svma(0x1000), &code, &NoBytes)
        };
        let (sum, zeros) = (decode([0x00, 0xc8]), decode([0, 0]));
        assert!(entrances(&sum, 0x1002).is_unknown && !entrances(&sum, 0x1004).is_any());
        assert!(entrances(&zeros, 0x1004).is_unknown);
    }

    #[test]
    fn an_alignment_that_is_run_through_is_a_predecessor() {
        // 1000: mov (%rax),%rax  1003: nop  1004: dec %edx  1006: jne 1004  1008: ret
        let code = [0x48, 0x8b, 0x00, 0x90, 0xff, 0xca, 0x75, 0xfc, 0xc3];
        let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        assert_eq!(sources(&function, 0x1004), [0x1003, 0x1006]);
    }

    #[test]
    fn behind_a_call_the_callee_returns_and_a_call_of_the_next_is_a_jump() {
        // 1000: call 2000  1005: call 100a  100a: pop %rax  100b: ud2  100d: ret
        let code = [0xe8, 0xfb, 0x0f, 0, 0, 0xe8, 0, 0, 0, 0, 0x58, 0x0f, 0x0b, 0xc3];
        let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        assert!(entrances(&function, 0x1005).is_return);
        assert!(sources(&function, 0x1005).is_empty());
        assert_eq!(sources(&function, 0x100a), [0x1005]);
        assert!(!entrances(&function, 0x100a).is_any());
        assert!(sources(&function, 0x100d).is_empty(), "ud2 does not go on");
        assert!(entrances(&function, 0x100d).is_unknown);
    }

    /// 1000: cmp $1,%eax  1003: ja 1019  1005: lea 2000(%rip),%rdx  100c: movslq (%rdx,%rax,4),%rax
    /// 1010: add %rdx,%rax  1013: jmp *%rax  1015: ret  1016: nop  1017: ret  1018: nop  1019: ret
    const SWITCH: [u8; 26] = [
        0x83, 0xf8, 0x01, 0x77, 0x14, 0x48, 0x8d, 0x15, 0xf4, 0x0f, 0, 0, 0x48, 0x63, 0x04, 0x82,
        0x48, 0x01, 0xd0, 0xff, 0xe0, 0xc3, 0x90, 0xc3, 0x90, 0xc3,
    ];

    fn distances(targets: &[i32]) -> Table {
        Table(targets.iter().flat_map(|target| (target - 0x2000).to_le_bytes()).collect())
    }

    #[test]
    fn the_guard_tells_how_long_a_table_is() {
        let table = distances(&[0x1015, 0x1017, 0x1019, 0x1016]);
        let function = FunctionCode::decode(Svma(0x1000), &SWITCH, &table);
        assert_eq!(sources(&function, 0x1015), [0x1013]);
        assert_eq!(sources(&function, 0x1017), [0x1013]);
        assert_eq!(sources(&function, 0x1019), [0x1003], "the table of another jump begins here");
        assert!(!entrances(&function, 0x1017).is_any());
    }

    /// A compiler that does not know that a call never returns leaves code after it.
    #[test]
    fn a_guarded_table_leads_to_no_code_that_nothing_leads_to() {
        let table = distances(&[0x1015, 0x1017]);
        // 101a: mov %eax,%ecx  101c: ret
        let guarded = [&SWITCH[..], &[0x89, 0xc1, 0xc3]].concat();
        let function = FunctionCode::decode(Svma(0x1000), &guarded, &table);
        assert!(entrances(&function, 0x101a).is_unknown);
        assert!(!entrances(&function, 0x1015).is_any() && !entrances(&function, 0x1017).is_any());
        // 1003: nops
        let open = [&guarded[..3], &[0x90, 0x90], &guarded[5..]].concat();
        let function = FunctionCode::decode(Svma(0x1000), &open, &table);
        assert!(entrances(&function, 0x1015).is_unknown, "the table may be longer");
        // 100c: movslq (%rsi,%rax,4),%rax
        let foreign = [&guarded[..15], &[0x86], &guarded[16..]].concat();
        let function = FunctionCode::decode(Svma(0x1000), &foreign, &table);
        assert!(entrances(&function, 0x1015).is_unknown, "it may be another table");
    }

    #[test]
    fn a_table_of_addresses_is_followed_through_the_register_that_loads_it() {
        // 1000: cmp $1,%edi  1003: ja 1012  1005: mov %edi,%edi  1007: mov 0x2000(,%rdi,8),%rax
        // 100f: jmp *%rax  1011: nop  1012: ret  1013: nop  1014: ret
        let code = [
            0x83, 0xff, 0x01, 0x77, 0x0d, 0x89, 0xff, 0x48, 0x8b, 0x04, 0xfd, 0x00, 0x20, 0, 0,
            0xff, 0xe0, 0x90, 0xc3, 0x90, 0xc3,
        ];
        let table: Vec<u8> = [0x1012u64, 0x1014, 0x1013].map(u64::to_le_bytes).concat();
        let function = FunctionCode::decode(Svma(0x1000), &code, &Table(table));
        assert_eq!(sources(&function, 0x1014), [0x100f]);
        assert_eq!(sources(&function, 0x1012), [0x1003, 0x100f]);
        assert_eq!(sources(&function, 0x1013), [] as [u64; 0], "behind the end of the table");
    }

    /// Code that is always where its addresses say, without tables.
    struct Fixed;

    impl ImageBytes for Fixed {
        fn bytes_at(&self, _: Svma, _: usize) -> Option<Vec<u8>> {
            None
        }

        fn is_at_fixed_addresses(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_number_may_be_the_address_of_a_label() {
        // 1000: mov $0x100a,%eax  1005: jmp *%rax  1007: nop  1008: nop  1009: ret  100a: ret
        let code = [0xb8, 0x0a, 0x10, 0, 0, 0xff, 0xe0, 0x90, 0x90, 0xc3, 0xc3];
        let fixed = FunctionCode::decode(Svma(0x1000), &code, &Fixed);
        assert_eq!(sources(&fixed, 0x100a), [0x1005]);
    }

    #[test]
    fn a_jump_that_cannot_be_traced_may_lead_to_any_block() {
        let function = FunctionCode::decode(Svma(0x1000), &SWITCH, &NoBytes);
        assert!(entrances(&function, 0x1015).is_unknown);
        assert!(entrances(&function, 0x1019).is_unknown, "others jump there too");
        assert!(!entrances(&function, 0x100c).is_any(), "in the middle of a block");
    }

    proptest! {
        #[test]
        fn any_bytes_make_a_graph(
            code in proptest::collection::vec(any::<u8>(), 0..600),
            table in proptest::collection::vec(any::<u8>(), 0..64),
            entries in proptest::collection::vec(0u64..700, 0..4),
            split in 0usize..600,
        ) {
            let (first, second) = code.split_at(split.min(code.len()));
            let second_start = 0x1000 + first.len() as u64;
            let parts = vec![part(0x1000, first, true), part(second_start, second, false)];
            let entries: Vec<Svma> = entries.iter().map(|into| Svma(0x1000 + into)).collect();
            let landing_pads = entries.iter().rev().take(1).copied().collect();
            let outline = Outline { parts, entries, landing_pads, ..Outline::default() };
            let function = FunctionCode::of(&outline, &Table(table)).unwrap();
            for at in 0..function.n_instructions() {
                let known = function.entrances(at).is_any();
                prop_assert!(known || !function.predecessors(at).is_empty());
                prop_assert!(function.predecessors(at).len() <= limit::MAX_PREDECESSORS);
                for from in function.predecessors(at) {
                    prop_assert!(function.instruction(from.from as usize).is_some());
                }
            }
        }
    }

    #[test]
    fn a_function_that_is_all_indirect_jumps_stays_within_its_budget() {
        // jmp *0x2000(,%rax,8), each with a table full of its own addresses; then jmp *%rax.
        let table: Vec<u8> = (0..0x4000u64)
            .flat_map(|entry| (0x10_0000 + entry % 0x1000 * 7).to_le_bytes())
            .collect();
        let indexed: Vec<u8> = (0..0x8000u32)
            .flat_map(|at| {
                [&[0xff, 0x24, 0xc5][..], &(0x2000 + at % 64 * 8).to_le_bytes()].concat()
            })
            .collect();
        for code in [indexed, [0xff, 0xe0].repeat(0x8000)] {
            let outline =
                Outline { parts: vec![part(0x10_0000, &code, true)], ..Outline::default() };
            let function = FunctionCode::of(&outline, &Table(table.clone())).unwrap();
            assert!(function.n_instructions() >= 0x8000);
        }
    }

    #[test]
    fn a_function_of_the_largest_size_is_decoded_in_linear_time() {
        // Four million bytes of which each pair jumps somewhere near.
        let mut state = 1u32;
        let code: Vec<u8> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            [0x74, (state >> 24) as u8]
        })
        .take(limit::MAX_FUNCTION_INSTRUCTIONS / 4)
        .flatten()
        .collect();
        let outline = Outline { parts: vec![part(0x1000, &code, true)], ..Outline::default() };
        let function = FunctionCode::of(&outline, &NoBytes).unwrap();
        assert!(function.n_instructions() >= code.len() / 2);
    }

    #[test]
    fn hlt_goes_nowhere() {
        // 1000: je 1003  1002: hlt  1003: ret
        let code = [0x74, 0x01, 0xf4, 0xc3];
        let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        assert_eq!(sources(&function, 0x1003), [0x1000]);
    }

    #[test]
    fn a_functions_own_address_is_no_label() {
        // 1000: lea 1000(%rip),%rax  1007: lea 100f(%rip),%rdx  100e: nop  100f: ret
        let code =
            [0x48, 0x8d, 0x05, 0xf9, 0xff, 0xff, 0xff, 0x48, 0x8d, 0x15, 0x01, 0, 0, 0, 0x90, 0xc3];
        let function = FunctionCode::decode(Svma(0x1000), &code, &NoBytes);
        assert!(!entrances(&function, 0x1000).is_unknown, "whoever has it calls it");
        assert!(entrances(&function, 0x100f).is_unknown, "whoever has it may jump there");
        assert!(!entrances(&function, 0x100e).is_any());
    }

    #[test]
    fn a_jump_through_a_pointer_may_go_by_any_table_that_is_not_in_the_code() {
        // 1000: lea 2000(%rip),%rdx  1007: jmp *%rsi  1009: ret  100a: nop  100b: ret
        let code = [0x48, 0x8d, 0x15, 0xf9, 0x0f, 0, 0, 0xff, 0xe6, 0xc3, 0x90, 0xc3];
        let table = [0x1009u64, 0x100b].map(u64::to_le_bytes).concat();
        let function = FunctionCode::decode(Svma(0x1000), &code, &Table(table));
        assert_eq!(sources(&function, 0x1009), [0x1007]);
        assert_eq!(sources(&function, 0x100b), [0x1007]);
    }

    #[test]
    fn a_jump_of_more_values_than_are_looked_at_may_lead_to_any_label() {
        for (n_values, is_lost) in [(limit::MAX_ORIGINS - 4, false), (limit::MAX_ORIGINS + 4, true)]
        {
            let n = n_values as u32;
            // mov $label,%ecx; for each value mov $value,%eax and je to the jump; then jmp *%rax, the
            // label's ret and those of the values.
            let jump = 0x1005 + n * 11;
            let label = jump + 2;
            let mut code = [&[0xb9][..], &label.to_le_bytes()].concat();
            for value in 1..=n {
                code.push(0xb8);
                code.extend_from_slice(&(label + value).to_le_bytes());
                code.extend_from_slice(&[0x0f, 0x84]);
                code.extend_from_slice(&((n - value) * 11).to_le_bytes());
            }
            code.extend_from_slice(&[0xff, 0xe0]);
            code.resize(code.len() + n_values + 1, 0xc3);
            let function = FunctionCode::decode(Svma(0x1000), &code, &Fixed);
            let (jump, label) = (u64::from(jump), u64::from(label));
            assert_eq!(sources(&function, label + 1), [jump], "{n_values}");
            assert_eq!(sources(&function, label).contains(&jump), is_lost, "{n_values}");
        }
    }
}
