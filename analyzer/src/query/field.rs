//! Fields of a sample of the history: names, kinds of value, and the values.

use crate::dwarf::code::line::SourceLine;
use crate::history::chunk::{Chunk, NONE};
use crate::history::data_name::DataName;
use crate::history::place::SampledPlace;
use crate::history::store::HistoryView;
use crate::history::task::Task;
use crate::history::telling::Bits as _;
use crate::types::scalar_notation::ScalarNotation;
use dataspace_proto::memory::{Access, MemorySegment, Region};
use dataspace_proto::record::NO_NODE;
use dataspace_proto::sample_line::{AddressSource, Evidence};
use std::borrow::Cow;

const SECOND_NS: u64 = 1_000_000_000;

/// ValueType of the values of a field or an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueType {
    /// `null` alone.
    None,
    Bool,
    Number,
    Text,
}

impl ValueType {
    /// For a person.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::None => "null",
            Self::Bool => "true or false",
            Self::Number => "a number",
            Self::Text => "a text",
        }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    None,
    Bool(bool),
    Number(i64),
    Text(Cow<'a, str>),
}

impl<'a> Value<'a> {
    fn text(text: Option<&'a str>) -> Self {
        text.map_or(Self::None, |text| Self::Text(Cow::Borrowed(text)))
    }
}

/// A small number of the sample that decides a field: of an entry in a table of the history, or a column's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Name,
    Place,
    Caller,
    Task,
    Event,
    Cpu,
    Access,
    Level,
    Evidence,
}

/// The form in which a field's numbers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Plain,
    /// An address, or a text that may be one.
    Hex,
}

macro_rules! fields {
    ($($field:ident = $name:literal, $kind:ident, $table:expr, $form:ident, $doc:literal;)*) => {
        /// A field of a sample.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Field {
            $(#[doc = $doc] $field,)*
        }

        impl Field {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$field,)*];

            /// Its name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$field => $name,)* }
            }

            /// Its meaning, for a person.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$field => $doc,)* }
            }

            pub(crate) const fn kind(self) -> ValueType {
                match self { $(Self::$field => ValueType::$kind,)* }
            }

            pub(crate) const fn table(self) -> Option<Column> {
                match self { $(Self::$field => $table,)* }
            }

            pub(crate) const fn form(self) -> Notation {
                match self { $(Self::$field => Notation::$form,)* }
            }
        }
    };
}

