//! The function that is meant: by its name, by a line, or as the one with the most samples.

use crate::exit::{Failure, Kind};
use crate::session::inspection::Inspector;
use crate::text::visible;
use dataspace_analyzer::bytes::file::{LoadObjectIdx, LoadObjectKey};
use dataspace_analyzer::history::store::HistoryView;
use dataspace_analyzer::index::code_listing::{AssemblySyntax, CodeListing, is_name_of};
use dataspace_analyzer::query::code_sums::{
    SampledFunction, SampledLine, sampled_functions, sampled_lines,
};
use dataspace_analyzer::query::selection::SampleFilter;
use dataspace_analyzer::types::similar_name::similar;
use dataspace_proto::address::Svma;
use dataspace_proto::reason::Reason;
use std::sync::Arc;

/// Functions of one name that are told apart.
const MAX_NAMESAKES: usize = 16;

/// Load objects in which a name is looked for where no sample was.
const MAX_SEARCHED_OBJECTS: usize = 64;

/// Functions and lines that are told where nothing is like what was asked for.
const MAX_TOLD: usize = 5;

/// Code that a person means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CodeSubject {
    /// The function of this name.
    Function(String),
    /// The function in which samples waited at this line.
    Line {
        /// The file, or the end of its path.
        file: String,
        /// The line.
        line: u32,
    },
    /// The function with the most samples.
    Hottest,
}

impl CodeSubject {
    /// Reads what was typed: `FUNCTION` or `FILE:LINE`.
    pub(crate) fn parse(text: &str) -> Self {
        let line = text.rsplit_once(':').and_then(|(file, line)| {
            let line = line.parse().ok()?;
            (!file.is_empty() && !file.ends_with(':')).then_some((file.to_owned(), line))
        });
        match line {
            Some((file, line)) => Self::Line { file, line },
            None => Self::Function(text.to_owned()),
        }
    }

    /// Tells whether source lines have to be known to find it.
    pub(crate) const fn has_line(&self) -> bool {
        matches!(self, Self::Line { .. })
    }
}

/// Another function that was meant, perhaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OtherFunction {
    /// Its name.
    pub(crate) name: Arc<str>,
    /// The path of its load object.
    pub(crate) module: String,
    /// Its first address there.
    pub(crate) at: Svma,
    /// Samples by which it was found.
    pub(crate) samples: u64,
}

/// A function that was found.
#[derive(Clone, Debug)]
pub(crate) struct FoundFunction {
    /// Its load object.
    pub(crate) object: LoadObjectIdx,
    /// The key to open that by.
    pub(crate) key: Arc<LoadObjectKey>,
    /// Its code.
    pub(crate) listing: CodeListing,
    /// Other functions that were meant, perhaps: with fewer samples.
    pub(crate) others: Vec<OtherFunction>,
}

/// A function while others are found.
struct Candidate {
    object: LoadObjectIdx,
    key: Arc<LoadObjectKey>,
    listing: CodeListing,
    samples: u64,
}

impl Candidate {
    fn holds(&self, object: LoadObjectIdx, at: Svma) -> bool {
        self.object == object && self.listing.parts.iter().any(|part| part.contains(&at.0))
    }

    fn other(&self, typed: &str) -> OtherFunction {
        let name = self.listing.name.clone().unwrap_or_else(|| typed.into());
        let first = self.listing.parts.first().map_or(0, |part| part.start);
        let module = self.key.path_text().into_owned();
        OtherFunction { name, module, at: Svma(first), samples: self.samples }
    }
}

/// A search for one function.
pub(crate) struct CodeSearch<'a> {
    /// The samples.
    pub(crate) history: &'a HistoryView,
    /// Those that count.
    pub(crate) filter: Option<&'a SampleFilter>,
    /// The index that is asked about code.
    pub(crate) inspector: &'a mut Inspector,
    /// Syntax in which code is written.
    pub(crate) syntax: AssemblySyntax,
}

