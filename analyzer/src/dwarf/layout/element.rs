//! The target of a pointer without a type of its own, told by the template it is a part of.

use crate::dwarf::debug_info::DebugInfo;
use crate::dwarf::layout::kept::InnerTypes;
use crate::known::{coroutine, hashbrown, libcxx, libstdcxx, rust_std};
use crate::limit;
use crate::types::die::DieRef;
use crate::types::layout::{Layout, ScalarKind, Shape, Step};
use crate::x86_64::abi::POINTER_BYTES;
use std::sync::Arc;

/// The target of a pointer whose own type does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PointerTarget {
    /// Values of this type, from the pointer on.
    Elements(DieRef),
    /// Values of this type *before* the pointer, the first one ending at it, and control bytes from
    /// it on: the table of Rust's `HashMap` (hashbrown's `RawTable`).
    Buckets(DieRef),
    /// A coroutine's frame, with a promise of this type after the pointers to its functions.
    Coroutine(DieRef),
    /// A node of this type, which begins with what the pointer is declared to lead to: the links of
    /// libstdc++'s containers.
    Node(DieRef),
}

impl DebugInfo {
    /// The target of the pointer at the end of `steps` in `root`, where its own type is bytes,
    /// nothing, or only the base of what is there. `None` where the types around it do not tell.
    pub(crate) fn contents(&mut self, root: &Layout, steps: &[Step]) -> Option<PointerTarget> {
        let (around, leaf) = way(root, steps);
        // `Vec<Cell>` keeps a `Unique<u8>`: the cell is only in the parameters of the RawVec around it.
        let held = |info: &mut Self| around.iter().rev().find_map(|part| info.held_by(part));
        let Some(pointee) = leaf.pointee else {
            return (leaf.shape == Shape::Scalar(ScalarKind::Pointer)).then(|| held(self))?;
        };
        let pointed = self.layout(pointee);
        match pointed.shape {
            Shape::Scalar(ScalarKind::Byte | ScalarKind::Opaque) => held(self),
            // `std::vector<cell>`'s `_M_start` is a `cell *`, like any pointer to one cell; in a vector
            // there are many.
            Shape::Aggregate { .. } if around.iter().any(|part| is_sequence(&part.name)) => {
                Some(PointerTarget::Elements(pointee))
            }
            Shape::Aggregate { .. } => {
                // `std::list<cell>` links by `_List_node_base *`: the node derives from it, and is found by
                // its parameter.
                let (mut parameters, mut named) = (Vec::new(), Vec::new());
                for part in around {
                    let types = self.inner_types(part);
                    parameters.extend(&types.parameters);
                    // gcc leaves the parameters of some templates out, but not their typedefs.
                    named.extend(&types.named);
                }
                let named: Vec<DieRef> =
                    named.into_iter().filter_map(|named| self.layout(named).die).collect();
                self.node_of(pointed.die?, &parameters, &named).map(PointerTarget::Node)
            }
            _ => None,
        }
    }

    /// The target of the untyped pointers in Rust's collections, `alloc::raw_vec::RawVec` and
    /// `hashbrown::raw::RawTable`, the copies of them that other crates have, and handles of coroutines.
    fn held_by(&mut self, part: &Layout) -> Option<PointerTarget> {
        let outer = part.name.split('<').next()?;
        let contents = match outer.rsplit("::").next()? {
            rust_std::RAW_VEC => PointerTarget::Elements,
            hashbrown::RAW_TABLE => PointerTarget::Buckets,
            coroutine::HANDLE
                if outer.starts_with("std::") && part.size == u64::from(POINTER_BYTES) =>
            {
                let promise = self.inner_types(part).parameters.first().copied()?;
                let layout = self.layout(promise);
                return may_follow_pointers(&layout).then_some(PointerTarget::Coroutine(promise));
            }
            _ => return None,
        };
        self.inner_types(part).parameters.first().copied().map(contents)
    }

    /// Tells whether the first type that a template is made for is one that another is made for too, as with
    /// a table and its nodes.
    pub(crate) fn shares_parameter(&mut self, part: &Layout, other: &Layout) -> bool {
        let first = self.inner_types(part).parameters.first().copied();
        let Some(first) = first.map(|first| self.layout(first)) else { return false };
        let others = self.inner_types(other);
        others.parameters.iter().any(|other| self.layout(*other) == first)
    }