fields! {
    Object = "object", Text, Some(Column::Name), Plain, "The finest data object, as its descriptor.";
    Name = "name", Text, Some(Column::Name), Plain, "The same as a programmer writes it: order.next.";
    Aggregate = "aggregate", Text, Some(Column::Name), Plain, "The outermost object around it.";
    Member = "member", Text, Some(Column::Name), Plain, "The member, dotted: pos.x.";
    Type = "type", Text, Some(Column::Name), Plain, "The outermost named type.";
    Variable = "variable", Text, Some(Column::Name), Plain, "The variable, where the object was reached by its name.";
    Reason = "reason", Text, Some(Column::Name), Plain, "The reason that there is no object.";
    Function = "function", Text, Some(Column::Place), Plain, "The function that was interrupted.";
    Caller = "caller", Text, Some(Column::Caller), Plain, "The function that called it, where the sampled stack tells it.";
    CallerLine = "caller_line", Text, Some(Column::Caller), Plain, "The source line of that call: PATH:LINE.";
    Unit = "unit", Text, Some(Column::Place), Plain, "The compilation unit.";
    Module = "module", Text, Some(Column::Place), Plain, "The load object of that function, by its path.";
    Instruction = "instruction", Text, Some(Column::Place), Plain, "The trigger: module and address in its file.";
    Line = "line", Text, Some(Column::Place), Plain, "The source line of the trigger: PATH:LINE.";
    Inlined = "inlined", Text, Some(Column::Place), Plain, "The lines of the calls around it that were put in line, outwards.";
    Process = "process", Number, Some(Column::Task), Plain, "The process, by its number.";
    Thread = "thread", Number, Some(Column::Task), Plain, "The thread, by its number.";
    Comm = "comm", Text, Some(Column::Task), Plain, "The thread's name.";
    Cgroup = "cgroup", Text, Some(Column::Task), Plain, "The control group, where the event samples it.";
    Cpu = "cpu", Number, Some(Column::Cpu), Plain, "The CPU.";
    Node = "node", Number, Some(Column::Cpu), Plain, "The NUMA node of the CPU.";
    Second = "second", Number, None, Plain, "The second since the session began.";
    Time = "time", Number, None, Plain, "Nanoseconds since the session began.";
    Event = "event", Text, Some(Column::Event), Plain, "The event.";
    Period = "period", Number, None, Plain, "Events that the sample stands for.";
    Memory = "memory", Bool, None, Plain, "False where the trigger touches no memory.";
    Access = "access", Text, Some(Column::Access), Plain, "load, store, load_store or prefetch.";
    Size = "size", Number, None, Plain, "Bytes that the trigger touches.";
    Old = "old", Text, None, Hex, "The value before the access, where registers tell it of a breakpoint.";
    New = "new", Text, None, Hex, "The value after the access, where registers tell it of a breakpoint.";
    Level = "level", Text, Some(Column::Level), Plain, "The level of memory that had the data.";
    Snoop = "snoop", Text, None, Plain, "The answer of other caches: hit, hitm.";
    Tlb = "tlb", Text, None, Plain, "The translation of the address: L1|L2 hit.";
    Locked = "locked", Bool, None, Plain, "True for a locked access.";
    Remote = "remote", Bool, None, Plain, "True where the data came from another node or socket.";
    Region = "region", Text, None, Plain, "The owner of the memory, on processors that tell it.";
    Latency = "latency", Number, None, Plain, "Core cycles of the access.";
    LatencyBucket = "latency_bucket", Text, None, Plain, "The same between powers of two: 64..127.";
    Evidence = "evidence", Text, Some(Column::Evidence), Plain, "What the object rests on: both, type, address, conflict.";
    Frequency = "frequency", Bool, None, Plain, "True where the trigger is the one that runs by far most often.";
    Address = "address", Number, None, Hex, "The data address.";
    Addr = "addr", Number, None, Hex, "The same, in short.";
    AddressSource = "address_source", Text, None, Plain, "sampled or computed.";
    Page = "page", Number, None, Hex, "The page of 4 KiB that the address is on.";
    LargePage = "page_2m", Number, None, Hex, "The page of 2 MiB that the address is on.";
    Cacheline = "cacheline", Number, None, Hex, "The line of 64 bytes that the address is on.";
    Segment = "segment", Text, None, Plain, "Kind of memory that the address is in: text, data, heap, stack, shared, file, anonymous.";
    Offset = "offset", Number, None, Plain, "The offset in the outermost aggregate.";
    Index = "index", Number, None, Plain, "The element of the array, where that is known.";
    Instance = "instance", Number, None, Hex, "Address minus offset: which of many objects.";
    Alignment = "alignment", Number, None, Plain, "The instance's offset in its line of 64 bytes.";
}

impl Field {
    /// The field of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|field| field.name() == name)
    }

    /// All names, for a person.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.iter().map(|field| field.name()).collect::<Vec<_>>().join(" ")
    }
}

/// One sample of a history.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At<'a> {
    pub(crate) view: &'a HistoryView,
    pub(crate) chunk: &'a Chunk,
    pub(crate) row: usize,
}

impl<'a> At<'a> {
    /// Another row of its chunk.
    #[inline]
    pub(crate) fn row(self, row: u16) -> Self {
        Self { row: row.into(), ..self }
    }

    /// The number by which it is in a table.
    #[inline]
    pub(crate) fn number(self, table: Column) -> u32 {
        match table {
            Column::Name => self.chunk.name[self.row],
            Column::Place => self.chunk.place[self.row],
            Column::Caller => self.chunk.caller[self.row],
            Column::Task => self.chunk.task[self.row],
            Column::Event => self.chunk.event[self.row].into(),
            Column::Cpu => self.chunk.cpu[self.row],
            Column::Access => self.access().pack(),
            Column::Level => self.chunk.told[self.row].get().level.pack(),
            Column::Evidence => self.chunk.found[self.row].get().evidence.pack(),
        }
    }

