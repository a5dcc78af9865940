//! The answer for one sample, as `dataspace script` prints it. Programs read these keys: they keep their meaning.

use crate::memory::{Access, Level, Region};
use crate::reason::Reason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

named! {
    /// Kind of evidence that an attribution rests on.
    Evidence {
        /// Type path and address path agree.
        Both = "both";
        /// Only the type path answered.
        Type = "type";
        /// Only the address path answered.
        Address = "address";
        /// They disagree.
        Conflict = "conflict";
    }
}

named! {
    /// Source of the data address of an attribution.
    AddressSource {
        /// The sample carried it.
        Sampled = "sampled";
        /// Computed from the registers: no second witness, as it comes from the same trigger.
        Computed = "computed";
    }
}

/// Place where a function, or a data object, is declared.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Scope {
    /// Path of the load object.
    pub object: Arc<str>,
    /// Name of the compilation unit's source in the debug information.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<Arc<str>>,
    /// Name of the function.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub function: Option<Arc<str>>,
}

/// One sample and its answer. Every key is always there, `null` where there is nothing to say.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SampleLine {
    /// Time of the sample in nanoseconds, by the clock of the session or recording.
    pub time_ns: u64,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The CPU, where it was sampled.
    pub cpu: Option<u32>,
    /// Name of the event, as perf spells it.
    pub event: Arc<str>,
    /// Number of events that the sample stands for.
    pub period: u64,
    /// Address of the instruction that the kernel reported.
    #[serde(with = "hex")]
    pub ip: u64,
    /// Address of the instruction that caused the sample, where it was found.
    #[serde(with = "hex_option")]
    pub trigger: Option<u64>,
    /// Path of the load object that the trigger is in.
    #[serde(default)]
    pub module: Option<Arc<str>>,
    /// Address of the trigger in that file, as symbol tables count them and `addr2line` takes them.
    #[serde(default, with = "hex_option")]
    pub file_address: Option<u64>,
    /// Name of the function that the trigger is in, by its symbol.
    #[serde(default)]
    pub symbol: Option<Arc<str>>,
    /// Bytes from where that symbol begins.
    #[serde(default)]
    pub symbol_offset: Option<u64>,
    /// Path of the source file that the trigger comes from, as the compiler recorded it.
    #[serde(default)]
    pub file: Option<Arc<str>>,
    /// Its line there; 0 where the compiler names none.
    #[serde(default)]
    pub line: Option<u32>,
    /// Address of the data, in the process.
    #[serde(with = "hex_option")]
    pub addr: Option<u64>,
    /// Source of the data address.
    pub addr_source: Option<AddressSource>,
    /// Kind of access that the trigger makes.
    pub access: Option<Access>,
    /// Bytes that the trigger touches.
    pub size: Option<u32>,
    /// Value of these bytes before the access, where the registers of a breakpoint's sample tell it.
    #[serde(default)]
    pub old: Option<Arc<str>>,
    /// Their value after it.
    #[serde(default)]
    pub new: Option<Arc<str>>,
    /// Descriptor of the data object.
    pub object: Option<Arc<str>>,
    /// The same as a programmer writes it.
    #[serde(default)]
    pub name: Option<Arc<str>>,
    /// Place of the trigger in the program.
    pub scope: Option<Scope>,
    /// The outermost named type, or the variable's type.
    #[serde(rename = "type")]
    pub type_name: Option<Arc<str>>,
    /// Bytes into an object of this type; `None` where the touched part is not known.
    pub offset: Option<u64>,
    /// Dotted path of the member.
    pub member: Option<Arc<str>>,
    /// Dotted paths of the members that the access may mean, where a union or bit-fields leave it
    /// open; the object is then what is around them.
    #[serde(default)]
    pub candidates: Option<Arc<[Arc<str>]>>,
    /// The variable, if the object was reached by its name.
    pub variable: Option<Arc<str>>,
    /// The paths that the object rests on.
    pub evidence: Option<Evidence>,
    /// Reason that there is no object, or that a part of the answer is missing.
    pub reason: Option<Reason>,
    /// True if the trigger touches no memory.
    pub not_memory: bool,
    /// Core cycles that the data took to arrive, where the event tells that apart, else of the whole access.
    pub latency: Option<u64>,
    /// The level of memory that had the data.
    pub level: Option<Level>,
    /// The level that did not have the data, where none is told that had.
    #[serde(default)]
    pub missed_level: Option<Level>,
    /// Answer of other caches: `none`, `hit`, `miss`, `hitm`, `fwd`, `peer`; several with `|`.
    #[serde(default)]
    pub snoop: Option<Arc<str>>,
    /// Translation of the address: `L1 hit`, `L1|L2 hit`, `L2 miss`, `walker hit`.
    #[serde(default)]
    pub tlb: Option<Arc<str>>,
    /// True if the access was locked.
    #[serde(default)]
    pub locked: Option<bool>,
    /// The data came from another core's, node's or socket's side; `null` where no level is told.
    #[serde(default)]
    pub remote: Option<bool>,
    /// 0 another core of this node, 1 another node, 2 another socket, 3 another board.
    #[serde(default)]
    pub hops: Option<u8>,
    /// Part of an earlier store that it waited for: `data`, `address`, or both with `|`.
    #[serde(default)]
    pub blocked: Option<Arc<str>>,
    /// Owner of the memory or cache, on processors that tell it.
    #[serde(default)]
    pub region: Option<Region>,
    /// Core cycles from the instruction's start to its end.
    #[serde(default)]
    pub instruction_latency: Option<u16>,
    /// Core cycles since the instruction before retired.
    #[serde(default)]
    pub retire_latency: Option<u16>,
    /// Bytes of the page that the data is on.
    #[serde(default)]
    pub page_size: Option<u64>,
    /// Bytes of the page that the code is on.
    #[serde(default)]
    pub code_page_size: Option<u64>,
    /// Physical address of the data.
    #[serde(default, with = "hex_option")]
    pub phys_addr: Option<u64>,
    /// The number of the thread's control group.
    #[serde(default)]
    pub cgroup_id: Option<u64>,
    /// Its path, where that was told.
    #[serde(default)]
    pub cgroup: Option<Arc<str>>,
    /// Samples of typed instructions that say what lies at the address, where nothing else does.
    #[serde(default)]
    pub votes: Option<u32>,
    /// Number of calls further out to the function that knows the type, where the trigger's own does not.
    #[serde(default)]
    pub calls_out: Option<u8>,
    /// True if several instructions may have been the trigger, and this one runs by far most often.
    #[serde(default)]
    pub frequency: bool,
    /// Name of the thread, where it is known: the kernel's, when the sample was decided, which is at most a second
    /// after it was taken.
    #[serde(default)]
    pub comm: Option<Arc<str>>,
}

mod hex {
    //! `"0x401000"` as text.
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(value: &u64, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&format_args!("{value:#x}"))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
        let text = String::deserialize(from)?;
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16).map_err(D::Error::custom)
    }
}

mod hex_option {
    //! `"0x401000"` or `null`.
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Hex(#[serde(with = "super::hex")] u64);

    pub(super) fn serialize<S: Serializer>(value: &Option<u64>, to: S) -> Result<S::Ok, S::Error> {
        value.map(Hex).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
        Ok(Option::<Hex>::deserialize(from)?.map(|hex| hex.0))
    }
}
