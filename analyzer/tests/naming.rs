//! Every shape and place that a data object can have, held against what the program says itself.

use crate::support::program::{Program, has_memory_operand, has_tool};
use crate::support::session::{Session, object, with};
use dataspace_proto::register::Register::{Rax, Rdi, Rdx, Rsi, Rsp};
use dataspace_proto::sample_line::Evidence;

/// Optimised builds of all sorts.
const OPTIMISED: [&str; 4] = [
    "-O2 -gdwarf-5 -fPIE -pie",
    "-O2 -gdwarf-4 -fno-pie -no-pie",
    "-O3 -gdwarf-5 -fno-pie -no-pie -fno-omit-frame-pointer",
    "-O1 -gdwarf-4 -fPIE -pie -fno-omit-frame-pointer",
];

/// Somewhere on a stack that no mapping names.
const STACK: u64 = 0x7ffd_1234_5000;

/// Somewhere on a heap that no mapping names.
const HEAP: u64 = 0x7000_1234_5000;

#[test]
fn members_are_named_through_a_pointer() {
    for flags in OPTIMISED {
        let program = Program::c("shapes.c", flags);
        let mut session = Session::new(&program);
        for (function, at, expected) in [
            ("load_key", "struct node.key", "{structure:node}.{long_int key}"),
            ("store_key", "struct node.key", "{structure:node}.{long_int key}"),
            ("add_key", "struct node.key", "{structure:node}.{long_int key}"),
            ("load_next", "struct node.next", "{structure:node}.{pointer+structure:node next}"),
            ("load_y", "struct node.at.y", "{structure:node}.{structure:pos at}.{int y}"),
            (
                "load_weights",
                "struct node.weights",
                "{structure:node}.{pointer+const+double weights}",
            ),
            ("call_visit", "struct node.visit", "{structure:node}.{pointer+function visit}"),
            ("span_hi", "span_t.hi", "{structure:span_t}.{long_int hi}"),
            ("boxed_real", "struct boxed.real", "{structure:boxed}.{union:- -}.{float real}"),
            ("flag_after", "struct flags.after", "{structure:flags}.{long_int after}"),
            ("pixel_color", "struct pixel.color", "{structure:pixel}.{enumeration:color color}"),
            ("pixel_ticks", "struct pixel.ticks", "{structure:pixel}.{volatile+int ticks}"),
        ] {
            let offset = program.truth(at);
            let access = program.access(function, offset);
            let line = session.exact(access.ip(), &with(&[(Rdi, HEAP), (Rax, HEAP), (Rsp, STACK)]));
            assert_eq!(object(&line), expected, "{function} {flags}");
            assert_eq!(line.offset, Some(offset), "{function} {flags}");
            assert_eq!(line.addr, Some(HEAP + offset), "{function} {flags}");
            assert_eq!(line.candidates, None, "{function} {flags}: it is this member");
        }
        let store = program.access("store_tag", program.truth("struct node.tag") + 3);
        let line = session.exact(store.ip(), &with(&[(Rdi, HEAP)]));
        assert_eq!(object(&line), "{structure:node}.{array[8]:char tag}", "{flags}");
        assert_eq!(line.offset, Some(program.truth("struct node.tag") + 3), "{flags}");
    }
}

#[test]
fn a_union_arm_is_told_by_its_size() {
    for flags in OPTIMISED {
        let program = Program::c("shapes.c", flags);
        let mut session = Session::new(&program);
        for (function, expected) in [
            ("word_whole", "{union:word}.{long_int whole}"),
            ("word_real", "{union:word}.{float real}"),
            ("word_half", "{union:word}.{short_int half}"),
        ] {
            let line = session.exact(program.access(function, 0).ip(), &with(&[(Rdi, HEAP)]));
            assert_eq!(object(&line), expected, "{function} {flags}");
        }
    }
}