impl CodeSearch<'_> {
    /// Finds what is meant.
    ///
    /// # Errors
    /// Where there is nothing of that name, or no sample at that line: with what is like it.
    pub(crate) fn find(&mut self, subject: &CodeSubject) -> Result<FoundFunction, Failure> {
        let functions = sampled_functions(self.history, self.filter);
        match subject {
            CodeSubject::Function(name) => self.by_name(name, &functions),
            CodeSubject::Line { file, line } => self.by_line(file, *line),
            CodeSubject::Hottest => {
                let hottest = functions.iter().find(|function| !function.addresses.is_empty());
                let Some(hottest) = hottest else {
                    let what = match self.filter {
                        Some(_) => "no sample in a function passes the filter",
                        None => "no sample was in a function that can be read",
                    };
                    return Err(Failure::new(Kind::Failed, what));
                };
                let places = hottest.addresses.iter().map(|(at, n)| (hottest.object, *at, *n));
                self.chosen(places.collect(), "")
            }
        }
    }

    fn by_name(
        &mut self,
        name: &str,
        functions: &[SampledFunction],
    ) -> Result<FoundFunction, Failure> {
        let named = |function: &&SampledFunction, is_it: &dyn Fn(&str) -> bool| {
            function.name.as_deref().is_some_and(is_it)
        };
        let exact: Vec<_> = functions.iter().filter(|it| named(it, &|of| of == name)).collect();
        let found = match exact.is_empty() {
            true => functions.iter().filter(|it| named(it, &|of| is_name_of(name, of))).collect(),
            false => exact,
        };
        let places: Vec<_> = found
            .iter()
            .flat_map(|function| {
                function.addresses.iter().map(|(at, samples)| (function.object, *at, *samples))
            })
            .collect();
        if places.is_empty() {
            return self.without_samples(name, functions);
        }
        self.chosen(places, name)
    }

    /// The function around the place with the most samples, of all that the places are in.
    pub(crate) fn chosen(
        &mut self,
        mut places: Vec<(LoadObjectIdx, Svma, u64)>,
        typed: &str,
    ) -> Result<FoundFunction, Failure> {
        places.sort_by_key(|(_, _, samples)| std::cmp::Reverse(*samples));
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut failed = None;
        for (object, at, samples) in places {
            if let Some(known) = candidates.iter_mut().find(|it| it.holds(object, at)) {
                known.samples += samples;
                continue;
            }
            if candidates.len() >= MAX_NAMESAKES {
                continue;
            }
            match self.listing(object, at) {
                Ok((key, listing)) => {
                    candidates.push(Candidate { object, key, listing, samples });
                }
                Err(reason) => drop(failed.get_or_insert(reason)),
            }
        }
        candidates.sort_by_key(|it| std::cmp::Reverse(it.samples));
        let mut candidates = candidates.into_iter();
        let Some(first) = candidates.next() else {
            return Err(unreadable(typed, failed.unwrap_or(Reason::MappingGone)));
        };
        let others = candidates.map(|it| it.other(typed)).collect();
        let Candidate { object, key, listing, .. } = first;
        Ok(FoundFunction { object, key, listing, others })
    }

    fn listing(
        &mut self,
        object: LoadObjectIdx,
        at: Svma,
    ) -> Result<(Arc<LoadObjectKey>, CodeListing), Reason> {
        let key = Arc::clone(self.history.load_object(object).ok_or(Reason::MappingGone)?);
        let listing = self.inspector.listing((object, &key), at, self.syntax)?;
        Ok((key, listing))
    }

    /// A function of that name in which no sample was, in one of the load objects that samples were in.
    fn without_samples(
        &mut self,
        name: &str,
        functions: &[SampledFunction],
    ) -> Result<FoundFunction, Failure> {
        let mut places = Vec::new();
        let mut like: Vec<Arc<str>> = Vec::new();
        for (object, key) in self.history.load_objects().into_iter().take(MAX_SEARCHED_OBJECTS) {
            let Ok(namesakes) = self.inspector.functions_named((object, &key), name) else {
                continue;
            };
            places.extend(namesakes.found.into_iter().map(|(_, at)| (object, at, 0)));
            like.extend(namesakes.similar);
        }
        if !places.is_empty() {
            return self.chosen(places, name);
        }
        let sampled = functions.iter().filter_map(|function| function.name.as_deref());
        let known = sampled.clone().chain(like.iter().map(|name| &**name));
        let near = similar(name, known);
        let what = format!("no function {} in what was sampled", visible(name));
        let failure = Failure::new(Kind::Failed, what);
        let list = |names: Vec<&str>| {
            names.into_iter().map(|name| visible(name).into_owned()).collect::<Vec<_>>().join(", ")
        };
        let mut hottest: Vec<&str> = Vec::new();
        for name in sampled {
            if hottest.len() < MAX_TOLD && !hottest.contains(&name) {
                hottest.push(name);
            }
        }
        Err(match (near.is_empty(), hottest.is_empty()) {
            (false, _) => failure.with_remedy(format!("did you mean {}?", list(near))),
            (true, false) => {
                failure.with_remedy(format!("functions with the most samples: {}", list(hottest)))
            }
            (true, true) => failure.with_remedy("there are no samples in functions"),
        })
    }

    fn by_line(&mut self, file: &str, line: u32) -> Result<FoundFunction, Failure> {
        let lines = sampled_lines(self.history, self.filter);
        let is_of_file = |it: &&SampledLine| is_path_of(file, &it.path);
        let at_line = lines.iter().filter(is_of_file).filter(|it| it.line == line);
        let places: Vec<_> = at_line.map(|it| (it.object, it.at, it.samples)).collect();
        let typed = format!("{file}:{line}");
        if !places.is_empty() {
            return self.chosen(places, &typed);
        }
        let what = format!("no sample waited at {}", visible(&typed));
        let mut near: Vec<u32> = lines.iter().filter(is_of_file).map(|it| it.line).collect();
        near.sort_by_key(|other| (other.abs_diff(line), *other));
        near.dedup();
        near.truncate(MAX_TOLD);
        near.sort_unstable();
        let failure = Failure::new(Kind::Failed, what);
        Err(if near.is_empty() {
            let mut files: Vec<&str> = Vec::new();
            for it in &lines {
                if files.len() < MAX_TOLD && !files.contains(&&*it.path) {
                    files.push(&it.path);
                }
            }
            let files: Vec<String> = files.iter().map(|it| visible(it).into_owned()).collect();
            match files.is_empty() {
                true => failure
                    .with_remedy("no lines are known of what was sampled: is it compiled with -g?"),
                false => failure
                    .with_remedy(format!("files with the most samples: {}", files.join(", "))),
            }
        } else {
            let near: Vec<String> = near.iter().map(ToString::to_string).collect();
            failure
                .with_remedy(format!("lines of it with samples, the nearest: {}", near.join(", ")))
        })
    }
}

