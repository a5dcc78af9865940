//! Every limit of the analyzer, each with its reason: a profiled process controls the input.

mod bounded_map;
mod call;
mod code_name;
mod code_pointer;
mod frame;
mod history;
mod instruction;
mod layout;
mod listing;
mod name;
mod totals;

pub(crate) use bounded_map::BoundedMap;
pub use call::*;
pub use code_name::*;
pub use code_pointer::*;
pub use frame::*;
pub use history::*;
pub use instruction::*;
pub use layout::*;
pub use listing::*;
pub use name::*;
pub use totals::*;

/// Largest section that is read into memory. Chromium's `.debug_info` is about 1.5 GB; a larger
/// one is damage or an attack.
pub const MAX_SECTION_BYTES: u64 = 2 << 30;

/// Bytes of a section that are read at once. Where one string of many is wanted more would be in vain; a
/// read takes some 5 µs besides its bytes, which is little for as many. Pages of 64 KiB named no
/// faster, and their cache took 27 MB more for as many of them.
pub const PAGE_BYTES: usize = 16 << 10;

/// Pages that one worker keeps of all files: enough for the strings and abbreviations that units in
/// use share. The units themselves are read once and kept in another form.
pub const MAX_CACHED_PAGE_BYTES: usize = 8 << 20;

/// Bytes of a string before its end is not looked for any further: linkage names of C++ reach some
/// hundred kilobytes.
pub const MAX_STRING_BYTES: usize = 4 << 20;

/// Times its own length that a compressed section may decompress to. Zlib reaches 1032 (a
/// match of 258 bytes in 2 bits); debug sections come to about 4.
pub const MAX_COMPRESSION: u64 = 1040;

/// The most that `stored_bytes` may stand for. Debug sections shrink to a third or a tenth, and
/// file systems that compress do no better; a bomb claims a thousandfold.
#[must_use]
pub const fn most_expanded(stored_bytes: u64) -> u64 {
    stored_bytes.saturating_mul(64).saturating_add(1 << 20)
}

/// The most that all compressed sections of a file may decompress to. Debug sections come to 4 times, of
/// generated code to 10, and small files have more of it.
#[must_use]
pub const fn most_unpacked(stored_bytes: u64) -> u64 {
    stored_bytes.saturating_mul(16).saturating_add(16 << 20)
}

/// All that may be read of one file while its headers and symbols are parsed.
pub const MAX_HEADER_BYTES: u64 = 512 << 20;

/// Sections a file may have; the largest known objects (`-ffunction-sections`) have about 10^5.
pub const MAX_SECTIONS: usize = 1 << 18;

/// Function symbols kept of one file: 40 bytes each. Chromium has about 1.5 million.
pub const MAX_SYMBOLS: usize = 1 << 22;

/// Values of one function that are followed: about 60 bytes each. `sqlite3VdbeExec` has some 40,000.
pub const MAX_VALUES: usize = 1 << 20;

/// Runs of one function whose registers are found without hashing: 128 bytes each.
pub const MAX_DENSE_RUNS: usize = 1 << 16;

/// Offsets that an address may have before only the steps between them are kept: a tree's node has
/// two children, a B-tree's search four ways on.
pub const MAX_OFFSETS: usize = 4;

/// Passes in which values that come in alike on every way are found; one for each depth of nested
/// loops.
pub const MAX_SIMPLIFICATIONS: usize = 8;

/// Bytes of one function that are decoded; the largest generated parsers have about a megabyte.
pub const MAX_FUNCTION_BYTES: u64 = 4 << 20;

/// Instructions of one function: 40 bytes each, and as much again for the ways between them.
/// 4 MiB of compiled code are about this many.
pub const MAX_FUNCTION_INSTRUCTIONS: usize = 1 << 20;

/// Parts of one function that are decoded; compilers make two, but names of statics repeat.
pub const MAX_FUNCTION_PARTS: usize = 16;

/// Decoded instructions kept by one load object before the cache starts anew: about 60 bytes each
/// with the ways between them.
pub const MAX_CACHED_INSTRUCTIONS: usize = 1 << 17;

/// Entries of one jump table; the largest `switch` seen has a few thousand cases.
pub const MAX_JUMP_TABLE_ENTRIES: usize = 1 << 14;

/// Code that is searched for jumps between functions, once for a load object: a quarter of a second
/// at 250 MB/s. Larger ones are browsers.
pub const MAX_SEARCHED_BYTES: u64 = 64 << 20;