#[test]
fn a_bit_field_is_named_by_its_bytes_or_by_the_mask_behind_the_load() {
    for flags in OPTIMISED {
        let program = Program::c("shapes.c", flags);
        let mut session = Session::new(&program);
        let line = session.exact(program.access("flag_c", 1).ip(), &with(&[(Rdi, HEAP)]));
        assert_eq!(object(&line), "{structure:flags}.{unsigned_int:8 c}", "{flags}");
        let line = session.exact(program.access("flag_a", 0).ip(), &with(&[(Rdi, HEAP)]));
        // `b` is in the same byte.
        assert_eq!(object(&line), "{structure:flags}.{unsigned_int:3 a}", "{flags}");
    }
}

#[test]
fn an_index_register_tells_the_member() {
    for flags in OPTIMISED {
        let program = Program::c("shapes.c", flags);
        let mut session = Session::new(&program);
        for (function, at, index, expected) in [
            (
                "load_tag",
                program.truth("struct node.tag"),
                5,
                "{structure:node}.{array[8]:char tag}",
            ),
            (
                "load_corner",
                program.truth("struct node.corners") + 4,
                2,
                "{structure:node}.{array[4]:structure:pos corners}.{int y}",
            ),
            ("list_y", 4, 1000, "{structure:pos}.{int y}"),
            ("element", 0, 77, "{double a[]}"),
            ("grid_at", 32, 3, "{int rows[]}"),
            ("indirect", 0, 9, "{pointer+structure:pos slots[]}"),
            ("text_byte", 0, 9, "{char text[]}"),
        ] {
            let access = program.access(function, at);
            let line = session.exact(access.ip(), &with(&[(Rdi, HEAP), (Rsi, index)]));
            assert_eq!(object(&line), expected, "{function} {flags}");
        }
        for (function, at, expected) in [
            ("element_seven", 56, "{double a[]}"),
            // What lies behind the structure pointed at may be its neighbour, or anything else.
            ("list_fifth", 5 * program.truth("sizeof struct pos") + 4, "unidentified"),
        ] {
            let access = program.access(function, at);
            let line = session.exact(access.ip(), &with(&[(Rdi, HEAP)]));
            assert_eq!(object(&line), expected, "{function} {flags}");
        }
    }
}

#[test]
fn an_index_is_believed_by_its_value_and_not_by_the_displacement() {
    for flags in OPTIMISED {
        let program = Program::c("shapes.c", flags);
        let mut session = Session::new(&program);
        let high = program.truth("struct halves.high");
        let access = program.access("high_before", high - 8);
        for (index, expected, offset) in [
            (3, "{structure:halves}.{array[8]:long_int high}", high + 16),
            (0, "{structure:halves}.{array[8]:long_int low}", high - 8),
        ] {
            let line = session.exact(access.ip(), &with(&[(Rdi, HEAP), (Rsi, index)]));
            assert_eq!((object(&line), line.offset), (expected, Some(offset)), "{flags}");
        }
    }
}

#[test]
fn an_open_array_at_the_end_reaches_beyond_the_size() {
    for flags in OPTIMISED {
        let program = Program::c("shapes.c", flags);
        let mut session = Session::new(&program);
        for (function, at, index, expected) in [
            (
                "packet_at",
                program.truth("struct packet.data"),
                6,
                "{structure:packet}.{array[]:long_int data}",
            ),
            (
                "packet_third",
                program.truth("struct packet.data") + 16,
                0,
                "{structure:packet}.{array[]:long_int data}",
            ),
            (
                "table_y",
                program.truth("struct table.cells") + 4,
                6,
                "{structure:table}.{array[]:structure:pos cells}.{int y}",
            ),
        ] {
            let access = program.access(function, at);
            let line = session.exact(access.ip(), &with(&[(Rdi, HEAP), (Rsi, index)]));
            assert_eq!(object(&line), expected, "{function} {flags}");
        }
        // An array of one at the end may be meant as open or not: the type does not tell, and what
        // stands behind the structure may be anything.
        let access = program.access("text_at", program.truth("struct name.text"));
        let line = session.exact(access.ip(), &with(&[(Rdi, HEAP), (Rsi, 100)]));
        assert_eq!(object(&line), "unidentified", "{flags}");
        let line = session.exact(access.ip(), &with(&[(Rdi, HEAP), (Rsi, 0)]));
        assert_eq!(object(&line), "{structure:name}.{array[1]:char text}", "{flags}");
        let access = program.access("text_tenth", program.truth("struct name.text") + 9);
        let line = session.exact(access.ip(), &with(&[(Rdi, HEAP)]));
        assert_eq!(object(&line), "unidentified", "{flags}");
    }
}