    /// The name of its data object, or the reason that it has none.
    pub(crate) fn name(self) -> Option<&'a DataName> {
        self.view.kept.names.get(self.chunk.name[self.row])
    }

    /// The place of its code.
    pub(crate) fn place(self) -> Option<&'a SampledPlace> {
        self.view.kept.places.get(self.chunk.place[self.row])
    }

    /// The place of the call that led there.
    fn caller(self) -> Option<&'a SampledPlace> {
        self.view.kept.places.get(self.chunk.caller[self.row])
    }

    /// Its thread.
    pub(crate) fn task(self) -> Option<&'a Task> {
        self.view.kept.tasks.get(self.chunk.task[self.row])
    }

    /// The data address, where it is known.
    pub(crate) fn address(self) -> Option<u64> {
        self.chunk.found[self.row].get().address_source.map(|_| self.chunk.addr[self.row])
    }

    /// The address of the outermost aggregate.
    pub(crate) fn instance(self) -> Option<u64> {
        let offset = known(self.chunk.offset[self.row])?;
        Some(self.address()?.wrapping_sub(u64::from(offset)))
    }

    fn node(self) -> Option<u16> {
        let cpu = known(self.chunk.cpu[self.row])? as usize;
        self.view.nodes.get(cpu).copied().filter(|node| *node != NO_NODE)
    }

    /// Nanoseconds on a CPU that it stands for, where its event is a clock.
    pub(crate) fn time_on_cpu_ns(self) -> u64 {
        let is_clock = self.view.clocks.get(usize::from(self.chunk.event[self.row]));
        if is_clock == Some(&true) { self.chunk.period[self.row] } else { 0 }
    }

    /// Tells whether its trigger touches memory, so far as that is known.
    pub(crate) fn is_memory(self) -> bool {
        self.chunk.name[self.row] != NONE
    }

    /// Reads and writes.
    pub(crate) fn access(self) -> Option<Access> {
        self.chunk.told[self.row].get().access.or(self.chunk.found[self.row].get().access)
    }

    /// The value of a field.
    pub(crate) fn value(self, field: Field) -> Value<'a> {
        match (field.kind(), field.table()) {
            (ValueType::Number, _) => self.number_of(field).map_or(Value::None, Value::Number),
            (_, Some(Column::Name)) => self.name().map_or(Value::None, |name| of_name(name, field)),
            (_, Some(Column::Place)) => self.place().map_or(Value::None, |it| of_place(it, field)),
            (_, Some(Column::Caller)) => {
                self.caller().map_or(Value::None, |call| of_call(call, field))
            }
            (_, Some(Column::Task)) => self.task().map_or(Value::None, |task| of_task(task, field)),
            _ => self.of_row(field),
        }
    }

    /// The value of a field that is a number. Addresses of the kernel are negative.
    #[inline]
    pub(crate) fn number_of(self, field: Field) -> Option<i64> {
        let (chunk, row) = (self.chunk, self.row);
        let since_ns = || chunk.time_ns[row].saturating_sub(self.view.first_ns);
        let id = |id: i32| u64::try_from(id).ok();
        let told = |number: u64| (number != 0).then_some(number);
        let number = match field {
            Field::Process => id(self.task()?.pid)?,
            Field::Thread => id(self.task()?.tid)?,
            Field::Cpu => known(chunk.cpu[row])?.into(),
            Field::Node => self.node()?.into(),
            Field::Second => since_ns() / SECOND_NS,
            Field::Time => since_ns(),
            Field::Period => chunk.period[row],
            Field::Size => told(chunk.size[row].into())?,
            Field::Latency => told(chunk.latency[row].into())?,
            Field::Address | Field::Addr => self.address()?,
            Field::Page => self.address()? & !0xfff,
            Field::LargePage => self.address()? & !0x1f_ffff,
            Field::Cacheline => self.address()? & !63,
            Field::Offset => known(chunk.offset[row])?.into(),
            Field::Index => known(chunk.index[row])?.into(),
            Field::Instance => self.instance()?,
            Field::Alignment => self.instance()? & 63,
            _ => return None,
        };
        Some(number as i64)
    }

    /// The text of a value of what the trigger touched.
    fn touched_value(self, value: Option<u64>) -> Value<'a> {
        let notation = self.name().map_or(ScalarNotation::DIGITS, |name| name.notation);
        let text = |value| notation.text(value, self.chunk.size[self.row].into());
        value.map_or(Value::None, |value| Value::Text(text(value).into()))
    }

    fn of_row(self, field: Field) -> Value<'a> {
        let (chunk, row) = (self.chunk, self.row);
        let (told, found) = (chunk.told[row].get(), chunk.found[row].get());
        match field {
            Field::Event => {
                Value::text(self.view.events.get(usize::from(chunk.event[row])).map(|it| &**it))
            }
            Field::Memory => Value::Bool(self.is_memory()),
            Field::Old => self.touched_value(chunk.change(row).before),
            Field::New => self.touched_value(chunk.change(row).after),
            Field::Access => Value::text(self.access().map(Access::name)),
            Field::Level => Value::text(told.level.map(|level| level.name())),
            Field::Snoop => told.snoop.text().map_or(Value::None, |it| Value::Text(it.into())),
            Field::Tlb => told.tlb.text().map_or(Value::None, |it| Value::Text(it.into())),
            Field::Locked => told.locked.map_or(Value::None, Value::Bool),
            Field::Remote => told.level.map_or(Value::None, |_| Value::Bool(told.is_remote)),
            Field::Segment => Value::text(found.segment.map(MemorySegment::name)),
            Field::Region => Value::text(told.region.map(Region::name)),
            Field::LatencyBucket => match u64::from(chunk.latency[row]).checked_ilog2() {
                Some(0) => Value::text(Some("1")),
                Some(log) => Value::Text(format!("{}..{}", 1u64 << log, (2u64 << log) - 1).into()),
                None => Value::None,
            },
            Field::Evidence => Value::text(found.evidence.map(Evidence::name)),
            Field::Frequency => Value::Bool(found.is_by_frequency),
            Field::AddressSource => Value::text(found.address_source.map(AddressSource::name)),
            _ => Value::None,
        }
    }
}

