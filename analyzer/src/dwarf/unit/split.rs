//! Split units: a skeleton in the file, the rest in a `.dwo` file or a package of them (DWARF 5
//! section 7.3; GNU's extension of DWARF 4).

use crate::bytes::file::{CompanionFiles, CompanionName};
use crate::bytes::page::PageCache;
use crate::dwarf::unit::package::{Package, PackagedUnit};
use crate::dwarf::unit::reader::{Dwarf, Reader};
use crate::dwarf::unit::section::{self, Loaded, Naming, SectionFile};
use crate::dwarf::unit::source::{self, ContainerIdx, MAIN, Sources, SplitLink};
use crate::elf::image::ElfImage;
use crate::limit;
use crate::types::die::UnitIdx;
use gimli::{DebugInfoOffset, DebugTypeSignature, Reader as _, UnitType};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// The way to the sections of a split unit.
#[derive(Clone, Debug)]
pub(crate) enum SplitOrigin {
    /// From the file of this name that holds the unit with this id.
    File { name: CompanionName, id: u64 },
    /// From the package.
    Packaged(PackagedUnit),
}

/// The files found that skeletons name.
#[derive(Debug)]
pub(crate) struct SplitFiles {
    companions: Box<dyn CompanionFiles>,
    pages: Arc<PageCache>,
    /// The container of each file; `None` where there is no such file.
    files: FxHashMap<CompanionName, Option<ContainerIdx>>,
    /// Units by container and id.
    ids: FxHashMap<(ContainerIdx, u64), UnitIdx>,
    package: Option<Package>,
    /// Number of times that a package may still be looked for.
    n_package_tries_left: usize,
    /// Containers whose sections are in memory, oldest first, and their lengths.
    kept: VecDeque<(ContainerIdx, u64)>,
    n_kept_bytes: u64,
    n_bytes_left: u64,
}

impl SplitFiles {
    pub(crate) fn new(companions: Box<dyn CompanionFiles>, pages: Arc<PageCache>) -> Self {
        Self {
            companions,
            pages,
            files: FxHashMap::default(),
            ids: FxHashMap::default(),
            package: None,
            n_package_tries_left: limit::MAX_PACKAGE_TRIES,
            kept: VecDeque::new(),
            n_kept_bytes: 0,
            n_bytes_left: limit::MAX_SPLIT_BYTES_READ,
        }
    }

    /// The sections of the first file called `name` that holds the unit with `id`: others are of
    /// another build.
    fn open(&mut self, name: &CompanionName, id: u64, main: &Dwarf) -> Option<Loaded> {
        for file in self.companions.open(name) {
            let Ok(image) = ElfImage::parse(file.as_ref()) else { continue };
            let left = self.n_bytes_left.checked_sub(section::n_bytes(&image));
            let Some(left) = left else {
                tracing::warn!("too many bytes of split units: the others are left out");
                return None;
            };
            self.n_bytes_left = left;
            let file = SectionFile::whole(file);
            let Some(mut loaded) = section::load(&image, &file, Naming::Split) else {
                continue;
            };
            loaded.dwarf.make_dwo(main);
            if dwo_ids(&loaded.dwarf).iter().any(|(found, _)| *found == id) {
                return Some(loaded);
            }
        }
        None
    }

    /// The package, opened when it is first asked for one of its units.
    fn package(&mut self, id: u64) -> Option<&mut Package> {
        if self.package.is_none() {
            self.n_package_tries_left = self.n_package_tries_left.checked_sub(1)?;
            let files = self.companions.open(&CompanionName::Package).into_iter();
            self.package = files
                .into_iter()
                .find_map(|file| Package::open(Arc::from(file), Arc::clone(&self.pages), id));
        }
        self.package.as_mut()
    }
}

