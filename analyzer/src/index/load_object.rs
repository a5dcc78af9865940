//! One load object's index, which lives on a worker: opened by its key, asked about IPs and data
//! addresses.

use crate::bytes::file::{DebugFileQuery, FileBytes, FileSource, LoadObjectKey};
use crate::bytes::page::PageCache;
use crate::code::image::CodeImage;
use crate::code::outline::Evidence;
use crate::dataflow::{Carried, PointsTo};
use crate::dwarf::code::frame::FrameTable;
use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::unit::section::SectionFile;
use crate::dwarf::variable::index::DataFacts;
use crate::elf::data_symbol::DataPlace;
use crate::elf::image::{ElfImage, Segment};
use crate::elf::thread_block::ThreadBlock;
use crate::elf::thunk::Thunk;
use crate::index::call::CallCache;
use crate::index::called_code::CalledFunctions;
use crate::index::flow_cache::FlowCache;
use crate::index::pointer_pass::PointerPass;
use crate::index::question::{Answer, Question};
use crate::index::site::{
    LiveObject, Past, PlacedObject, Site, SiteQuery, Trigger, TypeAnswer, TypedAccess, VariableRole,
};
use crate::index::static_data::{DataRange, StaticData, of_section};
use crate::index::thread_access::{self, ThreadLink};
use crate::index::type_path::TypePath;
use crate::known::mangling;
use crate::limit;
use crate::types::value_kind::ValueKind;
use crate::x86_64::backtrack::{self, CodeSource, TriggerCode};
use crate::x86_64::edge::Entrances;
use crate::x86_64::function::FunctionCode;
use crate::x86_64::{access, address_use, bit_use};
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use dataspace_proto::record::FileIdentity;
use dataspace_proto::sample_line::Scope;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Facts of a load object that the analyzer needs before it can ask about its addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectFacts {
    /// `PT_LOAD` segments by address.
    pub segments: Vec<Segment>,
    /// The block of thread-local variables.
    pub thread: Option<ThreadBlock>,
    /// The build-id.
    pub build_id: Option<Box<[u8]>>,
    /// Debug information was found for it.
    pub has_debug: bool,
}

/// A load object and what has been read of it.
pub struct LoadObjectIndex {
    path: Arc<str>,
    pub(crate) code: CodeImage,
    pub(crate) debug: Option<DebugInfo>,
    pub(crate) frames: FrameTable,
    pub(super) functions: FxHashMap<Svma, Arc<FunctionCode>>,
    n_cached_instructions: usize,
    pub(crate) flows: FlowCache,
    pub(crate) call_cache: CallCache,
    pub(crate) called: CalledFunctions,
    /// Contents of places for pointers to nothing known, and the pass that finds them out.
    pub(crate) points_to: PointsTo,
    pub(crate) pointer_pass: PointerPass,
    /// The last question needs that.
    pub(crate) is_pass_wanted: bool,
}

impl LoadObjectIndex {
    /// Opens the load object of `key`, and its debug file where that is apart.
    ///
    /// # Errors
    /// The reason that every sample in it gets.
    pub fn open(key: &LoadObjectKey, source: &dyn FileSource) -> Result<Self, Reason> {
        Self::open_with(key, source, &Arc::default())
    }