#[test]
fn static_variables_are_named_by_the_address_in_the_instruction() {
    for flags in OPTIMISED {
        let program = Program::c("places.c", flags);
        let mut session = Session::new(&program);
        let line_size = program.truth("sizeof struct line");
        let end_y = program.truth("struct line.ends") + 8 + program.truth("struct pos.y");
        let rest = program.truth("struct pool.rest") + line_size;
        for (function, variable, offset, expected) in [
            ("table_third", "table", 24, "{array[16]:long_int table}"),
            ("place_five", "places", 44, "{structure:pos}.{int y}"),
            (
                "file_end",
                "file_line",
                end_y,
                "{structure:line}.{array[2]:structure:pos ends}.{int y}",
            ),
            ("grid_cell", "grid", 36, "{array[3]:array[4]:int grid}"),
            ("load_ticks", "ticks", 0, "{volatile+int ticks}"),
            (
                "pool_y",
                "pool",
                rest + end_y,
                "{structure:pool}.{array[3]:structure:line rest}\
                 .{array[2]:structure:pos ends}.{int y}",
            ),
            ("count_up", "n_calls", 0, "{long_int n_calls}"),
        ] {
            let address = program.truth(&format!("&{variable}")) + offset;
            let access = program.only(function, |here| {
                has_memory_operand(here) && here.memory_displacement64() == address
            });
            let line = session.exact(access.ip(), &with(&[]));
            assert_eq!(object(&line), expected, "{function} {flags}");
            assert_eq!(line.variable.as_deref(), Some(variable), "{function} {flags}");
            assert_eq!(line.addr, Some(address), "{function} {flags}");
            assert_eq!(line.evidence, Some(Evidence::Both), "{function} {flags}");
        }
    }
}

#[test]
fn an_index_into_a_static_array_tells_the_element() {
    for flags in OPTIMISED {
        let program = Program::c("places.c", flags);
        let mut session = Session::new(&program);
        let table = program.truth("&table");
        let places = program.truth("&places");
        let zeroed = program.truth("&zeroed");
        for (function, start, displacement, scale, index, expected) in [
            ("table_at", table, 0, 8, 5, "{array[16]:long_int table}"),
            ("table_before", table, -8, 8, 1, "{array[16]:long_int table}"),
            ("table_before", table, -8, 8, 16, "{array[16]:long_int table}"),
            ("place_y", places, 4, 8, 7, "{structure:pos}.{int y}"),
            ("zero_at", zeroed, 0, 8, 4095, "{array[4096]:long_int zeroed}"),
        ] {
            let access = program.only(function, has_memory_operand);
            // Position independent code computes the array's address into a register.
            let (base, name_register) = match access.memory_base() {
                iced_x86::Register::None => (0, Rdx),
                iced_x86::Register::RAX => (start, Rax),
                other => panic!("{function} {flags}: base {other:?}"),
            };
            let registers = [(name_register, base), (Rdi, index)];
            let line = session.exact(access.ip(), &with(&registers));
            assert_eq!(object(&line), expected, "{function}[{index}] {flags}");
            let address = start.wrapping_add_signed(displacement) + scale * index;
            assert_eq!(line.addr, Some(address), "{function}[{index}] {flags}");
        }
    }
}