/// Jumps between functions that are kept of one load object: 32 bytes each. gcc's own compiler has
/// about 150,000, most of them from and to parts that were moved away.
pub const MAX_CROSSINGS: usize = 1 << 20;

/// Landing pads of one function; there is one for each call at most.
pub const MAX_LANDING_PADS: usize = 1 << 16;

/// Bytes of one table of landing pads: 16 for each call of the largest function.
pub const MAX_CALL_SITE_BYTES: u64 = 4 << 20;

/// Pairs of an indirect jump and a target in one function: 8 bytes each. An interpreter with 300
/// copies of its jump and 300 operations has 90,000.
pub const MAX_INDIRECT_EDGES: usize = 1 << 18;

/// Labels that distances in a table are tried from; programs count from one.
pub const MAX_ANCHORS: usize = 8;

/// Rounds in which indirect jumps are traced anew because new code was reached: a `switch` inside a
/// `switch` takes one more.
pub const MAX_TRACE_ROUNDS: usize = 16;

/// Instructions that are looked at to find where one operand of an indirect jump comes from. A
/// table's address is formed near the jump, or once before a loop.
pub const MAX_TRACE_WIDTH: usize = 1 << 12;

/// The same for all indirect jumps of a function together, in one round.
pub const MAX_TRACE_STEPS: usize = 1 << 20;

/// Places where the value of one operand may come from: tail-merged jumps have a few.
pub const MAX_ORIGINS: usize = 64;

/// Entries of all jump tables of a function that are read in one round. An interpreter with 300
/// copies of its jump reads its table of 300 entries so often.
pub const MAX_TABLE_ENTRIES_READ: usize = 1 << 19;

/// Instructions between an indirect jump and the comparison that guards it; compilers take under
/// ten.
pub const MAX_GUARD_DISTANCE: usize = 48;

/// Predecessors of one instruction that are weighed.
pub const MAX_PREDECESSORS: usize = 64;

/// Longest way back to a trigger, whatever range is asked for: what a counter without
/// precise sampling skids stays under some tens of instructions.
pub const MAX_SKID: u32 = 64;

/// Instructions of one trail: about 200 bytes each. A trigger's number in it fits a byte.
pub const MAX_TRAIL_NODES: usize = 192;

/// Other functions that one trail leads into, as callees and callers: each has to be decoded.
pub const MAX_TRAIL_FUNCTIONS: usize = 16;

/// Bytes of a function that is known by its symbol: the longest of libstdc++ has 1,344.
pub const MAX_KNOWN_FUNCTION_BYTES: u64 = 1 << 14;

/// Functions without a symbol that are known because such functions call them: libstdc++'s `tree.cc` has
/// four that are `static`.
pub const MAX_KNOWN_CALLEES: usize = 16;

/// Longest way that an index may move an address: no array is as large, and all addresses but those of small
/// programs without randomisation are larger.
pub const MAX_INDEXED_BYTES: u64 = 1 << 40;

/// Instructions of a function whose returns are shown after a call of it.
pub const MAX_CALLEE_INSTRUCTIONS: usize = 1 << 14;

/// Code of one load object that is searched for calls: about 10 ms, and 8 bytes of memory for each
/// of its calls. In more than this the callers of a function stay unknown.
pub const MAX_CALLING_BYTES: u64 = 32 << 20;

/// Calls of one load object that are remembered; a byte may begin as many as there are bytes, of a
/// compiler's code one in fifty does.
pub const MAX_CALLS: usize = 1 << 21;

/// Instructions of one way into an instruction whose samples tell how often it was taken.
pub const MAX_ARRIVAL_INSTRUCTIONS: usize = 16;

/// Instructions that are looked at to see whether a way comes from a loop.
pub const MAX_LOOP_INSTRUCTIONS: usize = 1 << 12;

/// Steps back that one sample may take over all ways of its trail; what is left then counts as
/// possible. A step takes about 20 ns.
pub const MAX_STEPS_A_SAMPLE: u32 = 1024;

/// Possible triggers that one sample may have before they are too many to compare.
pub const MAX_SURVIVORS: usize = 64;

/// Threads whose storage base is remembered: 16 bytes each.
pub const MAX_THREAD_BASES: usize = 1 << 16;

/// Typedefs, qualifiers, arrays and nested members that are followed; real types stay under 30.
pub const MAX_TYPE_DEPTH: usize = 48;

/// Members of one aggregate that are kept; the largest generated structures have a few thousand.
pub const MAX_MEMBERS: usize = 1 << 14;

/// All members that one aggregate may hold over all levels: 2^n nesting of n types is possible.
pub const MAX_LAYOUTS: usize = 1 << 20;