    /// The type that a template is made for, where that is one only.
    pub(crate) fn only_parameter(&mut self, part: &Layout) -> Option<DieRef> {
        let types = self.inner_types(part);
        match types.parameters[..] {
            [only] if types.n_parameters == 1 => Some(only),
            _ => None,
        }
    }

    /// The types that entries below an aggregate's own stand for.
    fn inner_types(&mut self, part: &Layout) -> Arc<InnerTypes> {
        let Some(die) = part.die else { return Arc::default() };
        if let Some(known) = self.inner_types.get(&die) {
            return known;
        }
        let mut types = InnerTypes::default();
        let is_wanted = |tag| is_parameter(tag) || tag == gimli::DW_TAG_typedef;
        self.for_each_child(die, is_wanted, |info, child| {
            types.n_parameters += usize::from(is_parameter(child.tag()));
            let found = match child.tag() {
                gimli::DW_TAG_template_type_parameter => &mut types.parameters,
                gimli::DW_TAG_typedef => &mut types.named,
                _ => return,
            };
            if found.len() < limit::MAX_TYPE_PARAMETERS {
                found.extend(info.target(die, child));
            }
        });
        self.inner_types.keep(die, Arc::new(types))
    }
}

/// Tells whether an entry is for an argument of a template that is no value.
fn is_parameter(tag: gimli::DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_template_type_parameter
            | gimli::DW_TAG_GNU_template_template_param
            | gimli::DW_TAG_GNU_template_parameter_pack
    )
}

/// Tells whether a promise lies just after the two pointers that a coroutine's frame begins with: that it has no greater
/// alignment, which its size would be a multiple of.
fn may_follow_pointers(promise: &Layout) -> bool {
    promise.size != 0 && !promise.size.is_multiple_of(2 * coroutine::PROMISE_OFFSET.unsigned_abs())
}

/// Tells whether the pointers of a class lead to objects side by side: what `std::vector`, `std::deque`,
/// `std::span` and their iterators consist of in libstdc++ and libc++.
fn is_sequence(class: &str) -> bool {
    let mut known = libstdcxx::SEQUENCES.iter().chain(&libcxx::SEQUENCES);
    known.any(|known| class.starts_with(known))
}

/// The aggregates along the steps, outermost first, and what they end at.
fn way<'a>(root: &'a Layout, steps: &[Step]) -> (Vec<&'a Layout>, &'a Layout) {
    let (mut around, mut leaf) = (Vec::new(), root);
    for (_, part, member) in root.walk(steps) {
        around.extend(member.map(|_| leaf));
        leaf = part;
    }
    (around, leaf)
}

#[cfg(test)]
mod tests {
    use super::{DebugInfo, DieRef, PointerTarget};
    use crate::dwarf::sample::{entries, info};
    use crate::known::{hashbrown, language, rust_std};
    use crate::program::{Program, has_tool};
    use crate::types::data_object::{self, Root};
    use crate::types::descriptor::Spelling;
    use crate::types::layout::{Layout, Shape};
    use std::process::Command;
    use std::sync::Arc;

    /// The structure or class whose name begins so.
    fn find(info: &mut DebugInfo, name: &str) -> DieRef {
        let tags = [gimli::DW_TAG_structure_type, gimli::DW_TAG_class_type];
        let found = entries(info, &tags).into_iter().find(|die| {
            info.type_name(*die).is_some_and(|found| found.starts_with(name))
                && info.layout(*die).size != 0
        });
        found.unwrap_or_else(|| panic!("no type {name}"))
    }

    /// The target of each pointer of a type, by the pointer's member path.
    fn contents(info: &mut DebugInfo, name: &str) -> Vec<(String, String)> {
        let die = find(info, name);
        let layout = info.layout(die);
        let mut found = Vec::new();
        for offset in (0..layout.size).step_by(8) {
            let path = layout.descend(offset, 8).unwrap();
            let Some(contents) = info.contents(&layout, &path.steps) else { continue };
            let (object, _) = data_object::name(&layout, Root::Pointer("p"), offset, 8).unwrap();
            let (PointerTarget::Elements(of)
            | PointerTarget::Buckets(of)
            | PointerTarget::Coroutine(of)
            | PointerTarget::Node(of)) = contents;
            let sort = format!("{contents:?}").split('(').next().unwrap().to_owned();
            let of = Arc::clone(&info.layout(of).name);
            found.push((Spelling::of(&object).member.unwrap().to_string(), format!("{sort} {of}")));
        }
        found
    }