impl Sources {
    /// Notes that a unit is a skeleton, if it is one.
    pub(crate) fn note_skeleton(&mut self, idx: UnitIdx, unit: &gimli::Unit<Reader>) {
        let names_a_file = || unit.dwo_name().is_ok_and(|name| name.is_some());
        let is_skeleton = match unit.header.type_() {
            UnitType::Skeleton(_) => true,
            UnitType::Compilation => unit.dwo_id.is_some() && names_a_file(),
            _ => false,
        };
        if is_skeleton && let Some(slot) = self.slots.get_mut(idx as usize) {
            slot.link = SplitLink::Unopened;
        }
    }

    /// The split unit of a skeleton, looked for now if it was not before; `None` for other units,
    /// and where it is missing.
    pub(crate) fn split_of(&mut self, skeleton: UnitIdx) -> Option<UnitIdx> {
        match self.slots.get(skeleton as usize)?.link {
            SplitLink::Split(found) => return Some(found),
            SplitLink::Unopened => {}
            SplitLink::None | SplitLink::Missing | SplitLink::Skeleton(_) => return None,
        }
        let found = self.find_split(skeleton);
        // Two skeletons of one split unit would each need addresses of their own.
        let found = found.filter(|found| {
            self.slots.get(*found as usize).is_some_and(|slot| slot.link == SplitLink::None)
        });
        let link = found.map_or(SplitLink::Missing, SplitLink::Split);
        self.slots.get_mut(skeleton as usize)?.link = link;
        self.slots.get_mut(found? as usize)?.link = SplitLink::Skeleton(skeleton);
        found
    }

    fn find_split(&mut self, skeleton: UnitIdx) -> Option<UnitIdx> {
        let (dwarf, unit) = self.root(skeleton)?;
        let id = unit.dwo_id?.0;
        if let Some(found) = self.packaged_unit(id, &dwarf) {
            return Some(found);
        }
        let name = file_name(&dwarf, &unit)?;
        let container = match self.split.files.get(&name) {
            Some(known) => *known,
            None => {
                let container = self.add_file(&name, id, &dwarf);
                if container.is_none() {
                    tracing::warn!(?name, "a split unit is missing");
                }
                self.split.files.insert(name, container);
                container
            }
        };
        self.split.ids.get(&(container?, id)).copied()
    }

    fn add_file(&mut self, name: &CompanionName, id: u64, main: &Dwarf) -> Option<ContainerIdx> {
        if self.split.files.len() >= limit::MAX_SPLIT_FILES {
            return None;
        }
        let Loaded { dwarf, n_bytes } = self.split.open(name, id, main)?;
        let ids = dwo_ids(&dwarf);
        let origin = source::SectionOrigin::Split(SplitOrigin::File { name: name.clone(), id });
        let container = self.add_split(origin, Arc::new(dwarf), n_bytes, usize::MAX)?;
        for (id, offset) in ids {
            if let Some(root) = self.entry_at(container, offset) {
                self.split.ids.entry((container, id)).or_insert(root.unit);
            }
        }
        Some(container)
    }

    /// Takes in the sections of split units, which may be dropped again.
    fn add_split(
        &mut self,
        origin: source::SectionOrigin,
        dwarf: Arc<Dwarf>,
        n_bytes: u64,
        max_units: usize,
    ) -> Option<ContainerIdx> {
        let container = self.add(origin, Arc::clone(&dwarf), max_units)?;
        self.keep(container, dwarf, n_bytes);
        Some(container)
    }

    /// Notes that a container's sections are in memory, and drops the oldest of the others until
    /// they fit.
    fn keep(&mut self, container: ContainerIdx, dwarf: Arc<Dwarf>, n_bytes: u64) {
        while self.split.kept.len() >= limit::MAX_SPLIT_FILES_KEPT
            || self.split.n_kept_bytes.saturating_add(n_bytes) > limit::MAX_SPLIT_BYTES_KEPT
        {
            let Some((oldest, n_bytes)) = self.split.kept.pop_front() else { break };
            self.split.n_kept_bytes -= n_bytes;
            self.forget(oldest);
        }
        self.split.kept.push_back((container, n_bytes));
        self.split.n_kept_bytes += n_bytes;
        if let Some(found) = self.containers.get_mut(container as usize) {
            found.dwarf = Some(dwarf);
        }
    }

