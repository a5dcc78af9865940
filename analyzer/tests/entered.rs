//! The call that led to the function at whose first instruction a sample is, by what the sampled stack and registers show.

use crate::support::program::Program;
use crate::support::session::{CLOCK, Session, sample, with};
use dataspace_proto::register::Register::{Rax, Rdi, Rdx, Rsp};
use dataspace_proto::sample_line::SampleLine;

const STACK: u64 = 0x7ffd_1234_5000;
const HEAP: u64 = 0x5555_1000;
const BUILDS: [&str; 2] =
    ["-O2 -g -fPIE -pie -fcf-protection=none", "-O2 -g -fno-pie -no-pie -fcf-protection=none"];

/// The answer for a sample at `function` after the call in `caller`, with `pointer` in each register that may have it.
fn entered(program: &Program, function: &str, caller: &str, pointer: u64) -> SampleLine {
    entered_at(program, program.truth(&format!("&{function}")), caller, pointer)
}

fn entered_at(program: &Program, ip: u64, caller: &str, pointer: u64) -> SampleLine {
    let behind = program.call_in(caller).next_ip();
    let hand = with(&[(Rsp, STACK), (Rax, pointer), (Rdi, pointer), (Rdx, pointer)]);
    let mut sample = sample(CLOCK, ip, &hand);
    sample.stack.set(&behind.to_le_bytes());
    Session::new(program).one(sample)
}

#[test]
fn a_call_is_the_trigger_that_is_seen_to_have_led_to_the_function() {
    for flags in BUILDS {
        let program = Program::c("entered.c", flags);
        let at = |caller, pointer| {
            let line = entered(&program, "stop", caller, pointer);
            (line.object.map(|it| it.to_string()), line.trigger)
        };
        let call = |caller| Some(program.call_in(caller).ip());
        let stack = Some("<Stack>".to_owned());
        assert_eq!(at("by_name", HEAP), (stack.clone(), call("by_name")), "{flags}");
        let (stop, operations) = (program.truth("&stop"), program.truth("&operations"));
        assert_eq!(at("by_register", stop), (stack, call("by_register")), "{flags}");
        assert_eq!(at("by_register", stop + 1), (None, None), "another function: {flags}");
        let member = "{structure:operations}.{pointer+function stop}".to_owned();
        let by_member = (Some(member), call("by_member"));
        assert_eq!(at("by_member", operations), by_member, "{flags}");
        assert_eq!(at("by_member", operations - 8), (None, None), "that is `start`: {flags}");
        assert_eq!(at("by_member", HEAP), by_member, "no jump leads there: {flags}");
    }
}

#[test]
fn a_jump_by_a_pointer_that_may_hold_the_function_may_have_led_to_it() {
    for flags in BUILDS {
        let program = Program::c("entered.c", flags);
        let at = |pointer| {
            let line = entered(&program, "slow", "by_brakes", pointer);
            line.object.map(|it| it.to_string())
        };
        let member = "{structure:brakes}.{pointer+function slow}".to_owned();
        assert_eq!(at(program.truth("&brakes")), Some(member), "it was the call: {flags}");
        assert_eq!(at(HEAP), None, "`open` may hold it: {flags}");
    }
}

#[test]
fn what_a_pointer_has_from_the_start_is_likely_what_led_there() {
    for flags in BUILDS {
        let program = Program::c("kinds.c", flags);
        // `drop_freed` goes on by what rax leads to.
        let at = |kind, goes_on: u64| {
            let kind = program.truth(kind);
            let hand = with(&[(Rsp, STACK), (Rax, goes_on), (Rdi, HEAP), (Rdx, kind)]);
            let mut sample = sample(CLOCK, program.truth("&drop_plain"), &hand);
            sample.stack.set(&program.call_in("by_kind").next_ip().to_le_bytes());
            let line = Session::new(&program).one(sample);
            (line.object.map(|it| it.to_string()), line.frequency)
        };
        let member = || Some("{structure:kind}.{pointer+function drop}".to_owned());
        assert_eq!(at("&plain", HEAP), (member(), true), "`drop_freed` was not put there: {flags}");
        let twice = program.truth("&twice");
        assert_eq!(at("&plain", twice), (None, false), "that has it from the start, too: {flags}");
        assert_eq!(at("&plain", 8), (member(), false), "no jump leads there: {flags}");
    }
}

#[test]
fn a_function_that_may_come_back_to_its_entry_was_perhaps_not_called() {
    for flags in BUILDS {
        let program = Program::c("entered.c", flags);
        let line = entered(&program, "is_even", "ask", 7);
        assert_eq!(line.object, None, "{flags}");
    }
}

#[test]
fn a_function_does_not_come_back_where_no_pointer_leads_to_it() {
    for flags in BUILDS {
        let program = Program::c("led.c", flags);
        let (quiet, _) = program.function_range("quiet");
        let at = |ip: u64, caller: &str| {
            let mut sample = sample(CLOCK, ip, &with(&[(Rsp, STACK), (Rdi, 7)]));
            sample.stack.set(&program.call_in(caller).next_ip().to_le_bytes());
            let line = Session::new(&program).one(sample);
            (line.object.map(|it| it.to_string()), line.frequency)
        };
        let stack = || Some("<Stack>".to_owned());
        assert_eq!(at(quiet + program.bias(), "by_quiet"), (stack(), false), "{flags}");
        let loud = at(program.truth("&loud"), "by_loud");
        assert_eq!(loud, (None, false), "`open` may hold it: {flags}");
        let hooked = at(program.truth("&hooked"), "by_hooked");
        assert_eq!(hooked, (stack(), true), "`hook` has another from the start: {flags}");
    }
}

#[test]
fn jumps_that_nothing_called_goes_on_to_and_pointers_to_others_have_not_led_here() {
    for flags in BUILDS {
        let program = Program::c("led.c", flags);
        let line = entered(&program, "right", "by_car", HEAP);
        let member = "{structure:car}.{pointer+function turn}";
        assert_eq!(line.object.as_deref(), Some(member), "{flags}");
        assert!(!line.frequency, "nobody changes `table`: {flags}");
        let (straight, _) = program.function_range("straight");
        let line = entered_at(&program, straight + program.bias(), "by_tram", HEAP);
        let member = "{structure:tram}.{pointer+function turn}";
        assert_eq!(line.object.as_deref(), Some(member), "{flags}");
        assert!(line.frequency, "unless `loose` was changed: {flags}");
        let line = entered(&program, "fast", "by_truck", HEAP);
        assert_eq!(line.object, None, "`chosen` has it once it was asked: {flags}");
        let line = entered(&program, "left", "by_car", HEAP);
        assert_eq!(line.object, None, "`table` has it from the start: {flags}");
    }
}
