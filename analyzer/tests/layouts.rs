//! What types look like: every part of a global is where the program says it is, and has its name.

use crate::support::program::{Program, has_tool};
use crate::support::session::TestFiles;
use dataspace_analyzer::bytes::file::LoadObjectKey;
use dataspace_analyzer::elf::data_symbol::DataPlace;
use dataspace_analyzer::index::load_object::LoadObjectIndex;
use dataspace_analyzer::index::static_data::Resident;
use dataspace_analyzer::types::data_object::{self, DataObject, Root};
use dataspace_analyzer::types::descriptor::Spelling;
use dataspace_analyzer::types::layout::Layout;
use dataspace_analyzer::types::value_kind::ValueKind;
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::record::FileIdentity;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

/// A program's globals, asked for by address.
struct Globals {
    program: Program,
    index: LoadObjectIndex,
    bias: u64,
}

impl Globals {
    fn of(program: Program, bias: u64) -> Self {
        let path = program.path.as_os_str().as_bytes().into();
        let key = LoadObjectKey {
            path,
            identity: FileIdentity::None,
            pid: 1,
            range: (Avma(0), Avma(0)),
            mount_namespace: 0,
        };
        let index = LoadObjectIndex::open(&key, &TestFiles::default()).unwrap();
        Self { program, index, bias }
    }

    fn compile(compiler: &str, name: &str, flags: &str) -> Self {
        let program = Program::compile(compiler, name, flags);
        let bias = program.bias();
        Self::of(program, bias)
    }

    /// The variable at what the program calls `key`, `more` bytes on, and how far in that is.
    fn variable(&mut self, key: &str, more: u64) -> (Arc<Layout>, Arc<str>, u64) {
        let svma = Svma(self.program.truth(&format!("&{key}")) + more - self.bias);
        let Some(Resident::Variable(variable)) = self.index.data(DataPlace::fixed(svma)).resident
        else {
            panic!("no variable at {key}")
        };
        let offset = svma.offset_from(variable.start).unwrap();
        (Arc::clone(&variable.layout), Arc::clone(&variable.name), offset)
    }

    fn object(&mut self, key: &str, more: u64, size: u64, kind: ValueKind) -> DataObject {
        let (layout, name, offset) = self.variable(key, more);
        data_object::name_as(&layout, Root::Variable(&name), offset, size, kind).unwrap().0
    }

    /// Holds the part at each key, of that many bytes, to its descriptor.
    fn check(&mut self, context: &str, rows: &[(&str, u64, &str)]) {
        for (key, size, expected) in rows {
            let object = self.object(key, 0, *size, ValueKind::Unknown);
            assert_eq!(&*descriptor(&object), *expected, "{key} {context}");
            let at = self.program.truth(&format!("&{key}"));
            let (_, _, offset) = self.variable(key, 0);
            assert!(at >= offset);
        }
    }
}

const C_BUILDS: [(&str, &str); 4] = [
    ("gcc", "-g -gdwarf-5"),
    ("gcc", "-g -gdwarf-4 -gstrict-dwarf"),
    ("gcc", "-g -gdwarf-2 -gstrict-dwarf"),
    ("clang", "-g -gdwarf-5"),
];

fn c_globals() -> impl Iterator<Item = (Globals, String)> {
    let builds = C_BUILDS.into_iter().filter(|(compiler, _)| has_tool(compiler));
    builds.map(|(compiler, flags)| {
        (Globals::compile(compiler, "arms.c", flags), format!("{compiler} {flags}"))
    })
}

fn descriptor(object: &DataObject) -> Arc<str> {
    Spelling::of(object).descriptor
}

/// gcc and clang spell some types in two ways.
fn respelled(descriptor: &str) -> String {
    descriptor.replace("long_int", "long").replace("short_int", "short")
}