    /// Reads the sections of a split unit again.
    pub(super) fn reload(
        &mut self,
        container: ContainerIdx,
        origin: &SplitOrigin,
    ) -> Option<Arc<Dwarf>> {
        let main = self.dwarf(MAIN)?;
        let Loaded { dwarf, n_bytes } = match origin {
            SplitOrigin::File { name, id } => self.split.open(name, *id, &main)?,
            SplitOrigin::Packaged(unit) => self.split.package.as_mut()?.unit(*unit, &main)?,
        };
        let dwarf = Arc::new(dwarf);
        self.keep(container, Arc::clone(&dwarf), n_bytes);
        Some(dwarf)
    }

    /// The unit with `id` in the package beside the file.
    fn packaged_unit(&mut self, id: u64, main: &Dwarf) -> Option<UnitIdx> {
        let unit = PackagedUnit::Code(id);
        if let Some(known) = self.split.package(id)?.known.get(&unit) {
            return *known;
        }
        let container = self.add_packaged(unit, main);
        let found = container.and_then(|container| Some(self.units_of(container)?.start));
        let found = found.filter(|found| {
            self.root(*found).is_some_and(|(_, unit)| unit.dwo_id.is_some_and(|its| its.0 == id))
        });
        self.split.package.as_mut()?.known.insert(unit, found);
        found
    }

    fn add_packaged(&mut self, unit: PackagedUnit, main: &Dwarf) -> Option<ContainerIdx> {
        let Loaded { dwarf, n_bytes } = self.split.package.as_mut()?.unit(unit, main)?;
        let origin = source::SectionOrigin::Split(SplitOrigin::Packaged(unit));
        // Each row is of one unit.
        self.add_split(origin, Arc::new(dwarf), n_bytes, 1)
    }

    /// The type unit with `signature` in the package, for split units only.
    pub(super) fn packaged_type_unit(&mut self, signature: DebugTypeSignature) -> Option<UnitIdx> {
        let main = self.dwarf(MAIN)?;
        let unit = PackagedUnit::Type(signature.0);
        if let Some(known) = self.split.package.as_ref()?.known.get(&unit) {
            return *known;
        }
        let container = self.add_packaged(unit, &main);
        let found = container.and_then(|container| self.type_unit(container, signature));
        self.split.package.as_mut()?.known.insert(unit, found);
        found
    }
}

/// The units of a `.dwo` file by their ids, which DWARF 4 has among the attributes.
fn dwo_ids(dwarf: &Dwarf) -> Vec<(u64, DebugInfoOffset)> {
    let mut found = Vec::new();
    let mut headers = dwarf.units();
    while let Some(header) =
        headers.next().ok().flatten().filter(|_| found.len() < limit::MAX_UNITS)
    {
        let Some(offset) = header.debug_info_offset() else { continue };
        let id = match header.type_() {
            UnitType::SplitCompilation(id) => Some(id),
            UnitType::Compilation => dwarf.unit(header).ok().and_then(|unit| unit.dwo_id),
            _ => None,
        };
        found.extend(id.map(|id| (id.0, offset)));
    }
    found
}

/// The name of the file that a skeleton says its other half is in.
fn file_name(dwarf: &Dwarf, skeleton: &gimli::Unit<Reader>) -> Option<CompanionName> {
    let name = dwarf.attr_string(skeleton, skeleton.dwo_name().ok()??).ok()?;
    let dir = skeleton.comp_dir.as_ref().and_then(path);
    Some(CompanionName::Split { name: path(&name)?, dir })
}

/// A path, unless it is longer than any that can be opened.
fn path(bytes: &Reader) -> Option<Arc<[u8]>> {
    let is_usable = !bytes.is_empty() && bytes.len() < limit::MAX_PATH_BYTES;
    is_usable.then(|| bytes.to_slice().ok()).flatten().map(|bytes| Arc::from(&*bytes))
}