    /// The same, with pages of files kept in `pages`.
    ///
    /// # Errors
    /// The reason that every sample in it gets.
    pub(crate) fn open_with(
        key: &LoadObjectKey,
        source: &dyn FileSource,
        pages: &Arc<PageCache>,
    ) -> Result<Self, Reason> {
        let file: Arc<dyn FileBytes> = Arc::from(source.load_object(key)?);
        let image = ElfImage::parse(file.as_ref())?;
        if let (FileIdentity::BuildId(mapped), Some(found)) = (&key.identity, &image.build_id)
            && !is_same_build(mapped, found)
        {
            // Of another mount namespace the file may be as it was, out of reach.
            let is_here = key.mount_namespace == 0;
            return Err(if is_here { Reason::ObjectChanged } else { Reason::ObjectMissing });
        }
        let query = debug_file_query(key, &image);
        let separate = match image.debug_section(".debug_info") {
            Some(_) => None,
            None => open_debug_file(&query, &image, source),
        };
        let companions = source.companions(&query);
        let sections = SectionFile::paged(Arc::clone(&file), Arc::clone(pages));
        let separate = separate.map(|(debug_image, debug_file)| {
            (debug_image, SectionFile::paged(Arc::from(debug_file), Arc::clone(pages)))
        });
        let separate_parts = separate.as_ref().map(|(image, file)| (image, file));
        let (debug_image, debug_file) = separate_parts.unwrap_or((&image, &sections));
        let debug = DebugInfo::load(debug_image, debug_file, pages, companions);
        let frames = FrameTable::load(&image, &sections, separate_parts);
        let mut image = image;
        let mut debug = debug;
        if let Some(debug) = &mut debug {
            debug.note_methods(&image.functions);
            debug.note_methods(separate.as_ref().map_or(&[], |(image, _)| &image.functions));
        }
        if let Some((debug_image, _)) = separate {
            image.extend_data(debug_image.data);
            if image.functions.is_empty() {
                image.set_functions(debug_image.functions);
            }
        }
        let mut index = Self {
            path: key.path_text().into(),
            code: CodeImage::new(file, image),
            debug,
            frames,
            functions: FxHashMap::default(),
            n_cached_instructions: 0,
            flows: FlowCache::default(),
            call_cache: CallCache::default(),
            called: CalledFunctions::default(),
            points_to: PointsTo::default(),
            pointer_pass: PointerPass::default(),
            is_pass_wanted: false,
        };
        index.limit_pass();
        index.describe_known(pages);
        if let Some(debug) = &mut index.debug {
            debug.set_data_facts(data_facts(&index.code));
        }
        Ok(index)
    }

    /// Gives up what can be worked out again in little time.
    pub(crate) fn evict_caches(&mut self) {
        self.functions = FxHashMap::default();
        self.n_cached_instructions = 0;
        self.flows = FlowCache::default();
        self.call_cache = CallCache::default();
        self.called = CalledFunctions::default();
        self.forget_pass_on_its_way();
        if let Some(debug) = &mut self.debug {
            debug.evict_caches();
        }
    }

    /// Returns what the analyzer must know first.
    #[must_use]
    pub fn facts(&self) -> ObjectFacts {
        let image = &self.code.image;
        ObjectFacts {
            segments: image.segments.clone(),
            thread: image.thread,
            build_id: image.build_id.clone().map(Into::into),
            has_debug: self.debug.is_some(),
        }
    }

    /// Tells whether debug information is at hand, of which each call reads some more.
    pub(crate) fn is_ready(&mut self) -> bool {
        self.begin_question();
        self.debug.as_mut().is_none_or(DebugInfo::is_ready)
    }

    /// The answer to a question, or that it takes another turn.
    #[must_use]
    pub fn answer(&mut self, question: Question) -> Answer {
        if !self.is_ready() {
            return Answer::Unfinished;
        }
        let answer = match question {
            Question::Open => Answer::Open(Arc::new(self.facts())),
            Question::Site(query) => Answer::Site(Box::new(self.site(query))),
            Question::Data(place) => Answer::Data(self.data(place)),
            Question::Call(behind) => Answer::Call(Arc::new(self.call_site(behind))),
            Question::CallForm(behind) => {
                Answer::CallForm(Arc::new(self.call_form(behind).unwrap_or_default()))
            }
            Question::WaysIn(start) => Answer::WaysIn(Arc::new(self.ways_in(start))),
            Question::Source(at) => Answer::Source(Arc::new(self.source_place(at))),
            // The names of code that is in no file are no business of this one's.
            Question::CodeNames(_) => Answer::CodeNames(None),
        };
        if self.is_unfinished() || self.goes_on_with_pass() {
            return Answer::Unfinished;
        }
        answer
    }