#[test]
fn classes_have_bases_and_name_spaces() {
    if !has_tool("g++") {
        return;
    }
    for flags in ["-O2 -gdwarf-5 -fPIE -pie", "-O2 -gdwarf-4 -fno-pie -no-pie", "-O1 -gdwarf-5"] {
        let program = Program::compile("g++", "classes.cpp", flags);
        let mut session = Session::new(&program);
        let (kind, x) = (program.truth("Order.kind"), program.truth("Order.x"));
        let weight = program.truth("Order.weight");
        for (function, at, expected) in [
            (
                "_ZNK4shop5Order5id_ofEv",
                0,
                "{class:shop::Order}.{structure:shop::Base <base>}.{long_int id}",
            ),
            ("_ZN4shop5Order4x_ofEv", x, "{class:shop::Order}.{int x}"),
            (
                "_ZN4shop5Order9weight_ofEv",
                weight,
                "{class:shop::Order}.{structure:shop::Mixin <base>}.{double weight}",
            ),
            ("_Z7throughRN4shop5OrderE", x, "{class:shop::Order}.{int x}"),
            (
                "_Z5movedON4shop5OrderE",
                kind,
                "{class:shop::Order}.{structure:shop::Base <base>}.{int kind}",
            ),
            ("_Z6secondPKN4shop4PairIlEE", 8, "{structure:shop::Pair<long_int>}.{long_int second}"),
            ("_Z6upcastPN4shop5MixinE", 0, "{structure:shop::Mixin}.{double weight}"),
            ("_Z3setRi", 0, "{int cell[]}"),
        ] {
            let access = program.access(function, at);
            let line = session.exact(access.ip(), &with(&[(Rdi, HEAP)]));
            assert_eq!(object(&line), expected, "{function} {flags}");
        }
        // From a base to what it is a part of: the type of the pointer does not tell.
        let downcast = program.only("_Z8downcastPN4shop5MixinE", has_memory_operand);
        let line = session.exact(downcast.ip(), &with(&[(Rdi, HEAP)]));
        let right = [
            "{class:shop::Order}.{structure:shop::Base <base>}.{int kind}",
            "unidentified",
            "undetermined",
        ];
        assert!(right.contains(&object(&line)), "{} {flags}", object(&line));
        assert!(weight > kind);
        for (function, variable, offset, expected) in [
            ("_ZN4shop5countEv", "n_orders", 0, "{long_int shop::Order::n_orders}"),
            ("_ZN4shop6kept_xEv", "kept", x, "{class:shop::Order}.{int x}"),
            ("_ZN4shop10see_hiddenEv", "hidden", 8, "{array[4]:int shop::(anonymous)::hidden}"),
        ] {
            let address = program.truth(&format!("&{variable}")) + offset;
            let access = program.static_access(function, address);
            let line = session.exact(access.ip(), &with(&[]));
            assert_eq!(object(&line), expected, "{function} {flags}");
        }
    }
}

#[test]
fn rust_types_are_named_by_their_module() {
    if !has_tool("rustc") {
        return;
    }
    for flags in ["-O -g", "-O -g -Crelocation-model=static"] {
        let program = Program::compile(
            "rustc",
            "shapes.rs",
            &format!("--edition 2024 --crate-name program {flags}"),
        );
        let mut session = Session::new(&program);
        let registers = with(&[(Rdi, HEAP)]);
        let kind =
            session.exact(program.access("load_kind", program.truth("kind")).ip(), &registers);
        assert_eq!(object(&kind), "{structure:program::shop::Order}.{u32 kind}", "{flags}");
        let y = session.exact(program.access("load_y", program.truth("y")).ip(), &registers);
        let expected =
            "{structure:program::shop::Order}.{structure:program::shop::Position at}.{f64 y}";
        assert_eq!(object(&y), expected, "{flags}");
        let count = program.static_access("load_count", program.truth("&COUNT"));
        let line = session.exact(count.ip(), &registers);
        assert_eq!(object(&line), "{u64 program::COUNT}", "{flags}");
    }
}