#[test]
fn an_arm_is_chosen_where_one_fits_and_listed_where_several_do() {
    use ValueKind::{Float, Integer, Pointer, Unknown};
    for (mut globals, context) in c_globals() {
        for (key, size, kind, expected, candidates) in [
            ("event.key.type", 4, Unknown, "{union:event}.{int type}", ""),
            ("event.key.when", 8, Unknown, "{union:event}.{long when}", ""),
            ("event.key.code", 4, Unknown, "{union:event}", "key.code move.dx"),
            (
                "event.key.code",
                4,
                Float,
                "{union:event}.{structure:move_event move}.{float dx}",
                "",
            ),
            (
                "event.move.dy",
                4,
                Unknown,
                "{union:event}.{structure:move_event move}.{float dy}",
                "",
            ),
            ("event.key.type", 8, Unknown, "{union:event}", ""),
            ("word", 8, Unknown, "{union:word}", "whole real link"),
            ("word", 8, Float, "{union:word}.{double real}", ""),
            ("word", 8, Pointer, "{union:word}.{pointer+void link}", ""),
            ("word", 8, Integer, "{union:word}", "whole link"),
            ("word", 2, Unknown, "{union:word}.{short half}", ""),
            ("word", 1, Unknown, "{union:word}.{array[8]:char bytes}", ""),
            ("pair", 8, Unknown, "{union:pair}.{long both}", ""),
            ("pair.second", 4, Unknown, "{union:pair}.{structure:- ints}.{int second}", ""),
            ("clash", 8, Unknown, "{union:clash}", "a b"),
            ("vector", 4, Float, "{union:vector}.{array[4]:float lanes}", ""),
            ("vector", 4, Unknown, "{union:vector}", "lanes words"),
            ("vector", 16, Unknown, "{union:vector}.{__int128 all}", ""),
            ("tagged[2].tag", 4, Unknown, "{structure:tagged}.{int tag}", ""),
            ("tagged[2].as", 8, Unknown, "{structure:tagged}.{union:- as}", "as.value as.inner.p"),
            (
                "tagged[2].as.at.y",
                4,
                Unknown,
                "{structure:tagged}.{union:- as}.{structure:pos at}.{int y}",
                "",
            ),
        ] {
            let object = globals.object(key, 0, size, kind);
            let name = respelled(&descriptor(&object));
            assert_eq!(name, expected, "{key} {size} {kind:?} {context}");
            assert_eq!(
                Spelling::of(&object).candidates.join(" "),
                candidates,
                "{key} {size} {kind:?} {context}"
            );
        }
    }
}

#[test]
fn the_bits_that_a_mask_leaves_are_a_bit_field() {
    for (mut globals, context) in c_globals() {
        for (variable, set, member) in [
            ("flags", "flags.a = 7", Some("a")),
            ("flags", "flags.b = 31", Some("b")),
            ("flags", "flags.c = 255", Some("c")),
            ("flags", "flags.d = 1", Some("d")),
            ("flags", "flags.wide = -1", Some("wide")),
            ("packed", "packed.run = 511", Some("run")),
            ("packed", "packed.rest = 127", Some("rest")),
        ] {
            let (layout, _, start) = globals.variable(variable, 0);
            assert_eq!(start, 0);
            let first = globals.program.truth(&format!("first {set}"));
            let width = globals.program.truth(&format!("width {set}"));
            let dataspace_analyzer::types::layout::Shape::Aggregate { members, .. } = &layout.shape
            else {
                panic!("{variable} has members");
            };
            let found = |first, width| {
                let path = layout.descend_bits(first, width).unwrap();
                match path.steps[..] {
                    [dataspace_analyzer::types::layout::Step::Member(idx)] => {
                        Some(members[usize::from(idx)].name.to_string())
                    }
                    _ => None,
                }
            };
            assert_eq!(found(first, width).as_deref(), member, "{set} {context}");
            assert_eq!(found(first, 1).as_deref(), member, "its first bit, {set} {context}");
            assert_eq!(found(first, width + 8), None, "more than it, {set} {context}");
        }
        let object = globals.object("flags", 0, 1, ValueKind::Unknown);
        assert_eq!(&*descriptor(&object), "{structure:flags}", "{context}");
        assert_eq!(Spelling::of(&object).candidates.join(" "), "a b", "{context}");
        let wide = globals.object("flags", 0, 4, ValueKind::Unknown);
        assert_eq!(&*descriptor(&wide), "{structure:flags}", "{context}");
    }
}

#[test]
fn arrays_are_found_at_every_depth_and_behind_the_size() {
    for (mut globals, context) in c_globals() {
        globals.check(
            &context,
            &[
                ("matrix[2][3][4]", 4, "{array[3]:array[4]:array[5]:int matrix}"),
                (
                    "grid[1].cells[2][3][4]",
                    4,
                    "{structure:grid}.{array[3]:array[4]:array[5]:int cells}",
                ),
                (
                    "grid[1].rows[2].at[1].y",
                    4,
                    "{structure:grid}.{array[3]:structure:- rows}.{array[2]:structure:pos at}.{int y}",
                ),
                ("grid[0].rows[1].w", 8, "{structure:grid}.{array[3]:structure:- rows}.{double w}"),
                ("wrapped.tail.kind", 1, "{structure:wrapped}.{structure:open tail}.{char kind}"),
                (
                    "wrapped.tail.data",
                    1,
                    "{structure:wrapped}.{structure:open tail}.{array[]:char data}",
                ),
            ],
        );
        // The array begins in the structure's padding and goes on behind it.
        let (layout, ..) = globals.variable("wrapped", 0);
        let data = 8 + globals.program.truth("struct open.data");
        assert!(data < globals.program.truth("sizeof struct wrapped"));
        for offset in [data, data + 6, data + 7, data + 1000] {
            let (object, _) = data_object::name(&layout, Root::Pointer("w"), offset, 1).unwrap();
            let expected = "{structure:wrapped}.{structure:open tail}.{array[]:char data}";
            assert_eq!(&*descriptor(&object), expected, "{offset} {context}");
        }
    }
}