    /// Finds what is at a place in data, as far as one question may look through the debug information.
    #[must_use]
    pub fn data(&mut self, place: DataPlace) -> DataRange {
        self.begin_question();
        StaticData { code: &self.code, debug: self.debug.as_mut() }.at(place)
    }

    /// Finds what is known of a reported IP, as far as one question may look through the debug information.
    #[must_use]
    pub fn site(&mut self, query: SiteQuery) -> Site {
        self.begin_question();
        let scope = Arc::new(self.scope(query.ip));
        let outcome = self.past(query).map(Box::new);
        Site { scope, outcome }
    }

    /// The code around an instruction.
    pub(crate) fn scope(&mut self, at: Svma) -> Scope {
        let known = self.debug.as_mut().and_then(|debug| debug.function_scope_at(at));
        let mut scope = known.unwrap_or_default().scope(&self.path);
        if scope.function.is_none() {
            let symbol = self.code.image.function_at(at);
            scope.function = symbol.map(|function| Arc::clone(&function.name));
        }
        scope
    }

    pub(crate) fn is_unfinished(&self) -> bool {
        self.debug.as_ref().is_some_and(DebugInfo::is_unfinished)
    }

    pub(crate) const fn begin_question(&mut self) {
        self.is_pass_wanted = false;
        if let Some(debug) = &mut self.debug {
            debug.begin_question();
        }
    }

    fn past(&mut self, query: SiteQuery) -> Result<Past, Reason> {
        let (trail, triggers) = backtrack::trail(self, query.ip, query.skid)?;
        let triggers = triggers.into_iter().map(|code| self.trigger(code)).collect();
        let here = trail.nodes.first().filter(|_| trail.reach == 1);
        let entered = here.filter(|it| it.ways.is_empty() && it.entrances == Entrances::ENTRY);
        let entry = entered.map(|here| Box::new(self.entered(here.svma)));
        Ok(Past { trail, triggers, frame: self.frames.step_at(query.ip), entry })
    }

    /// The flow graph of the function around `svma`.
    ///
    /// # Errors
    /// `unverifiable` where nothing tells the function's bounds, `over_budget` for one too large.
    pub fn function(&mut self, svma: Svma) -> Result<Arc<FunctionCode>, Reason> {
        let debug = self.debug.as_mut();
        let mut evidence = Evidence { code: &self.code, frames: &self.frames, debug };
        let extent = evidence.extent(svma).ok_or(Reason::Unverifiable)?;
        if let Some(function) = self.functions.get(&extent.start) {
            return Ok(Arc::clone(function));
        }
        let outline = evidence.outline(extent)?;
        let function = Arc::new(FunctionCode::of(&outline, &self.code)?);
        if self.n_cached_instructions > limit::MAX_CACHED_INSTRUCTIONS {
            self.functions.clear();
            self.n_cached_instructions = 0;
        }
        self.n_cached_instructions += function.n_instructions();
        for part in &outline.parts {
            self.functions.insert(part.start, Arc::clone(&function));
        }
        Ok(function)
    }

    pub(crate) fn trigger(&mut self, (svma, mut memory): TriggerCode) -> Trigger {
        self.note_bits(svma, &mut memory);
        let accesses =
            if memory.is_empty() { Vec::new() } else { self.typed_accesses(svma, memory) };
        Trigger { svma, accesses }
    }

    /// The section of the table from which an instruction reads where a `switch` goes on: it has no other name, and the
    /// register that counts in it is often overwritten.
    fn jump_table(&mut self, svma: Svma, memory: &access::MemoryAccess) -> Option<TypeAnswer> {
        if memory.role != access::Role::Operand {
            return None;
        }
        let function = self.function(svma).ok()?;
        let table = function.jump_table(function.index_of(svma)?)?;
        let section = self.code.image.loaded_section(table).filter(|it| !it.is_writable)?;
        let (object, offset) = (of_section(section), table.offset_from(section.start)?);
        Some(TypeAnswer::Object(Arc::new(PlacedObject { object, offset })))
    }

