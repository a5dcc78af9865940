//! Limits of the history and of questions to it.

/// Places in code that the history tells apart, of 80 bytes each: pairs of a reported instruction and its trigger, of which
/// neither is told in further ones, and calls, which are not told.
pub const MAX_HISTORY_PLACES: usize = 1 << 17;

/// Threads that the history tells apart, each again under each of its names: 60 bytes each.
pub const MAX_HISTORY_TASKS: usize = 1 << 16;

/// Seconds for which it is told how many of their samples are gone; of those before only the sum.
pub const MAX_GONE_SECONDS: usize = 4096;

/// Rows of one answer: 100 bytes each and the keys.
pub const MAX_ANSWER_ROWS: usize = 1 << 20;

/// Characters of one expression.
pub const MAX_EXPRESSION_CHARS: usize = 4096;

/// Rows of the line table of one unit: 24 bytes each. The largest known (SQLite's amalgamation, LTO) have some 10^5.
pub const MAX_LINE_ROWS: usize = 1 << 20;

/// Rows of all line tables of one load object that are kept.
pub const MAX_CACHED_LINE_ROWS: usize = 1 << 21;

/// Calls in line around one instruction whose lines are told.
pub const MAX_INLINED_CALLS: usize = 64;

/// Questions about lines that are on their way at once: what samples wait for goes before.
pub const MAX_LINES_ASKED: usize = 64;

/// Parts of the expressions of one question: names can make them double again and again. Each is worked out for each
/// sample, in some nanoseconds.
pub const MAX_EXPRESSION_PARTS: usize = 1 << 11;

/// Deepest nesting of an expression, through its names too.
pub const MAX_EXPRESSION_DEPTH: usize = 32;

/// Expressions of one question that have a name.
pub const MAX_OWN_KEYS: usize = 32;

/// Bytes of a text that an expression makes.
pub const MAX_TEXT_BYTES: usize = 4096;

/// Numbers by which answers of parts of an expression are kept: above all tables of a history.
pub const MAX_KEPT_ANSWERS: usize = 1 << 19;

/// Cache lines among which shared ones are looked for: 40 bytes each. A history of the usual size has no more samples; of
/// further lines nothing is told.
pub const MAX_SURVEYED_LINES: usize = 1 << 20;

/// Lines that one access touches: FXSAVE, the longest whose length is known, has 512 bytes.
pub const MAX_LINES_OF_ACCESS: usize = 9;

/// Threads of one line that are compared with each other. More of them have no sample in fifty each, and do not count.
pub const MAX_LINE_SHARERS: usize = 64;

/// Parts of one line that are told, by their samples: each is a thread, bytes, an object and a function.
pub const MAX_LINE_PARTS: usize = 64;

/// Lines that are told in full at most, by their samples.
pub const MAX_TOLD_LINES: usize = 10_000;