#[test]
fn classes_have_hidden_pointers_and_rooms_show_what_they_hold() {
    for (compiler, flags) in [
        ("g++", "-std=c++17 -g -gdwarf-5"),
        ("g++", "-std=c++17 -g -gdwarf-4 -gstrict-dwarf -O2"),
        ("clang++", "-std=c++17 -g -gdwarf-5 -fstandalone-debug"),
    ] {
        if !has_tool(compiler) {
            continue;
        }
        let mut globals = Globals::compile(compiler, "storage.cpp", flags);
        let context = format!("{compiler} {flags}");
        let item = "{structure:shop::Item";
        for (key, size, expected) in [
            (
                "order",
                8,
                "{class:shop::Order}.{structure:shop::Base <base>}.{pointer+pointer+function _vptr.Base}"
                    .to_owned(),
            ),
            ("order.tag", 1, "{class:shop::Order}.{structure:shop::Base <base>}.{char tag}".to_owned()),
            // In the padding of the base.
            ("order.packed", 1, "{class:shop::Order}.{char packed}".to_owned()),
            ("order.x", 4, "{class:shop::Order}.{int x}".to_owned()),
            // Where a virtual base is, only a running program tells.
            ("order.shared", 8, "{class:shop::Order}".to_owned()),
            ("slot.weight", 4, format!("{{class:shop::Slot<shop::Item>}}.{item} room}}.{{float weight}}")),
            ("hash", 4, "{structure:shop::Hash<shop::Item>}.{array[16]:unsigned_char digest}".to_owned()),
        ] {
            let name = globals.object(key, 0, size, ValueKind::Unknown);
            let leaf = &descriptor(&name);
            let leaf = leaf.replace("_vptr$", "_vptr.").replace("+function__vtbl_ptr_type", "+function");
            assert_eq!(leaf, expected, "{key} {context}");
        }
        for (key, size, end) in [
            ("maybe.weight", 4, ".{structure:shop::Item _M_value}.{float weight}"),
            ("either.weight", 4, ".{structure:shop::Item _M_storage}.{float weight}"),
            ("list_node.weight", 4, ".{structure:shop::Item _M_storage}.{float weight}"),
            ("tree_node.weight", 4, " _M_storage}.{structure:shop::Item second}.{float weight}"),
            ("text.buffer", 1, ".{array[16]:char _M_local_buf}"),
            ("text.buffer", 8, ".{unsigned_long _M_allocated_capacity}"),
        ] {
            let name = globals.object(key, 0, size, ValueKind::Unknown);
            let leaf = descriptor(&name).replace("long_unsigned_int", "unsigned_long");
            assert!(leaf.ends_with(end), "{key}: {leaf} {context}");
        }
        let (layout, _, offset) = globals.variable("order.method", 0);
        let path = layout.descend(offset, 8).unwrap();
        let size = globals.program.truth("sizeof method");
        let method = layout.candidates(offset, size);
        assert!(path.leaf.size == size || path.leaf.size == 8, "{context}");
        assert!(method.paths.is_empty() || method.paths[0].leaf.size == size, "{context}");
    }
}

#[test]
fn variants_are_arms_and_the_discriminant_is_a_member() {
    if !has_tool("rustc") {
        return;
    }
    for flags in ["-g", "-O -g -Cdwarf-version=5"] {
        let flags = format!("--edition 2024 --crate-name program {flags}");
        let mut globals = Globals::compile("rustc", "arms.rs", &flags);
        let shop = "{structure:program::Shop}";
        let shape = format!("{shop}.{{array[4]:structure:program::Shape shapes}}");
        let option = |of: &str| format!("core::option::Option<{of}>");
        let boxed = option("alloc::boxed::Box<program::Item,_alloc::alloc::Global>");
        for (key, size, expected, candidates) in [
            (
                "circle.radius",
                8,
                // All three reals are in the same place.
                shape.clone(),
                "shapes.Circle.radius shapes.Line.__1",
            ),
            ("line.0", 4, shape.clone(), "shapes.Line.__0 shapes.Mark.at"),
            (
                "mark.flag",
                1,
                format!("{shape}.{{structure:program::Shape::Mark Mark}}.{{u8 flag}}"),
                "",
            ),
            (
                "count",
                4,
                format!("{shop}.{{structure:{} count}}.{{u32 <discriminant>}}", option("u32")),
                "",
            ),
            (
                "count.0",
                4,
                format!(
                    "{shop}.{{structure:{0} count}}.{{structure:{0}::Some Some}}.{{u32 __0}}",
                    option("u32")
                ),
                "",
            ),
            (
                "boxed",
                8,
                format!(
                    "{shop}.{{structure:{boxed} boxed}}.{{structure:{boxed}::Some Some}}\
                     .{{pointer+structure:program::Item __0}}"
                ),
                "",
            ),
            (
                "cell",
                8,
                format!(
                    "{shop}.{{structure:core::cell::RefCell<u64> cell}}\
                     .{{structure:core::cell::UnsafeCell<u64> value}}.{{u64 value}}"
                ),
                "",
            ),
        ] {
            let object = globals.object(key, 0, size, ValueKind::Unknown);
            assert_eq!(&*descriptor(&object), expected, "{key} {flags}");
            assert_eq!(Spelling::of(&object).candidates.join(" "), candidates, "{key} {flags}");
        }
        for (part, more) in [("data_ptr", 0), ("length", 8)] {
            let object = globals.object("slice", more, 8, ValueKind::Unknown);
            assert_eq!(
                Spelling::of(&object).member.as_deref(),
                Some(&*format!("slice.{part}")),
                "{flags}"
            );
        }
    }
}

