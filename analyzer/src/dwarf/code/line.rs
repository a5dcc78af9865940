//! Source lines of instructions: line tables (DWARF 5, section 6.2), and the calls that the compiler put in line.

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::code_range;
use crate::dwarf::unit::parsed::{ParsedUnit, bounded_string};
use crate::dwarf::unit::reader::{Entry, Reader};
use crate::limit;
use crate::types::die::{DieRef, UnitIdx};
use dataspace_proto::address::Svma;
use gimli::AttributeValue;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A line of a source file, and the function that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The function, with its name spaces.
    pub function: Option<Arc<str>>,
    /// Path of the file, as the compiler recorded it; relative ones after the directory that it worked in.
    pub path: Option<Arc<str>>,
    /// The line, from 1 on; 0 where the compiler names none.
    pub line: u32,
}

/// The line tables of units, as many as there is room for.
#[derive(Debug, Default)]
pub(crate) struct LineTables {
    of_unit: FxHashMap<UnitIdx, Option<Arc<LineTable>>>,
    n_rows: usize,
}

impl LineTables {
    fn keep(&mut self, unit: UnitIdx, table: Option<Arc<LineTable>>) {
        // What a table takes besides its rows counts as so many.
        self.n_rows += 64 + table.as_ref().map_or(0, |table| table.rows.len());
        if self.n_rows > limit::MAX_CACHED_LINE_ROWS {
            *self = Self::default();
        }
        self.of_unit.insert(unit, table);
    }
}

/// The line table of one unit.
#[derive(Debug)]
pub(crate) struct LineTable {
    unit: Arc<ParsedUnit>,
    header: gimli::LineProgramHeader<Reader>,
    /// First address, file and line; by address.
    rows: Vec<LineRow>,
    /// Paths of files, each made once.
    paths: Mutex<FxHashMap<u32, Option<Arc<str>>>>,
}

/// Code from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LineRow {
    address: u64,
    /// True where a sequence ends: what follows is of none.
    is_end: bool,
    /// The compiler recommends it for a breakpoint: the statement begins here (`is_stmt`).
    is_statement: bool,
    /// From 1 on; 0 where it is not told, or beyond what fits.
    column: u16,
    file: u32,
    line: u32,
}

/// A row of the line table, as far as it is told of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LineMark {
    pub(super) file: u32,
    /// 0 where the compiler names none.
    pub(super) line: u32,
    pub(super) column: u16,
    pub(super) is_statement: bool,
}

impl LineTable {
    fn read(unit: Arc<ParsedUnit>) -> Option<Self> {
        let mut program = unit.line_program()?.rows();
        let mut rows: Vec<LineRow> = Vec::new();
        let mut begins = 0;
        // Damage ends the table: what it had before stays.
        while let Ok(Some((_, row))) = program.next_row() {
            let found = LineRow {
                address: row.address(),
                is_end: row.end_sequence(),
                is_statement: row.is_stmt(),
                column: match row.column() {
                    gimli::ColumnType::LeftEdge => 0,
                    gimli::ColumnType::Column(column) => u16::try_from(column.get()).unwrap_or(0),
                },
                file: u32::try_from(row.file_index()).unwrap_or(u32::MAX),
                line: row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0)),
            };
            match rows[begins..].last_mut() {
                // Of several lines of one address the last one is meant.
                Some(last) if last.address == found.address => {
                    // A statement begins there even if another row says more of the same line.
                    let is_same = (last.file, last.line) == (found.file, found.line);
                    let is_statement = found.is_statement || is_same && last.is_statement;
                    *last = LineRow { is_statement, ..found };
                }
                _ => rows.push(found),
            }
            if found.is_end {
                // A function that the linker left out begins at 0.
                if rows.get(begins).is_some_and(|first| first.address == 0) {
                    rows.truncate(begins);
                }
                begins = rows.len();
            }
            if rows.len() >= limit::MAX_LINE_ROWS {
                break;
            }
        }
        if rows.len() > begins {
            // Broken off: what comes after the last row has no line.
            match rows[begins] {
                LineRow { address: 0, .. } => rows.truncate(begins),
                _ => rows.extend(rows.last().map(|last| LineRow {
                    address: last.address.saturating_add(1),
                    is_end: true,
                    ..*last
                })),
            }
        }
        rows.sort_by_key(|row| (row.address, !row.is_end));
        rows.shrink_to_fit();
        let header = program.header().clone();
        Some(Self { unit, header, rows, paths: Mutex::default() })
    }

    /// The file and line of the code at `svma`.
    fn at(&self, svma: Svma) -> Option<(u32, u32)> {
        let mark = self.mark_at(svma)?;
        (mark.line != 0).then_some((mark.file, mark.line))
    }

    /// The row of the code at `svma`, also where it names no line.
    pub(super) fn mark_at(&self, svma: Svma) -> Option<LineMark> {
        let end = self.rows.partition_point(|row| row.address <= svma.0);
        let LineRow { is_end, is_statement, column, file, line, .. } = *self.rows[..end].last()?;
        (!is_end).then_some(LineMark { file, line, column, is_statement })
    }

    /// The path of a file by its number.
    pub(super) fn path(&self, file: u32) -> Option<Arc<str>> {
        let mut paths = self.paths.lock().unwrap_or_else(PoisonError::into_inner);
        paths.entry(file).or_insert_with(|| self.read_path(file)).clone()
    }

    fn read_path(&self, file: u32) -> Option<Arc<str>> {
        let unit = &self.unit;
        let file = self.header.file(file.into())?;
        let text = |value: AttributeValue<Reader>| {
            bounded_string(&unit.dwarf.attr_string(&unit.unit, value).ok()?)
        };
        let name = text(file.path_name())?;
        if name.starts_with('/') {
            return Some(name);
        }
        let home = unit.unit.comp_dir.as_ref().and_then(bounded_string);
        // Up to version 4 the first directory is the one that the compiler worked in.
        let is_home = self.header.version() <= 4 && file.directory_index() == 0;
        let directory = match is_home {
            true => home.clone(),
            false => file.directory(&self.header).and_then(text),
        };
        let mut path = String::new();
        for part in [home.as_deref(), directory.as_deref(), Some(&name)].into_iter().flatten() {
            if part.starts_with('/') {
                path.clear();
            } else if !path.is_empty() && !path.ends_with('/') {
                path.push('/');
            }
            // What version 4 calls the first directory is home itself.
            if !(is_home && Some(part) == home.as_deref() && path.trim_end_matches('/') == part) {
                path.push_str(part);
            }
        }
        Some(path.into())
    }
}