/// Tells whether `typed` is the path, or the end of it from a directory on.
fn is_path_of(typed: &str, path: &str) -> bool {
    let before = path.strip_suffix(typed);
    before
        .is_some_and(|before| before.is_empty() || before.ends_with('/') || typed.starts_with('/'))
}

fn unreadable(typed: &str, reason: Reason) -> Failure {
    let name = if typed.is_empty() { "the function".into() } else { visible(typed) };
    Failure::new(Kind::Failed, format!("the code of {name} cannot be read: {}", reason.sentence()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_number_after_its_file_and_all_else_is_a_name() {
        let line = |file: &str, line| CodeSubject::Line { file: file.to_owned(), line };
        let name = |name: &str| CodeSubject::Function(name.to_owned());
        for (typed, expect) in [
            ("walk", name("walk")),
            ("list.c:12", line("list.c", 12)),
            ("/src/list.c:7", line("/src/list.c", 7)),
            ("shop::walk", name("shop::walk")),
            ("shop::7", name("shop::7")),
            (":7", name(":7")),
            ("list.c:x", name("list.c:x")),
            ("list.c:99999999999", name("list.c:99999999999")),
        ] {
            assert_eq!(CodeSubject::parse(typed), expect, "{typed}");
        }
    }

    #[test]
    fn the_end_of_a_path_names_it_from_a_directory_on() {
        let check = |typed, path, expect| assert_eq!(is_path_of(typed, path), expect, "{typed}");
        check("list.c", "/src/list.c", true);
        check("src/list.c", "/src/list.c", true);
        check("/src/list.c", "/src/list.c", true);
        check("ist.c", "/src/list.c", false);
        check("other/list.c", "/src/list.c", false);
    }
}