/// Bytes of a name that are kept; C++ template names reach a few kilobytes.
pub const MAX_NAME_BYTES: usize = 4096;

/// Bytes of an array's descriptor: gfortran's takes 40 and 24 for each of at most 15 dimensions.
pub const MAX_DESCRIPTOR_BYTES: u64 = 40 + 24 * 15;

/// Classes of one unit that are known to begin with another: 24 bytes each. LLVM's largest units
/// have about 20,000.
pub const MAX_DERIVATIONS: usize = 1 << 18;

/// Members of a structure of numbers that elements may lie after: headers have few.
pub const MAX_HEADER_MEMBERS: usize = 16;

/// Type parameters and typedefs of the classes around a member that are looked at.
pub const MAX_TYPE_PARAMETERS: usize = 64;

/// Arms of unions that are weighed for one access: unions of unions multiply.
pub const MAX_UNION_ARMS: u32 = 1 << 12;

/// Instructions at the beginning of a variable's range in which its frame register is set up: six
/// pushes, the alignment of the frame, and what the compiler moves between.
pub const MAX_PROLOGUE: usize = 32;

/// Parts that an access may mean that are listed where a union leaves it open; what a reader takes in.
pub const MAX_CANDIDATES: usize = 8;

/// Nested scopes (inlined calls, blocks) around one instruction.
pub const MAX_SCOPE_DEPTH: u32 = 256;

/// Code ranges of one scope: a block that the compiler scattered has some tens.
pub const MAX_SCOPE_RANGES: usize = 1 << 10;

/// Places of the variables of one function, over all ranges of code: 56 bytes each. An interpreter's
/// loop has some ten thousand.
pub const MAX_VARIABLE_PLACES: usize = 1 << 18;

/// Calls of one function whose callee the debug information names.
pub const MAX_CALL_SITES: usize = 1 << 16;

/// Parameters of a function that are looked at; six are passed in registers.
pub const MAX_PARAMETERS: usize = 32;

/// Instructions of a function that are looked at to see that it never returns: what only reports a
/// failure and ends is short.
pub const MAX_DEAD_END_INSTRUCTIONS: usize = 64;

/// Functions looked at within one another for that; of those further in only the names are.
pub const MAX_DEAD_END_LEVELS: u8 = 4;

/// Looks at functions of one load object for that, of which what they show is kept: 17 bytes a function.
/// Further on only names are looked at, and where stubs of the linkage table lead.
pub const MAX_DEAD_END_LOOKS: usize = 1 << 16;

/// Attributes of one entry. Compilers give up to some 25; some take no bytes (`DW_FORM_flag_present`,
/// `DW_FORM_implicit_const`), so that an entry of one byte could have any number.
pub const MAX_ATTRIBUTES: usize = 1 << 7;

/// Times that all abbreviations of a file may be read for walks: each unit's once for its root and once for
/// its variables. Tables can overlap, each beginning inside of the one before.
pub const MAX_ABBREVIATION_READS: usize = 4;

/// Members looked at of a value of sixteen bytes, to know which registers pass it: a union may nest as
/// many as it likes.
pub const MAX_PASSED_PARTS: usize = 256;

/// Passes over a function's values until they have to have settled: loops inside of loops take one
/// more each. What still changes then counts as ambiguous.
pub const MAX_TYPING_PASSES: usize = 24;

/// Rounds in which later uses are looked at for what is still open: what one round finds types other
/// values.
pub const MAX_LOOKS_BACK: usize = 3;

/// Variables that may be in one value: inlined functions pass one pointer on and on.
pub const MAX_FACTS_A_VALUE: usize = 64;

/// Sums of registers that variables of one function are at or point at: each loop over an array may have some.
pub const MAX_SUM_FACTS: usize = 4096;

/// Bytes of the values of functions of one load object that are kept: some thousand functions.
pub const MAX_CACHED_FLOW_BYTES: usize = 16 << 20;

/// Values of functions of one load object of which the sums of arguments are kept: about 200 bytes each.
/// A function is asked about for all that is touched in it at about one time.
pub const MAX_CACHED_SUMS: usize = 1 << 16;

/// Functions whose values are kept, and those that were put back since.
pub const MAX_CACHED_FLOWS: usize = 1 << 12;

/// Functions of which it is kept what their callers pass.
pub const MAX_CACHED_ARGUMENTS: usize = 1 << 14;

/// Functions of one load object whose variables are kept before the cache starts anew.
pub const MAX_CACHED_FUNCTIONS: usize = 256;