/// A call that was put in line around an instruction.
#[derive(Clone, Debug)]
pub(super) struct InlinedCall {
    function: Option<Arc<str>>,
    file: Option<u32>,
    line: u32,
}

/// The lines of an instruction: its own, then those of the calls in line around it, outwards. `calls` come outermost
/// first.
pub(super) fn chained(
    table: &LineTable,
    (file, line): (u32, u32),
    outermost: Option<Arc<str>>,
    calls: Vec<InlinedCall>,
) -> Vec<SourceLine> {
    let path = |file: Option<u32>| file.and_then(|file| table.path(file));
    let mut lines = Vec::new();
    let mut place = (path(Some(file)), line);
    for call in calls.into_iter().rev() {
        let (own_path, own_line) = place;
        lines.push(SourceLine { function: call.function, path: own_path, line: own_line });
        place = (path(call.file), call.line);
    }
    lines.push(SourceLine { function: outermost, path: place.0, line: place.1 });
    lines
}

impl DebugInfo {
    /// The line of the instruction at `svma`, then the lines of the calls that were put in line around it, outwards;
    /// empty where no line is known.
    pub(crate) fn lines_at(&mut self, svma: Svma) -> Vec<SourceLine> {
        let Some(table) = self.line_table_at(svma) else { return Vec::new() };
        let Some(place) = table.at(svma) else { return Vec::new() };
        let (outermost, calls) = self.calls_in_line(svma).unwrap_or_default();
        chained(&table, place, outermost, calls)
    }

    pub(super) fn line_table_at(&mut self, svma: Svma) -> Option<Arc<LineTable>> {
        // The lines of split units are with their skeletons.
        let unit_idx = self.own_unit_at(svma)?;
        if let Some(known) = self.line_tables.of_unit.get(&unit_idx) {
            return known.clone();
        }
        let table = self.unit(unit_idx).and_then(LineTable::read).map(Arc::new);
        self.line_tables.keep(unit_idx, table.clone());
        table
    }

    /// The function at `svma`, and the calls in line around it, outermost first.
    fn calls_in_line(&mut self, svma: Svma) -> Option<(Option<Arc<str>>, Vec<InlinedCall>)> {
        let unit_idx = self.unit_of_code(svma)?;
        let unit = self.unit(unit_idx)?;
        let function = DieRef { unit: unit_idx, offset: unit.function_at(svma)? };
        let name = self.qualified_name(function);
        let mut calls = Vec::new();
        let Ok(mut walk) = unit.walk_from(function.offset) else { return Some((name, calls)) };
        if !matches!(walk.next(), Ok(Some(root)) if root.has_children) {
            return Some((name, calls));
        }
        let mut n_ranges_left = limit::MAX_FUNCTION_RANGES;
        // Depth of a call that does not hold the address: nothing in it does.
        let mut elsewhere = isize::MAX;
        while let Ok(Some(met)) =
            walk.next_where(|met| met.depth < 1 || met.tag == gimli::DW_TAG_inlined_subroutine)
            && met.depth >= 1
            && calls.len() < limit::MAX_INLINED_CALLS
        {
            if met.depth > elsewhere {
                continue;
            }
            elsewhere = isize::MAX;
            let Ok(entry) = unit.unit.entry(met.offset) else { break };
            let ranges = code_range::ranges(&unit.dwarf, &unit.unit, &entry, &mut n_ranges_left);
            if ranges.iter().any(|range| (range.begin..range.end).contains(&svma.0)) {
                calls.push(self.call_in_line(unit_idx, &entry));
            } else {
                elsewhere = met.depth;
            }
        }
        Some((name, calls))
    }

    pub(super) fn call_in_line(&mut self, unit: UnitIdx, entry: &Entry) -> InlinedCall {
        let origin = entry.attr_value(gimli::DW_AT_abstract_origin);
        let origin = origin.and_then(|origin| self.reference(unit, &origin));
        let number = |attribute| {
            let value = entry.attr_value(attribute)?;
            let number = match value {
                AttributeValue::FileIndex(file) => Some(file),
                other => other.udata_value(),
            };
            number.and_then(|number| u32::try_from(number).ok())
        };
        InlinedCall {
            function: origin.and_then(|origin| self.qualified_name(origin)),
            file: number(gimli::DW_AT_call_file),
            line: number(gimli::DW_AT_call_line).unwrap_or(0),
        }
    }
}