#[test]
fn fortran_has_derived_types_bounds_and_descriptors() {
    if !has_tool("gfortran") {
        return;
    }
    for flags in ["-g -no-pie", "-g -O2 -no-pie -gdwarf-4"] {
        let mut globals = Globals::of(Program::compile("gfortran", "shapes.f90", flags), 0);
        let order = "{structure:shop::order}";
        for (key, size, expected) in [
            (
                "kept.y",
                4,
                format!("{order}.{{structure:shop::position position}}.{{integer(kind=4) y}}"),
            ),
            ("kept.price", 8, format!("{order}.{{real(kind=8) price}}")),
            ("kept.phase", 16, format!("{order}.{{complex(kind=8) phase}}")),
            ("kept.label", 1, format!("{order}.{{array[12]:character label}}")),
            ("grid(2,3)", 8, "{array[4]:array[3]:real(kind=8) shop::grid}".to_owned()),
            ("shifted(2)", 4, "{array[5]:integer(kind=4) shop::shifted}".to_owned()),
            ("wave", 16, "{complex(kind=8) shop::wave}".to_owned()),
        ] {
            globals.check(flags, &[(key, size, &expected)]);
        }
        // gfortran's optimiser takes the places of a common block's variables from them.
        if !flags.contains("-O2") {
            let rows = [
                ("shared_a(10)", 8, "{array[10]:real(kind=8) pool::shared_a}"),
                ("shared_n", 4, "{integer(kind=4) pool::shared_n}"),
            ];
            globals.check(flags, &rows);
        }
        // The descriptor of `lines` follows the price, and begins with the pointer to the elements.
        let object = globals.object("kept.price", 8, 8, ValueKind::Unknown);
        let lines =
            format!("{order}.{{array[]:real(kind=8) lines}}.{{pointer+real(kind=8) <data>}}");
        assert_eq!(*descriptor(&object), *lines, "{flags}");
        // The phase follows its descriptor, of which the bounds are a part.
        let object = globals.object("kept.price", 8 + 56, 8, ValueKind::Unknown);
        let lines = format!("{order}.{{array[]:real(kind=8) lines}}");
        assert_eq!(*descriptor(&object), *lines, "{flags}");
    }
}

#[test]
fn go_has_slices_strings_and_maps() {
    let Some(program) = Program::go("shapes.go") else { return };
    let mut globals = Globals::of(program, 0);
    let order = "{structure:main.Order}";
    for (key, size, expected) in [
        ("Kept.Id", 8, format!("{order}.{{int64 Id}}")),
        ("Kept.At.Y", 4, format!("{order}.{{structure:main.Pos At}}.{{int32 Y}}")),
        (
            "Kept.Tags",
            8,
            format!("{order}.{{structure:[]string Tags}}.{{pointer+structure:string array}}"),
        ),
        ("Kept.Name", 8, format!("{order}.{{structure:string Name}}.{{pointer+uint8 str}}")),
        ("Kept.Known", 8, format!("{order}.{{pointer+structure:hash<string,main.Pos> Known}}")),
        ("Kept.Next", 8, format!("{order}.{{pointer+structure:main.Order Next}}")),
        (
            "Kept.Cells[3].X",
            4,
            format!("{order}.{{array[4]:structure:main.Pos Cells}}.{{int32 X}}"),
        ),
        ("Kept.Wave", 16, format!("{order}.{{complex128 Wave}}")),
        ("Table[5]", 8, "{array[16]:int64 main.Table}".to_owned()),
        ("Line", 8, "{structure:[]main.Pos}.{pointer+structure:main.Pos array}".to_owned()),
    ] {
        globals.check("go", &[(key, size, &expected)]);
    }
}
