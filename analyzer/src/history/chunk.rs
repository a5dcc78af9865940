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
    (
        @varying $($(#[$varying_doc:meta])* $varying:ident: $varying_type:ty,)*
        @often $($(#[$often_doc:meta])* $often:ident: $often_type:ty,)*
        @seldom $($(#[$seldom_doc:meta])* $seldom:ident: $seldom_type:ty,)*
    ) => {
        /// One sample.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Row {
            $($(#[$varying_doc])* pub(crate) $varying: $varying_type,)*
            $($(#[$often_doc])* pub(crate) $often: $often_type,)*
            $($(#[$seldom_doc])* pub(crate) $seldom: $seldom_type,)*
        }

        /// The columns of fields that differ in nearly every session, in one piece: no row asks where each of them lies and how
        /// long it is.
        #[derive(Clone, Copy, Debug)]
        struct VaryingColumns {
            $($varying: [$varying_type; CHUNK_ROWS],)*
        }

        impl Default for VaryingColumns {
            fn default() -> Self {
                Self { $($varying: [Default::default(); CHUNK_ROWS],)* }
            }
        }

        /// Some thousand samples, a column for each of their fields.
        #[derive(Clone, Debug)]
        pub(crate) struct Chunk {
            /// Rows that are there, the first of each column.
            len: usize,
            varying: Box<VaryingColumns>,
            changes: Changes,
            /// The one values of all fields that seldom change are those of all rows.
            is_plain: bool,
            $($often: RowValues<$often_type>,)*
            $($seldom: RowValues<$seldom_type>,)*
        }

        impl Default for Chunk {
            /// An empty one for the first rows.
            fn default() -> Self {
                Self {
                    len: 0,
                    varying: Box::default(),
                    changes: Changes::new(),
                    is_plain: true,
                    $($often: RowValues::default(),)*
                    $($seldom: RowValues::default(),)*
                }
            }
        }

        impl Chunk {
            /// Bytes of a full one without values before and after, where no field is the same in all rows.
            pub(crate) const BYTES: usize = size_of::<VaryingColumns>() + Self::SHARED_BYTES;

            /// Bytes of what all chunks of a history share: values of fields that are the same in all rows.
            pub(crate) const SHARED_BYTES: usize =
                CHUNK_ROWS * (0 $(+ size_of::<$often_type>())* $(+ size_of::<$seldom_type>())*);

            /// An empty one for the rows after those of another.
            pub(crate) fn after(last: &Self) -> Self {
                Self {
                    len: 0,
                    varying: Box::default(),
                    changes: Changes::new(),
                    is_plain: true,
                    $($often: RowValues::like(&last.$often),)*
                    $($seldom: RowValues::like(&last.$seldom),)*
                }
            }

            /// Takes all rows away, and keeps their room for those after `last`.
            pub(crate) fn renew(&mut self, last: &Self) {
                self.len = 0;
                self.changes.clear();
                $(self.$often.renew(&last.$often);)*
                $(self.$seldom.renew(&last.$seldom);)*
                self.is_plain = true $(&& self.$seldom.is_one())*;
            }

            /// Adds a row to one that has room for it. Put together elsewhere first, byte by byte, it would wait for
            /// itself when it is copied: so its fields go where they belong.
            #[inline]
            pub(crate) fn push(&mut self, row: Row) {
                let at = self.len;
                if at < CHUNK_ROWS {
                    $(self.varying.$varying[at] = row.$varying;)*
                    $(self.$often.set(at, row.$often);)*
                    if !(self.is_plain $(&& self.$seldom.one() == row.$seldom)*) {
                        self.is_plain = false;
                        $(self.$seldom.set(at, row.$seldom);)*
                    }
                    self.len = at + 1;
                }
            }

            $(
                $(#[$varying_doc])*
                #[inline]
                pub(crate) fn $varying(&self, row: usize) -> $varying_type {
                    self.varying.$varying[row]
                }
            )*

            $(
                $(#[$often_doc])*
                #[inline]
                pub(crate) fn $often(&self, row: usize) -> $often_type {
                    self.$often[row]
                }
            )*

            $(
                $(#[$seldom_doc])*
                #[inline]
                pub(crate) fn $seldom(&self, row: usize) -> $seldom_type {
                    self.$seldom[row]
                }
            )*

            /// Bytes that it takes.
            pub(crate) const fn bytes(&self) -> usize {
                let changes = self.changes.capacity() * size_of::<(u16, ValueChange)>();
                size_of::<VaryingColumns>() + changes $(+ self.$often.bytes())* $(+ self.$seldom.bytes())*
            }
        }
    };
}

/// Values before and after, of those rows that have some, by their numbers.
type Changes = Vec<(u16, ValueChange)>;

columns! {
    @varying
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
    /// Bytes that the trigger touches; 0 where it is not known.
    size: u16,
    found: PackedFound,
    @often
    /// Number of the task.
    task: u32,
    /// The CPU.
    cpu: u32,
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
        &self.varying.time_ns[..self.len]
    }
}

const _: () = assert!(Chunk::BYTES / CHUNK_ROWS <= 66, "a row is small");