/// Operations of one location expression.
pub const MAX_LOCATION_OPERATIONS: usize = 64;

/// Variables of one load object that are indexed by address.
pub const MAX_STATIC_VARIABLES: usize = 1 << 20;

/// Variables of one load object that are kept with name and type before the cache starts anew: about
/// 200 bytes each.
pub const MAX_CACHED_VARIABLES: usize = 1 << 14;

/// Variables and symbols before an address that are looked at for one that reaches over it: aliases,
/// instances of one template in many units, equivalences of Fortran.
pub const MAX_OVERLAPPING_VARIABLES: usize = 64;

/// Debug information that is looked through for variables at once, before the question is tried
/// again.
pub const WALKED_BYTES_AT_ONCE: u64 = 4 << 20;

/// Debug information that one question may have looked through; it is asked again for more, after
/// what else waits: about 100 ms.
pub const MAX_WALKED_BYTES_A_QUESTION: u64 = 32 << 20;

/// Instructions that are looked at for the slot that an operand's base was loaded from: it is loaded
/// near the access, or once before a loop.
pub const MAX_LINK_STEPS: usize = 256;

/// Bytes around an address in which the ends of a string literal are looked for.
pub const MAX_LITERAL_BYTES: u64 = 4096;

/// Slots of one load object's linkage tables that are remembered: 24 bytes each and the names.
pub const MAX_LINKAGE_SLOTS: usize = 1 << 18;

/// Blocks of thread-local variables whose place is remembered, in one process: one for each thread
/// and load object.
pub const MAX_THREAD_BLOCKS: usize = 1 << 14;

/// Compilation units of one load object.
pub const MAX_UNITS: usize = 1 << 18;

/// Aggregates of which it is kept what types they name inside of themselves: a class has hundreds of
/// entries to look through.
pub const MAX_INNER_TYPES: usize = 1 << 14;

/// Functions that calls were followed to.
pub const MAX_ENTERED_FUNCTIONS: usize = 1 << 14;

/// Parsed units kept by one load object before the oldest is dropped. Each type may have a unit of
/// its own, and a structure has some tens of types.
pub const MAX_CACHED_UNITS: usize = 1 << 10;

/// Bytes that what is kept of these may take: a sixth of their entries. The last unit is kept however
/// large it is.
pub const MAX_CACHED_UNIT_BYTES: usize = 48 << 20;

/// Bytes of a path, as the kernel opens them (`PATH_MAX`).
pub const MAX_PATH_BYTES: usize = 4096;

/// Files with split units of one load object. Chromium has about 40,000.
pub const MAX_SPLIT_FILES: usize = 1 << 17;

/// Files and parts of packages with split units whose sections are in memory at once.
pub const MAX_SPLIT_FILES_KEPT: usize = 1 << 9;

/// Bytes of those sections: some tens of the largest units of C++.
pub const MAX_SPLIT_BYTES_KEPT: u64 = 256 << 20;

/// Bytes that are read of such files altogether, also when one is read again. Chromium has about
/// 15 GB of them.
pub const MAX_SPLIT_BYTES_READ: u64 = 32 << 30;

/// Times that a package of split units is looked for: one that lacks the unit asked for first may
/// be the right one all the same.
pub const MAX_PACKAGE_TRIES: usize = 4;

/// Times its own length that the rows of a package may claim together: type units share their
/// abbreviations with the unit that they were compiled with.
pub const MAX_PACKAGE_SHARING: u64 = 64;

/// Code ranges of functions of one unit: 24 bytes each, and what else stands in the lists of them. Entries
/// can share one list of ranges, so that a small file has many. The largest known units (SQLite's amalgamation, LTO) have about 10^5.
pub const MAX_FUNCTION_RANGES: usize = 1 << 19;

/// Code ranges of all units of one load object: 24 bytes each. Chromium has about 1.5 million
/// functions, each in a section of its own.
pub const MAX_CODE_RANGES: usize = 1 << 22;

/// Aggregates of one unit that are looked through for what they contain. A large unit of C++ has
/// some ten thousand.
pub const MAX_UNIT_AGGREGATES: usize = 1 << 15;

/// Members of all of them whose type is noted, 8 bytes each, and members over all levels that one search for
/// what holds a type looks at.
pub const MAX_CONTAINED_PARTS: usize = 1 << 18;

/// Containers of one type that are weighed. The kernel's list heads have thousands, of which no
/// access tells one.
pub const MAX_CONTAINERS: usize = 256;

/// Types of which it is kept what holds them: most have a few containers, of 16 bytes each.
pub const MAX_KNOWN_CONTAINERS: usize = 1 << 12;

