//! Some thousand samples, a column for each of their fields.

use crate::history::row_values::RowValues;
use crate::history::telling::{PackedFound, PackedTold};
use crate::x86_64::moved_value::ValueChange;

/// Samples of a full chunk: no power of two, or the ends of all columns would be in each other's way in the processor's
/// caches.
pub(crate) const CHUNK_ROWS: usize = 63 * 64;

/// Stands in a column of numbers for what a sample has not.
pub(crate) const NONE: u32 = u32::MAX;

macro_rules! columns {
    (@often $($(#[$doc:meta])* $field:ident: $type:ty,)* @seldom $($(#[$seldom_doc:meta])* $seldom:ident: $seldom_type:ty,)*) => {
        /// One sample.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Row {
            $($(#[$doc])* pub(crate) $field: $type,)*
            $($(#[$seldom_doc])* pub(crate) $seldom: $seldom_type,)*
        }

        /// Some thousand samples, a column for each of their fields.
        #[derive(Clone, Debug, Default)]
        pub(crate) struct Chunk {
            /// Rows that are there, the first of each column.
            len: usize,
            changes: Changes,
            /// The one values of all fields that seldom change are those of all rows.
            is_plain: bool,
            $(pub(crate) $field: RowValues<$type>,)*
            $(pub(crate) $seldom: RowValues<$seldom_type>,)*
        }

        impl Chunk {
            /// Bytes of a full one without values before and after, where no field is the same in all rows.
            pub(crate) const BYTES: usize = CHUNK_ROWS * (0 $(+ size_of::<$type>())* $(+ size_of::<$seldom_type>())*);

            /// An empty one for the rows after those of another.
            pub(crate) fn after(last: &Self) -> Self {
                Self {
                    len: 0,
                    changes: Changes::new(),
                    is_plain: true,
                    $($field: RowValues::like(&last.$field),)*
                    $($seldom: RowValues::like(&last.$seldom),)*
                }
            }

            /// Takes all rows away, and keeps their room for those after `last`.
            pub(crate) fn renew(&mut self, last: &Self) {
                self.len = 0;
                self.changes.clear();
                $(self.$field.renew(&last.$field);)*
                $(self.$seldom.renew(&last.$seldom);)*
                self.is_plain = true $(&& self.$seldom.is_one())*;
            }

            /// Adds a row to one that has room for it. Put together elsewhere first, byte by byte, it would wait for itself
            /// when it is copied: so its fields go where they belong.
            #[inline]
            pub(crate) fn push(&mut self, row: Row) {
                let at = self.len;
                if at < CHUNK_ROWS {
                    $(self.$field.set(at, row.$field);)*
                    if !(self.is_plain $(&& self.$seldom.one() == row.$seldom)*) {
                        self.is_plain = false;
                        $(self.$seldom.set(at, row.$seldom);)*
                    }
                    self.len = at + 1;
                }
            }

            /// Bytes that it takes.
            pub(crate) const fn bytes(&self) -> usize {
                let changes = self.changes.capacity() * size_of::<(u16, ValueChange)>();
                changes $(+ self.$field.bytes())* $(+ self.$seldom.bytes())*
            }
        }
    };
}

/// Values before and after, of those rows that have some, by their numbers.
type Changes = Vec<(u16, ValueChange)>;

columns! {
    @often
    /// Time, in the session's clock.
    time_ns: u64,
    /// The data address, where [`Found::address_source`](crate::history::telling::Found) tells that there is one.
    addr: u64,
    /// Number of the data object's name, or of its reason; [`NONE`] for a sample that touches no memory.
    name: u32,
    /// Offset in the outermost element.
    offset: u32,
    /// Number of the place in code.
    place: u32,
    /// Number of the task.
    task: u32,
    /// The CPU.
    cpu: u32,
    /// Bytes that the trigger touches; 0 where it is not known.
    size: u16,
    found: PackedFound,
    @seldom
    /// Events that it stands for.
    period: u64,
    /// Number of the element in the array.
    index: u32,
    /// Number of the place of the call that led there; [`NONE`] where it is not known.
    caller: u32,
    /// Latency in core cycles; 0 where it is not told.
    latency: u32,
    /// Number of the event.
    event: u16,
    told: PackedTold,
}

#[cfg(test)]
impl Chunk {
    /// All of `rows`, so many in each.
    pub(crate) fn of_rows(rows: &[Row], n_each: usize) -> Vec<std::sync::Arc<Self>> {
        let chunk = |rows: &[Row]| {
            let mut chunk = Self::default();
            rows.iter().for_each(|row| chunk.push(*row));
            chunk.into()
        };
        rows.chunks(n_each).map(chunk).collect()
    }
}

impl Chunk {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.len == CHUNK_ROWS
    }

    /// Keeps the values before and after the access of the last row.
    pub(crate) fn push_change(&mut self, change: ValueChange) {
        if let Some(row) = self.len.checked_sub(1) {
            self.changes.push((row as u16, change));
        }
    }

    /// The values before and after the access of a row.
    pub(crate) fn change(&self, row: usize) -> ValueChange {
        let found = self.changes.binary_search_by_key(&row, |(own, _)| usize::from(*own));
        found.map_or(ValueChange::UNKNOWN, |at| self.changes[at].1)
    }

    /// The times of its rows.
    pub(crate) fn times_ns(&self) -> &[u64] {
        &self.time_ns[..self.len]
    }
}

const _: () = assert!(Chunk::BYTES / CHUNK_ROWS <= 66, "a row is small");