    fn rust() -> Option<Program> {
        let flags = "--edition 2024 --crate-name program -g";
        has_tool("rustc").then(|| Program::compile("rustc", "arms.rs", flags))
    }

    #[test]
    fn a_handle_leads_to_the_promise_that_it_is_made_for() {
        for compiler in ["g++", "clang++"].into_iter().filter(|it| has_tool(it)) {
            let program = Program::compile(compiler, "coroutine.cpp", "-std=c++20 -O1 -g");
            let info = &mut info(&program);
            let found = contents(info, "Numbers");
            let [(_, of)] = &found[..] else { panic!("{compiler}: {found:?}") };
            assert_eq!(of, "Coroutine Promise", "{compiler}");
        }
    }

    #[test]
    fn collections_of_rust_keep_their_type_behind_a_pointer_to_bytes() {
        let Some(program) = rust() else { return };
        let info = &mut info(&program);
        for (name, member, expected) in [
            ("alloc::vec::Vec<program::Item,", "buf.inner.ptr", "Elements program::Item"),
            (
                "alloc::collections::vec_deque::VecDeque<program::Item,",
                "buf.inner.ptr",
                "Elements program::Item",
            ),
            ("alloc::string::String", "vec.buf.inner.ptr", "Elements u8"),
            (
                "std::collections::hash::map::HashMap<u64, program::Item,",
                "base.table.table.ctrl",
                "Buckets (u64, program::Item)",
            ),
        ] {
            let found = contents(info, name);
            let [(path, of)] = &found[..] else { panic!("{name}: {found:?}") };
            assert!(path.starts_with(member), "{name}: {path}");
            assert_eq!(of, expected, "{name}");
        }
    }

    #[test]
    fn links_of_containers_lead_to_nodes_with_values() {
        for (compiler, flags) in
            [("g++", "-std=c++17 -g"), ("clang++", "-std=c++17 -g -fstandalone-debug")]
        {
            if !has_tool(compiler) {
                continue;
            }
            let program = Program::compile(compiler, "storage.cpp", flags);
            let info = &mut info(&program);
            for (name, member, node) in [
                ("std::_List_node<shop::Item>", "<base>._M_next", "std::_List_node<shop::Item>"),
                (
                    "std::_Rb_tree_node<std::pair<",
                    "<base>._M_left",
                    "std::_Rb_tree_node<std::pair<",
                ),
                ("std::_List_iterator<shop::Item>", "_M_node", "std::_List_node<shop::Item>"),
                (
                    "std::__detail::_Hash_node<std::pair<",
                    "<base>._M_nxt",
                    "std::__detail::_Hash_node<std::pair<",
                ),
            ] {
                let found = contents(info, name);
                let link = found.iter().find(|(path, _)| path.ends_with(member));
                let (_, of) = link.unwrap_or_else(|| panic!("{name} {compiler}: {found:?}"));
                assert!(of.starts_with(&format!("Node {node}")), "{name} {compiler}: {of}");
            }
        }
    }

    /// Tells whether each class has a pointer of each of these ends of names, and it leads to elements.
    fn check_sequences(program: &Program, classes: &[(&str, &[&str])]) {
        let info = &mut info(program);
        for (class, members) in classes {
            let found = contents(info, class);
            for member in *members {
                let is_it = |(path, _): &&(String, String)| path.ends_with(member);
                let of = found.iter().find(is_it).map(|(_, of)| of.as_str());
                assert_eq!(of, Some("Elements shop::Item"), "{class} {member}: {found:?}");
            }
        }
    }

    fn member_types(info: &mut DebugInfo, name: &str) -> Vec<Arc<Layout>> {
        let die = find(info, name);
        let layout = info.layout(die);
        let Shape::Aggregate { members, .. } = &layout.shape else { panic!("{layout:?}") };
        members.iter().map(|member| Arc::clone(&member.layout)).collect()
    }

