//! Rules of a crate's sources: order of its rooms, circles of files, names of types, first doc lines.
//!
//! Reads the sources as words, without a parser: comments, strings and tests are taken out, then paths that
//! begin with `crate`, `self`, `super`, a child module or an imported name are followed to the file that has
//! what they name, through re-exports too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Most files of one room that may import each other in a circle.
const MAX_CIRCLE: usize = 4;
/// Re-exports that one path is followed through.
const MAX_RE_EXPORTS: usize = 8;
/// Words that open a clause, not a phrase that names or tells.
const CLAUSE_WORDS: [&str; 11] =
    ["What", "Which", "How", "Where", "Who", "Whom", "Whose", "Whether", "Why", "That", "When"];

/// Path of a module from the crate's root, which is empty.
type Module = Vec<String>;

/// A crate's source files.
pub(crate) struct Sources {
    /// All modules: those with a file, and those inside of one.
    modules: BTreeMap<Module, Content>,
}

/// Contents of a module, without those of the modules inside it.
#[derive(Default)]
struct Content {
    /// Name of the file, if the module has one of its own.
    file: Option<String>,
    text: String,
    imports: Vec<Import>,
    /// Paths of two names or more outside of imports, with their lines.
    paths: Vec<(Vec<String>, usize)>,
    /// Names that stand outside of imports.
    names: BTreeSet<String>,
    /// Types that are declared here, outside of functions, with their lines.
    types: Vec<(String, usize)>,
    /// Contents of literals, with their lines.
    literals: Vec<(String, usize)>,
}

/// One name that a `use` brings in.
struct Import {
    path: Vec<String>,
    /// The name that it gets; `*` for all names.
    name: String,
    is_public: bool,
    line: usize,
}

/// An identifier, a literal, `::` or a sign.
#[derive(Clone)]
struct Word {
    text: String,
    line: usize,
}