/// A number of a column that is not [`NONE`].
pub(crate) fn known(number: u32) -> Option<u32> {
    (number != NONE).then_some(number)
}

fn of_name(name: &DataName, field: Field) -> Value<'_> {
    match field {
        Field::Object => Value::text(Some(&name.object)),
        Field::Name => Value::text(Some(&name.name)),
        Field::Aggregate => Value::text(Some(&name.aggregate)),
        Field::Member => Value::text(name.member.as_deref()),
        Field::Type => Value::text(name.type_name.as_deref()),
        Field::Variable => Value::text(name.variable.as_deref()),
        Field::Reason => Value::text(name.reason.map(|reason| reason.name())),
        _ => Value::None,
    }
}

fn of_place(place: &SampledPlace, field: Field) -> Value<'_> {
    let scope = &place.scope;
    match field {
        Field::Function => Value::text(scope.function.as_deref()),
        Field::Unit => Value::text(scope.unit.as_deref()),
        Field::Module => Value::text(Some(&scope.object)),
        Field::Instruction => match &place.trigger {
            Some(it) => Value::Text(format!("{}+{:#x}", it.module, it.at.0).into()),
            None => Value::None,
        },
        Field::Line => place
            .lines
            .as_ref()
            .map_or(Value::None, |lines| of_lines(lines.get(..1).unwrap_or_default())),
        Field::Inlined => place.lines.as_ref().map_or(Value::None, |lines| {
            // The outermost is no call.
            of_lines(lines.get(1..).unwrap_or_default())
        }),
        _ => Value::None,
    }
}

fn of_call(call: &SampledPlace, field: Field) -> Value<'_> {
    match field {
        Field::Caller => Value::text(call.scope.function.as_deref()),
        _ => of_place(call, Field::Line),
    }
}

/// `PATH:LINE`, with ` < ` between the line and what is around it.
fn of_lines(lines: &[SourceLine]) -> Value<'_> {
    let shown = |line: &SourceLine| Some(format!("{}:{}", line.path.as_deref()?, line.line));
    let shown: Vec<String> = lines.iter().filter_map(shown).collect();
    if shown.is_empty() { Value::None } else { Value::Text(shown.join(" < ").into()) }
}

fn of_task(task: &Task, field: Field) -> Value<'_> {
    match field {
        Field::Comm => Value::text(task.comm.as_deref()),
        Field::Cgroup => Value::text(task.cgroup.as_deref()),
        _ => Value::None,
    }
}