    #[test]
    fn raw_bytes_and_pointers_to_nothing_are_told() {
        for compiler in ["g++", "clang++"] {
            if !has_tool(compiler) {
                continue;
            }
            let program = Program::compile(compiler, "sequences.cpp", "-std=c++20 -g");
            let members = member_types(&mut info(&program), "shop::Raw");
            assert_eq!(&*members[0].name, language::STD_BYTE, "{compiler}");
            let raw = members.iter().map(|it| it.expression.is_unsigned_character());
            let to_void = members.iter().map(|it| it.expression.leads_to_nothing());
            let told: Vec<(bool, bool)> = raw.zip(to_void).collect();
            let is_void = (false, true);
            let expected = [(false, false), (true, false), is_void, is_void, (false, false)];
            assert_eq!(told, expected, "{members:?} {compiler}");
        }
    }

    #[test]
    fn parts_of_collections_of_rust_are_what_tables_say() {
        let Some(program) = rust() else { return };
        let info = &mut info(&program);
        let group = find(info, "hashbrown::control::group::sse2::Group");
        assert_eq!(info.layout(group).size, u64::from(hashbrown::GROUP_BYTES));
        // An inner node is what has edges.
        let nodes = ["InternalNode<", "LeafNode<"].map(|node| {
            let die = find(info, &format!("alloc::collections::btree::node::{node}"));
            let layout = info.layout(die);
            let Shape::Aggregate { members, .. } = &layout.shape else { panic!("{layout:?}") };
            let has_edges = members.iter().any(|member| &*member.name == "edges");
            (has_edges, rust_std::is_inner_tree_node(&layout.name))
        });
        assert_eq!(nodes, [(true, true), (false, false)]);
    }

    #[test]
    fn pointers_of_sequences_of_libstdcxx_lead_to_elements() {
        for (compiler, flags) in
            [("g++", "-std=c++20 -g"), ("clang++", "-std=c++20 -g -fstandalone-debug")]
        {
            if !has_tool(compiler) {
                continue;
            }
            let program = Program::compile(compiler, "sequences.cpp", flags);
            let vector = ["_M_start", "_M_finish", "_M_end_of_storage"];
            check_sequences(
                &program,
                &[
                    ("std::vector<shop::Item,", &vector),
                    ("std::_Deque_iterator<shop::Item,", &["_M_cur", "_M_first", "_M_last"]),
                    ("__gnu_cxx::__normal_iterator<shop::Item", &["_M_current"]),
                    ("std::span<shop::Item,", &["_M_ptr"]),
                    ("std::initializer_list<shop::Item", &["_M_array"]),
                ],
            );
        }
    }

    #[test]
    fn pointers_of_sequences_of_libcxx_lead_to_elements() {
        let flags = "-std=c++20 -g -fstandalone-debug -stdlib=libc++";
        let mut probe = Command::new("clang++");
        probe.args(["-stdlib=libc++", "-xc++", "-include", "vector", "-fsyntax-only", "/dev/null"]);
        if !probe.output().is_ok_and(|probed| probed.status.success()) {
            eprintln!("skipped: libc++ is not installed");
            return;
        }
        check_sequences(
            &Program::compile("clang++", "sequences.cpp", flags),
            &[
                ("std::__1::vector<shop::Item,", &["__begin_", "__end_"]),
                ("std::__1::__wrap_iter<shop::Item", &["__i"]),
                ("std::__1::span<shop::Item,", &["__data"]),
                ("std::__1::__split_buffer<shop::Item,", &["__first_", "__begin_", "__end_"]),
            ],
        );
    }

    #[test]
    fn the_state_of_a_future_has_its_variables() {
        let Some(program) = rust() else { return };
        let info = &mut info(&program);
        let die = find(info, "program::walk::{async_fn_env#0}");
        let layout = info.layout(die);
        for (member, size) in [("x", 8), ("sum", 8), ("name", 8)] {
            let at = program.truth(&format!("&walk.{member}")) - program.truth("&walk");
            let (object, _) = data_object::name(&layout, Root::Pointer("f"), at, size).unwrap();
            let spelling = Spelling::of(&object);
            let named = spelling.member.iter().chain(spelling.candidates.iter());
            let is_there = named.into_iter().any(|path| path.split('.').any(|it| it == member));
            assert!(is_there, "{member} at {at}: {object:?}");
        }
    }
}