    /// Notes which bits of its written-out operand an instruction uses, and what for.
    fn note_bits(&mut self, svma: Svma, memory: &mut [access::MemoryAccess]) {
        let Some(operand) = memory.first_mut().filter(|it| it.role == access::Role::Operand) else {
            return;
        };
        let Ok(function) = self.function(svma) else { return };
        let at = function.index_of(svma);
        operand.bits = at.and_then(|at| bit_use::used(&function, at));
        if at.is_some_and(|at| address_use::is_address(&function, at)) {
            operand.kind = ValueKind::Base;
        }
    }

    fn typed_accesses(
        &mut self,
        svma: Svma,
        memory: Vec<access::MemoryAccess>,
    ) -> Vec<TypedAccess> {
        let function = self.debug.as_mut().and_then(|debug| debug.function_at(svma));
        let frame = Arc::new(self.frame_slots(function.as_deref(), svma));
        let is_described = function.is_some_and(|function| function.unit_name.is_some())
            || Thunk::at(svma, &self.code.image).is_some();
        let mut flow = is_described.then(|| self.dataflow(svma)).flatten();
        let mut live: Option<Arc<Vec<LiveObject>>> = None;
        let mut typed = Vec::with_capacity(memory.len());
        let mut carried = None;
        for memory in memory {
            let mut live_here = Arc::default();
            let (mut variable, mut is_counted) = (VariableRole::Joined, false);
            let mut bytes = None;
            let answer = match (&mut self.debug, &mut flow) {
                (Some(debug), Some(flow)) => {
                    let image = &self.code;
                    let mut path = TypePath { debug, image, flow, svma, variable, is_counted };
                    let answer = path.answer(&memory);
                    (variable, is_counted) = (path.variable, path.is_counted);
                    if matches!(answer, TypeAnswer::Unknown(_)) {
                        // What is kept is worth more.
                        if memory.size > 1 && carried != Some(Carried::Kept) {
                            carried = path.carried(&memory).or(carried);
                        }
                        let live = live.get_or_insert_with(|| Arc::new(path.live_objects()));
                        live_here = Arc::clone(live);
                    }
                    if !matches!(answer, TypeAnswer::Object(_)) {
                        let known = path.bytes(&memory).or_else(|| path.taken_as(&memory));
                        bytes = known.or_else(|| path.element_after(&memory)).map(Arc::new);
                    }
                    answer
                }
                // The stack slot of a push is known without debug information.
                _ if memory.role == access::Role::StackSlot => {
                    TypeAnswer::Object(Arc::new(PlacedObject::stack()))
                }
                (Some(_), None) if is_described => TypeAnswer::Unknown(Reason::OverBudget),
                _ => TypeAnswer::Unknown(Reason::Unascertainable),
            };
            let thread_link = self.thread_link(svma, &memory);
            let debug = self.debug.as_mut();
            let by_link = thread_link.and_then(|link| link.answer(debug?, &memory));
            let answer = match by_link.unwrap_or(answer) {
                unknown @ TypeAnswer::Unknown(_) => {
                    self.jump_table(svma, &memory).unwrap_or(unknown)
                }
                answer => answer,
            };
            typed.push(TypedAccess {
                memory,
                answer,
                frame: Arc::clone(&frame),
                variable,
                is_counted,
                live: live_here,
                thread_link,
                bytes,
                handed: None,
            });
        }
        if let Some(flow) = flow {
            self.keep_dataflow(svma, flow);
        }
        self.is_pass_wanted |= carried.is_some_and(|it| self.is_worth_a_pass(svma, it));
        for access in &mut typed {
            if matches!(access.answer, TypeAnswer::Unknown(_)) {
                access.handed = self.handed(svma, &access.memory);
            }
        }
        typed
    }