/// Accesses through one pointer that are compared with a container's members.
pub const MAX_SHAPE_ACCESSES: usize = 64;

/// Entries of one unit that are walked. A unit of this many is about 2 GB.
pub const MAX_UNIT_ENTRIES: usize = 1 << 27;

/// Samples that wait for debug information: about 45 MB, or a third of a second of the highest rate
/// the kernel can give. What comes above is `over_budget`.
pub const MAX_PENDING_SAMPLES: usize = 1 << 16;

/// Resolved IPs kept by the analyzer, over all load objects: about 300 bytes each without trails.
pub const MAX_SITES: usize = 1 << 16;

/// Instructions of all their trails: about 200 bytes each. One IP has up to nine of them where the code
/// before it is straight, and at most [`MAX_TRAIL_NODES`].
pub const MAX_SITE_NODES: usize = 1 << 18;

/// Calls kept by the analyzer, over all load objects: about 1 kB each.
pub const MAX_KNOWN_CALLS: usize = 1 << 14;

/// Calls further out in which it is looked for what an address is of. Library functions that pass
/// a pointer on are two or three deep, and further out is not in the piece of the stack that is sampled.
pub const MAX_CALLS_OUT: u8 = 4;

/// Calls in the last place of one function that is called: a wrapper has one, a function that does
/// different things with different arguments has some.
pub const MAX_JUMPS_OUT: usize = 16;

/// Entries of one function: hand-written code shares its tails among some variants.
pub const MAX_ENTRIES: usize = 32;

/// Names of one function in a load object's dynamic symbols; glibc's `memcpy` has three.
pub const MAX_ENTRY_NAMES: usize = 16;

/// Names made for (trigger, offset) pairs before the cache starts anew: about 300 bytes each.
pub const MAX_NAMES: usize = 1 << 16;

/// Address ranges with a known variable, or known to have none, kept by load object.
pub const MAX_DATA_RANGES: usize = 1 << 16;

/// Mappings of one process; `vm.max_map_count` is 65,530 by default.
pub const MAX_MAPPINGS: usize = 1 << 17;

/// Processes that ended whose mappings are kept: samples of theirs may wait for debug information.
/// Half a second of a fork/exec storm.
pub const MAX_ENDED_PROCESSES: usize = 512;

/// Processes whose mappings are kept.
pub const MAX_PROCESSES: usize = 1 << 16;

/// Load objects of a session.
pub const MAX_LOAD_OBJECTS: usize = 1 << 14;

/// Warnings that a snapshot carries.
pub const MAX_WARNINGS: usize = 32;

/// Kinds of objects that are voted for: 200 bytes each. A browser has some thousands that are ever
/// sampled.
pub const MAX_VOTE_KINDS: usize = 1 << 12;

/// Pages in which votes for objects are kept: 600 bytes each, so 10 MB. They cover 64 MB of heap that
/// is being touched; of a larger one that is touched at random hardly any object is sampled twice.
pub const MAX_VOTE_REGIONS: usize = 1 << 14;

/// Shifts, sums and differences that are followed back from a number to the one that it is a multiple
/// of: compilers make a product of at most three, and each may ask for two more.
pub const MAX_FACTORS: usize = 6;

/// Sums with a constant that are followed back from what a function passes on to what it was given.
pub const MAX_PASSED_ON: usize = 6;

/// Pages on each side in which the elements of a large array are looked for, where those of one page
/// are too few: 260 KiB in all. The search ends with the first that are enough, or of another kind.
pub const MAX_PAGES_AROUND: u64 = 32;

/// Objects of one page that are remembered. Where there are more, what lies between those that are
/// tells of the others.
pub const MAX_VOTED_IN_REGION: usize = 16;

/// Size of an object that is voted for. Larger ones are tables, which have a type of their own all over.
pub const MAX_VOTED_BYTES: u32 = 1 << 20;

/// Time after which a vote is not believed any more: the longest window. Nothing tells when memory is
/// freed and given to something else that no typed instruction touches.
pub const MAX_VOTE_AGE_S: u32 = 60;

/// Memory above the stack pointer that counts as stack, where nothing is voted on: a frame ends with
/// its function and the next one has other things in its place. A thread's stack has 8 MiB, of which
/// what is that far from the top is the oldest and changes least.
pub const STACK_REACH_BYTES: u64 = 1 << 20;

/// Paths of control groups: 20,000 of 100 bytes. Then the table starts anew.
pub const MAX_CGROUP_BYTES: usize = 4 << 20;