impl Sources {
    /// Reads all files below a crate's `src`.
    pub(crate) fn read(src: &Path) -> Sources {
        let mut files = Vec::new();
        let mut folders = vec![src.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a source folder") {
                let path = entry.expect("a folder's entry").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let name = path.strip_prefix(src).expect("a path below src");
                    let text = fs::read_to_string(&path).expect("a source file");
                    files.push((name.to_string_lossy().into_owned(), text));
                }
            }
        }
        let files: Vec<_> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        Sources::of(&files)
    }

    /// Takes files by their names below `src` and their texts.
    pub(crate) fn of(files: &[(&str, &str)]) -> Sources {
        let mut modules = BTreeMap::new();
        let mut tests = BTreeSet::new();
        for (file, text) in files {
            let module = module_of(file);
            let (words, test_modules) = without_tests(words(text));
            tests.extend(test_modules.into_iter().map(|name| below(&module, &name)));
            let content = Content {
                file: Some((*file).to_owned()),
                text: (*text).to_owned(),
                ..Content::default()
            };
            modules.insert(module.clone(), content);
            Reader { words: &words, at: 0, module, modules: &mut modules }.read();
        }
        modules.retain(|module, _| {
            !(1..=module.len()).any(|n_names| tests.contains(&module[..n_names]))
        });
        Sources { modules }
    }

    /// Names of the files below `src`, with their texts.
    #[allow(dead_code, reason = "only one crate has a decoder to keep in its room")]
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.modules.values().filter_map(|content| Some((content.file.as_deref()?, &*content.text)))
    }

    /// Imports from rooms that stand above the importer's; `rooms` lists them from the lowest.
    ///
    /// A room is a module with all below it; of several that fit, the innermost is a file's room. The crate's root
    /// may import from all rooms and none from it.
    pub(crate) fn upward_imports(&self, rooms: &[&str]) -> Vec<String> {
        let mut wrong = Vec::new();
        for room in rooms {
            let module: Module = room.split("::").map(str::to_owned).collect();
            if !self.modules.contains_key(&module) {
                wrong.push(format!("there is no room {room}"));
            }
        }
        for (module, content) in &self.modules {
            if let (Some(file), None) = (&content.file, room_of(rooms, module))
                && !module.is_empty()
            {
                wrong.push(format!("{file} is in no room"));
            }
        }
        let mut seen = BTreeSet::new();
        for (from, to, line) in self.arrows() {
            if from.is_empty() || !seen.insert((from.clone(), to.clone())) {
                continue;
            }
            let (here, there) = (room_of(rooms, &from), room_of(rooms, &to));
            if to.is_empty() || there > here {
                let file = self.modules[&from].file.as_deref().unwrap_or_default();
                let to = if to.is_empty() { "the crate's root".to_owned() } else { to.join("::") };
                wrong.push(format!("{file}:{line} imports from {to}, which stands above"));
            }
        }
        wrong
    }

    /// Circles of more than four files.
    pub(crate) fn large_circles(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for circle in self.circles() {
            if circle.len() > MAX_CIRCLE {
                let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
                wrong.push(format!("{} files in a circle: {}", names.len(), names.join(", ")));
            }
        }
        wrong
    }

    /// Names that more than one type of the crate has.
    pub(crate) fn shared_type_names(&self) -> Vec<String> {
        let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (module, content) in &self.modules {
            for (name, line) in &content.types {
                let file = self.file_of(module);
                let file = self.modules[&file].file.as_deref().unwrap_or_default();
                places.entry(name).or_default().push(format!("{file}:{line}"));
            }
        }
        places.retain(|_, places| places.len() > 1);
        places.iter().map(|(name, places)| format!("{name}: {}", places.join(", "))).collect()
    }

    /// Literals outside of `room` that are, or begin, the path of a directory in `roots`, each as it is or without
    /// its first slash.
    pub(crate) fn paths_outside(&self, room: &str, roots: &[&str]) -> Vec<String> {
        let is_below = |text: &str, root: &str| {
            [root, root.trim_start_matches('/')].iter().any(|root| {
                text.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        let mut wrong = Vec::new();
        for (module, content) in &self.modules {
            if room_of(&[room], module).is_some() {
                continue;
            }
            let file = self.file_of(module);
            let file = self.modules[&file].file.as_deref().unwrap_or_default();
            let literals = content.literals.iter();
            let paths = literals.filter(|(text, _)| roots.iter().any(|root| is_below(text, root)));
            wrong.extend(paths.map(|(text, line)| format!("{file}:{line}: {text}")));
        }
        wrong
    }

    /// Doc comments whose first line opens with a relative clause or a question.
    pub(crate) fn clauses_for_titles(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for content in self.modules.values() {
            let file = content.file.as_deref().unwrap_or_default();
            let mut was_doc = false;
            for (line, text) in content.text.lines().map(str::trim_start).enumerate() {
                let doc = text.strip_prefix("///").or_else(|| text.strip_prefix("//!"));
                if let Some(doc) = doc.filter(|_| !was_doc) {
                    let first = doc
                        .split(|sign: char| !sign.is_alphanumeric())
                        .find(|word| !word.is_empty());
                    if first.is_some_and(|word| CLAUSE_WORDS.contains(&word)) {
                        wrong.push(format!("{file}:{}: {}", line + 1, doc.trim()));
                    }
                }
                was_doc = doc.is_some();
            }
        }
        wrong
    }

    /// Sets of files each of which imports from all others, on some way.
    pub(crate) fn circles(&self) -> Vec<BTreeSet<Module>> {
        let mut next: BTreeMap<Module, BTreeSet<Module>> = BTreeMap::new();
        for (from, to, _) in self.arrows() {
            next.entry(from).or_default().insert(to);
        }
        let reached = |start: &Module| {
            let mut reached = BTreeSet::new();
            let mut open = vec![start];
            while let Some(module) = open.pop() {
                for to in next.get(module).into_iter().flatten() {
                    if reached.insert(to.clone()) {
                        open.push(to);
                    }
                }
            }
            reached
        };
        let reach: BTreeMap<&Module, BTreeSet<Module>> =
            next.keys().map(|module| (module, reached(module))).collect();
        let mut circles = BTreeSet::new();
        for (module, to) in &reach {
            if to.contains(*module) {
                let circle = to
                    .iter()
                    .filter(|other| reach.get(other).is_some_and(|back| back.contains(*module)));
                circles.insert(circle.cloned().collect::<BTreeSet<Module>>());
            }
        }
        circles.into_iter().collect()
    }

    /// Imports between files: who, from whom, in which line.
    fn arrows(&self) -> Vec<(Module, Module, usize)> {
        let mut arrows = Vec::new();
        for (module, content) in &self.modules {
            let from = self.file_of(module);
            let imports = content.imports.iter().filter(|import| {
                // A parent that hands on what its children have does not need it by that.
                let to = self.resolve(module, &import.path, MAX_RE_EXPORTS);
                let is_handed_on = import.is_public
                    && to.is_some_and(|to| to.len() > from.len() && to.starts_with(&from));
                !is_handed_on || content.names.contains(&import.name)
            });
            let imports = imports.map(|import| (&import.path, import.line));
            let paths = content.paths.iter().map(|(path, line)| (path, *line));
            for (path, line) in imports.chain(paths) {
                if let Some(to) = self.resolve(module, path, MAX_RE_EXPORTS) {
                    let to = self.file_of(&to);
                    if to != from {
                        arrows.push((from.clone(), to, line));
                    }
                }
            }
        }
        arrows
    }

    /// Follows a path to the module that has what it names; none for what is outside the crate.
    fn resolve(&self, module: &[String], path: &[String], n_left: usize) -> Option<Module> {
        let n_left = n_left.checked_sub(1)?;
        let mut here = module.to_vec();
        let mut names = path;
        match path.first()?.as_str() {
            "crate" => (here, names) = (Module::new(), &path[1..]),
            "self" => names = &path[1..],
            "super" => {
                while names.first().is_some_and(|name| name == "super") {
                    here.pop();
                    names = &names[1..];
                }
            }
            first if self.modules.contains_key(&below(module, first)) => {}
            first => {
                let import = self.import(module, first).filter(|import| import.path != path)?;
                let path = [&import.path, &path[1..]].concat();
                return self.resolve(module, &path, n_left);
            }
        }
        while let Some((name, rest)) = names.split_first() {
            let child = below(&here, name);
            if self.modules.contains_key(&child) {
                (here, names) = (child, rest);
                continue;
            }
            if let Some(import) = self.import(&here, name) {
                let path = [&import.path, rest].concat();
                return self.resolve(&here, &path, n_left).or(Some(here));
            }
            return Some(here);
        }
        Some(here)
    }

    /// The import that brings a name into a module by that name.
    fn import(&self, module: &[String], name: &str) -> Option<&Import> {
        self.modules.get(module)?.imports.iter().find(|import| import.name == name)
    }

    /// The module whose file a module is in.
    fn file_of(&self, module: &[String]) -> Module {
        let mut module = module.to_vec();
        while self.modules.get(&module).is_some_and(|content| content.file.is_none()) {
            module.pop();
        }
        module
    }
}

/// The number of the innermost room that a module is in.
fn room_of(rooms: &[&str], module: &[String]) -> Option<usize> {
    let is_in = |room: &str| {
        let names: Vec<&str> = room.split("::").collect();
        module.len() >= names.len() && names.iter().zip(module).all(|(name, other)| name == other)
    };
    (0..rooms.len())
        .filter(|&room| is_in(rooms[room]))
        .max_by_key(|&room| rooms[room].split("::").count())
}

/// A child of a module.
fn below(module: &[String], name: &str) -> Module {
    let mut module = module.to_vec();
    module.push(name.to_owned());
    module
}

/// The module that a file below `src` has.
fn module_of(file: &str) -> Module {
    let mut names: Module = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if names.last().is_some_and(|name| name == "mod") || names == ["lib"] || names == ["main"] {
        names.pop();
    }
    names
}

/// A walk over the words of one file.
struct Reader<'a> {
    words: &'a [Word],
    at: usize,
    module: Module,
    modules: &'a mut BTreeMap<Module, Content>,
}

impl Reader<'_> {
    fn read(mut self) {
        // Depths in brackets: here, of the modules inside which we are, of a function, a trait or an `impl`.
        let mut depth = 0;
        let mut inner = Vec::new();
        let mut closed: Option<usize> = None;
        while self.at < self.words.len() {
            match self.text(0) {
                "{" | "(" | "[" => depth += 1,
                ")" | "]" => depth -= 1,
                "}" => {
                    depth -= 1;
                    if inner.last() == Some(&depth) {
                        inner.pop();
                        self.module.pop();
                    }
                    closed = closed.filter(|&outer| outer != depth);
                }
                // A function that is only declared has no body.
                ";" => closed = closed.filter(|&outer| outer != depth),
                "mod" if self.text(2) == "{" => {
                    let name = self.text(1).to_owned();
                    self.module.push(name);
                    self.modules.entry(self.module.clone()).or_default();
                    inner.push(depth);
                    depth += 1;
                    self.at += 2;
                }
                "use" if self.text(1) != "<" => {
                    let is_public =
                        self.at > 0 && matches!(&*self.words[self.at - 1].text, "pub" | ")");
                    self.at += 1;
                    if self.text(0) != "::" {
                        self.read_imports(&[], is_public);
                    }
                }
                "struct" | "enum" | "union" | "trait" | "type"
                    if closed.is_none() && is_name(self.text(1)) =>
                {
                    let declared = (self.text(1).to_owned(), self.words[self.at].line);
                    self.content().types.push(declared);
                    if self.text(0) == "trait" {
                        closed = Some(depth);
                    }
                }
                "fn" if closed.is_none() && is_name(self.text(1)) => closed = Some(depth),
                "impl" if closed.is_none() => closed = Some(depth),
                name if is_name(name) => {
                    self.read_path();
                    continue;
                }
                literal if literal.starts_with(['"', '\'']) => {
                    let text = literal.trim_matches(['"', '#', '\'']).to_owned();
                    let line = self.words[self.at].line;
                    self.content().literals.push((text, line));
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// The tree of a `use`, from its first name to its end.
    fn read_imports(&mut self, before: &[String], is_public: bool) {
        let mut path = before.to_vec();
        let line = self.words[self.at.min(self.words.len() - 1)].line;
        loop {
            match self.text(0) {
                "{" => {
                    self.at += 1;
                    while !matches!(self.text(0), "}" | "") {
                        self.read_imports(&path, is_public);
                        if self.text(0) == "," {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    return;
                }
                "::" => self.at += 1,
                "self" if !before.is_empty() => self.at += 1,
                name if is_name(name) && name != "as" || name == "*" => {
                    path.push(name.to_owned());
                    self.at += 1;
                }
                _ => break,
            }
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if name == "*" {
            path.pop();
        }
        if self.text(0) == "as" {
            name = self.text(1).to_owned();
            self.at += 2;
        }
        self.content().imports.push(Import { path, name, is_public, line });
    }

    /// A name, with those that follow it after `::`.
    fn read_path(&mut self) {
        let first = self.at;
        let mut path = vec![self.text(0).to_owned()];
        while self.text(1) == "::" && is_name(self.text(2)) {
            path.push(self.text(2).to_owned());
            self.at += 2;
        }
        self.at += 1;
        let before = |n: usize| first.checked_sub(n).map_or("", |at| &*self.words[at].text);
        // `pub(in path)` says who may look, and a name after `::` or `.` begins no path.
        let is_scope = before(1) == "in" && before(2) == "(" && before(3) == "pub";
        let begins = !is_scope && !matches!(before(1), "::" | ".");
        self.content().names.extend(path.iter().cloned());
        if path.len() > 1 && begins {
            let line = self.words[first].line;
            self.content().paths.push((path, line));
        }
    }

    fn content(&mut self) -> &mut Content {
        self.modules.entry(self.module.clone()).or_default()
    }

    fn text(&self, ahead: usize) -> &str {
        self.words.get(self.at + ahead).map_or("", |word| &word.text)
    }
}

/// Tells names and keywords from signs and literals.
fn is_name(word: &str) -> bool {
    word.starts_with(|sign: char| sign == '_' || sign.is_alphabetic())
}

/// Takes out what only tests have; gives the modules that were declared there, whose files are tests too.
fn without_tests(words: Vec<Word>) -> (Vec<Word>, Vec<String>) {
    let text = |at: usize| words.get(at).map_or("", |word| &word.text);
    let (mut kept, mut modules, mut at) = (Vec::new(), Vec::new(), 0);
    while at < words.len() {
        let opens = if text(at + 1) == "!" { at + 2 } else { at + 1 };
        if text(at) != "#" || text(opens) != "[" {
            kept.push(words[at].clone());
            at += 1;
            continue;
        }
        let after = end_of_group(&words, opens);
        let attribute: String =
            words[opens + 1..after - 1].iter().map(|word| &*word.text).collect();
        let is_test = attribute == "test"
            || attribute.starts_with("cfg(test")
            || attribute.starts_with("cfg(all(test");
        at = after;
        if !is_test {
            continue;
        }
        if text(opens - 1) == "!" {
            // The whole file.
            return (Vec::new(), modules);
        }
        while text(at) == "#" {
            at = end_of_group(&words, at + 1);
        }
        // To the end of what stands after the attribute, or of what it stands in.
        while at < words.len() {
            match text(at) {
                ";" => break,
                "{" => {
                    at = end_of_group(&words, at) - 1;
                    break;
                }
                "(" | "[" => at = end_of_group(&words, at),
                "}" | ")" | "]" => {
                    at -= 1;
                    break;
                }
                "mod" if text(at + 2) == ";" => {
                    modules.push(text(at + 1).to_owned());
                    at += 1;
                }
                _ => at += 1,
            }
        }
        at += 1;
    }
    (kept, modules)
}

/// The place after the bracket that closes the one at `at`.
fn end_of_group(words: &[Word], mut at: usize) -> usize {
    let mut depth = 0;
    while at < words.len() {
        match &*words[at].text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            break;
        }
    }
    at
}

/// Words of a source, without comments and without what is in literals.
fn words(text: &str) -> Vec<Word> {
    let bytes = text.as_bytes();
    let byte = |at: usize| bytes.get(at).copied().unwrap_or_default();
    let is_part = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80;
    let mut words = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        let start = at;
        match byte(at) {
            b'/' if byte(at + 1) == b'/' => at += text[at..].find('\n').unwrap_or(text.len() - at),
            b'/' if byte(at + 1) == b'*' => at = end_of_comment(bytes, at),
            b'"' => at = end_of_string(bytes, at),
            b'\'' => {
                let after = text[at + 1..].chars().next().map_or(0, char::len_utf8);
                if byte(at + 1) == b'\\' || byte(at + 1 + after) == b'\'' {
                    at += 1 + after;
                    // A quote after a backslash does not end it.
                    at += usize::from(byte(at - 1) == b'\\');
                    at += text
                        .get(at..)
                        .and_then(|rest| rest.find('\''))
                        .map_or(1, |n_bytes| n_bytes + 1);
                } else {
                    at += 1;
                    while is_part(byte(at)) {
                        at += 1;
                    }
                }
            }
            b':' if byte(at + 1) == b':' => at += 2,
            first if is_part(first) => {
                while is_part(byte(at)) {
                    at += 1;
                }
                let n_signs = bytes[at..].iter().take_while(|&&byte| byte == b'#').count();
                let is_prefix = matches!(&text[start..at], "r" | "b" | "br" | "c" | "cr");
                if is_prefix && byte(at + n_signs) == b'"' {
                    let is_raw = text[start..at].contains('r');
                    if is_raw {
                        let end = format!("\"{}", "#".repeat(n_signs));
                        let rest = &text[at + n_signs + 1..];
                        let n_bytes = rest.find(&end).unwrap_or(rest.len());
                        at += n_signs + 1 + n_bytes + end.len();
                    } else {
                        at = end_of_string(bytes, at);
                    }
                }
            }
            _ => at += 1,
        }
        at = at.min(bytes.len());
        let word = &text[start..at];
        let is_comment = word.starts_with("//") || word.starts_with("/*");
        if !is_comment && !word.trim().is_empty() {
            // From its quote on: what is in a literal is nobody's name.
            let text = &word[word.find(['"', '\'']).unwrap_or(0)..];
            words.push(Word { text: text.to_owned(), line });
        }
        line += word.matches('\n').count();
    }
    words
}

/// The place after a string that begins at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += 1 + usize::from(bytes[at] == b'\\');
    }
    at + 1
}

/// The place after a comment that begins at `at`, and those inside it.
fn end_of_comment(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        match bytes.get(at..at + 2) {
            Some(b"/*") => (depth, at) = (depth + 1, at + 2),
            Some(b"*/") => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}