    /// Finds what the code before an access tells of its base register and the thread's storage.
    fn thread_link(&mut self, svma: Svma, memory: &access::MemoryAccess) -> Option<ThreadLink> {
        self.code.image.thread?;
        let function = self.function(svma).ok()?;
        thread_access::link(&function, &self.code, svma, memory)
    }
}

impl CodeSource for LoadObjectIndex {
    fn function(&mut self, svma: Svma) -> Result<Arc<FunctionCode>, Reason> {
        Self::function(self, svma)
    }

    fn callers(&mut self, entry: Svma) -> Vec<Svma> {
        self.calls().to(entry).collect()
    }
}

/// Collects what the debug information must know of the rest of the file to tell which variables are there.
fn data_facts(code: &CodeImage) -> DataFacts {
    // The program may declare another of the names that the library gives the variable. What is mangled
    // is no name in a declaration.
    let (mut copied, mut copied_to) = (FxHashSet::default(), FxHashSet::default());
    for (place, name) in &code.linkage().copied {
        let alias = code.image.data.at(DataPlace::fixed(*place)).map(|alias| &alias.name);
        for name in alias.into_iter().chain([name]).filter(|name| !mangling::is_cpp(name)) {
            copied.insert(Arc::clone(name));
            copied_to.insert(*place);
        }
    }
    DataFacts {
        symbols: Arc::clone(&code.image.data),
        thread: code.image.thread,
        copied,
        copied_to,
        extent: code.image.extent(),
        of_linker: code.image.linker_sections().collect(),
    }
}

/// The kernel pads a build-id to 20 bytes in MMAP2; perf cuts or pads it too.
fn is_same_build(mapped: &[u8], found: &[u8]) -> bool {
    let n = mapped.len().min(found.len());
    let rest = |bytes: &[u8]| bytes[n..].iter().all(|byte| *byte == 0);
    n != 0 && mapped[..n] == found[..n] && rest(mapped) && rest(found)
}

fn debug_file_query(key: &LoadObjectKey, image: &ElfImage) -> DebugFileQuery {
    DebugFileQuery {
        path: Arc::clone(&key.path),
        build_id: image.build_id.clone(),
        debug_link: image.debug_link.as_ref().map(|(name, _)| name.clone()),
        pid: key.pid,
    }
}

/// The first file offered that really is the debug file: by build-id, else by checksum.
fn open_debug_file(
    query: &DebugFileQuery,
    image: &ElfImage,
    source: &dyn FileSource,
) -> Option<(ElfImage, Box<dyn FileBytes>)> {
    source.debug_files(query).into_iter().find_map(|file| {
        let found = ElfImage::parse(file.as_ref()).ok()?;
        let is_ours = match (&image.build_id, &found.build_id) {
            (Some(ours), Some(theirs)) => is_same_build(ours, theirs),
            _ => image
                .debug_link
                .as_ref()
                .is_some_and(|(_, crc)| checksum(file.as_ref()) == Some(*crc)),
        };
        (is_ours && found.debug_section(".debug_info").is_some()).then_some((found, file))
    })
}

/// CRC-32 of a whole file, as `.gnu_debuglink` holds it.
fn checksum(file: &dyn FileBytes) -> Option<u32> {
    if file.len() > limit::MAX_SECTION_BYTES {
        return None;
    }
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 1 << 16];
    let mut offset = 0;
    while offset < file.len() {
        let n = (file.len() - offset).min(buffer.len() as u64) as usize;
        file.read_exact_at(offset, &mut buffer[..n]).ok()?;
        hasher.update(&buffer[..n]);
        offset += n as u64;
    }
    Some(hasher.finalize())
}

impl std::fmt::Debug for LoadObjectIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoadObjectIndex").field("path", &self.path).finish_non_exhaustive()
    }
}
