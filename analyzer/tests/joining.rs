//! How the two paths' answers join, and that every sample is accounted for.

use crate::support::program::Program;
use crate::support::session::{EXACT, Hand, N_EVENTS, Session, object, sample, with};
use dataspace_analyzer::index::question::{Answer, Delay, Request, Response};
use dataspace_proto::accounting::Collected;
use dataspace_proto::event::EventIdx;
use dataspace_proto::record::{CpuMode, Record};
use dataspace_proto::register::Register::{self, Rax, Rdi};
use dataspace_proto::sample_line::{AddressSource, Evidence};
use dataspace_proto::snapshot::{Cost, Target};
use proptest::prelude::*;

const BUILDS: [&str; 2] = ["-O2 -gdwarf-5 -fPIE -pie", "-O2 -gdwarf-4 -fno-pie -no-pie"];

#[test]
fn a_pointer_into_a_variable_is_refined_to_its_part() {
    for flags in BUILDS {
        let program = Program::c("places.c", flags);
        let mut session = Session::new(&program);
        let pool = program.truth("&pool");
        let rest =
            pool + program.truth("struct pool.rest") + 2 * program.truth("sizeof struct line");
        let double = program.access("behind", 0).ip();
        let id = program.access("line_id", 0).ip();
        for (ip, at, expected) in [
            (double, program.truth("&ratio"), "{double ratio}"),
            (double, program.truth("&storage") + 16, "{double a[]}"),
            (id, program.truth("&file_line"), "{structure:line}.{long_int id}"),
            (id, program.truth("&storage") + 16, "{structure:line}.{long_int id}"),
            (
                id,
                pool + program.truth("struct pool.first"),
                "{structure:pool}.{structure:line first}.{long_int id}",
            ),
            (id, rest, "{structure:pool}.{array[3]:structure:line rest}.{long_int id}"),
            (id, pool + program.truth("struct pool.bytes"), "{structure:line}.{long_int id}"),
        ] {
            let hand = with(&[(Rdi, at)]);
            let line = session.exact(ip, &hand);
            assert_eq!(object(&line), expected, "computed {flags}");
            assert_eq!(line.evidence, Some(Evidence::Both), "{expected} {flags}");
            assert_eq!(line.addr_source, Some(AddressSource::Computed));
            let line = session.exact(ip, &hand.at(at));
            assert_eq!(object(&line), expected, "sampled {flags}");
            assert_eq!(line.evidence, Some(Evidence::Both), "{expected} {flags}");
            assert_eq!(line.addr_source, Some(AddressSource::Sampled));
        }
    }
}

#[test]
fn another_variable_at_the_address_is_a_conflict_that_only_a_sampled_one_wins() {
    for flags in BUILDS {
        let program = Program::c("places.c", flags);
        let mut session = Session::new(&program);
        let double = program.access("behind", 0).ip();
        let id = program.access("line_id", 0).ip();
        let number = program.truth("&number");
        let places = program.truth("&places");
        for (ip, at, by_type, by_address) in [
            (double, number, "{double a[]}", "{int number}"),
            (id, number, "{structure:line}.{long_int id}", "{int number}"),
            (id, places, "{structure:line}.{long_int id}", "{structure:pos}"),
            (double, places, "{double a[]}", "{structure:pos}"),
        ] {
            let hand = with(&[(Rdi, at)]);
            let line = session.exact(ip, &hand);
            assert_eq!(
                (object(&line), line.evidence),
                (by_type, Some(Evidence::Conflict)),
                "{flags}"
            );
            let line = session.exact(ip, &hand.at(at));
            let expected = (by_address, Some(Evidence::Conflict));
            assert_eq!((object(&line), line.evidence), expected, "{flags}");
        }
        assert_eq!(session.analyzer.accounting().conflicts, 8);
    }
}

#[test]
fn an_overwritten_base_keeps_the_type() {
    let program = Program::c("hunt.c", "-O2 -g");
    let mut session = Session::new(&program);
    let load = program.access("lost", 8);
    let code = program.function("lost");
    let next = code.iter().find(|here| here.ip() == load.next_ip()).unwrap();
    let line =
        session.sample(crate::support::session::CLOCK, next.ip(), &with(&[(Rdi, 1), (Rax, 1)]));
    assert_eq!(object(&line), "{structure:wide}.{long_int b}");
    assert_eq!(line.trigger, Some(load.ip()));
    assert_eq!(line.reason.map(|reason| reason.name()), Some("register_loss"));
    assert_eq!(line.addr, None);
}

#[test]
fn an_overwritten_index_keeps_the_aggregate() {
    let program = Program::c("hunt.c", "-O2 -g");
    let mut session = Session::new(&program);
    let load = program.access("counted", 8);
    let clock = crate::support::session::CLOCK;
    let line = session.sample(clock, load.next_ip(), &with(&[(Rdi, 0x7000_0000_0000)]));
    assert_eq!(object(&line), "{structure:wide}", "which member only the index told");
    assert_eq!(line.trigger, Some(load.ip()));
    assert_eq!(line.reason.map(|reason| reason.name()), Some("register_loss"));
}

#[test]
fn an_address_that_no_user_memory_has_is_invalid() {
    let program = Program::c("places.c", "-O2 -g");
    let mut session = Session::new(&program);
    let ip = program.access("behind", 0).ip();
    for at in [0xffff_8880_0000_0000, 1 << 60, u64::MAX] {
        let line = session.exact(ip, &with(&[(Rdi, at)]));
        assert_eq!(object(&line), "invalid_address", "{at:#x}");
        let line = session.exact(ip, &with(&[(Rdi, at)]).at(at));
        assert_eq!(object(&line), "invalid_address", "{at:#x}");
    }
}

/// Addresses that matter: near the program's code and data, and anywhere.
fn address(program: &Program) -> impl Strategy<Value = u64> + use<> {
    let start = program.truth("&__ehdr_start");
    let table = program.truth("&table");
    let (code, len_bytes) = program.function_range("locals");
    let code = code + program.bias();
    prop_oneof![
        4 => code..code + len_bytes,
        3 => start..start + 0x20000,
        2 => table.saturating_sub(64)..table + 0x1000,
        1 => any::<u64>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// kernel = attributed + unknown + not_memory + lost, whatever the samples are.
    #[test]
    fn every_sample_is_accounted_for(
        (samples, lost) in (
            PROGRAM.with(|program| {
                let at = address(program);
                let register = (0..18usize, address(program));
                let one = (
                    at,
                    proptest::option::of(address(program)),
                    proptest::collection::vec(register, 0..18),
                    (0..N_EVENTS + 1, 0..4u8, any::<u64>(), any::<u64>(), any::<u32>()),
                );
                proptest::collection::vec(one, 1..60)
            }),
            (0..1000u64, 0..1000u64, 0..1000u64),
        )
    ) {
        let mut session = PROGRAM.with(Session::new);
        let n_samples = samples.len() as u64;
        for (ip, addr, registers, (event, mode, period, time_ns, latency)) in samples {
            let registers =
                registers.into_iter().map(|(idx, value)| (Register::ALL[idx], value)).collect();
            let mut sample = sample(EventIdx(event), ip, &Hand { registers, addr });
            sample.mode = [CpuMode::User, CpuMode::Kernel, CpuMode::Unknown, CpuMode::Other]
                [usize::from(mode)];
            sample.user_registers = sample.registers;
            (sample.period, sample.time_ns, sample.latency) = (period, time_ns, latency);
            session.one(sample);
        }
        let accounting = session.analyzer.accounting();
        prop_assert_eq!(accounting.kernel, n_samples);
        prop_assert_eq!(accounting.imbalance(), 0);
        let (ring_full, channel_full, undecodable) = lost;
        session.apply(&Record::Collected(Box::new(Collected {
            kernel_samples: n_samples + ring_full + channel_full + undecodable,
            delivered: n_samples,
            ring_full,
            channel_full,
            undecodable,
            ..Collected::default()
        })));
        prop_assert_eq!(session.analyzer.accounting().imbalance(), 0);
        let accounting = session.analyzer.accounting();
        let snapshot = session.analyzer.snapshot(Default::default(), Default::default(), None);
        let total = &snapshot.objects[0].metrics.all;
        prop_assert_eq!(total.samples, accounting.attributed + accounting.unknown_total());
        let by_line = session.lines.0.iter().filter(|line| line.object.is_some()).count() as u64;
        prop_assert_eq!(by_line, accounting.attributed);
    }
}

thread_local! {
    /// Compiled once for all cases.
    static PROGRAM: Program = Program::c("places.c", "-O2 -g -fno-pie -no-pie");
}

#[test]
fn parked_samples_are_pending_until_they_are_given_up() {
    let program = Program::c("places.c", "-O2 -g");
    let mut session = Session::new(&program);
    let ip = program.access("behind", 0).ip();
    let hand = with(&[(Rdi, program.truth("&ratio"))]);
    session.analyzer.apply(&Record::Sample(sample(EXACT, ip, &hand)), &mut session.lines);
    let accounting = session.analyzer.accounting();
    assert_eq!((accounting.unknown_total(), accounting.imbalance()), (1, 0));
    session.analyzer.give_up_at_end(&mut session.lines);
    let snapshot = session.analyzer.snapshot(Target::default(), Cost::default(), None);
    let told = snapshot.warnings.iter().any(|it| it.contains("1 samples") && it.contains(" (1)"));
    assert!(told, "{:?}", snapshot.warnings);
    assert_eq!(session.lines.0.len(), 1);
    assert_eq!(object(&session.lines.0[0]), "over_budget");
    assert_eq!(session.analyzer.accounting().imbalance(), 0);
}

#[test]
fn a_question_that_nobody_works_on_now_is_asked_again() {
    let program = Program::c("places.c", "-O2 -g");
    let mut session = Session::new(&program);
    let ip = program.access("behind", 0).ip();
    let hand = with(&[(Rdi, program.truth("&ratio"))]);
    let taken = Record::Sample(sample(EXACT, ip, &hand));
    session.analyzer.apply(&taken, &mut session.lines);
    let Request { object: asked, key, question } = session.analyzer.next_request().unwrap();
    let put_off = Response { object: asked, question, answer: Answer::NotNow(Delay::TooLarge) };
    session.analyzer.answer(put_off.clone(), &mut session.lines);
    assert_eq!(object(&session.lines.0[0]), "over_budget");
    assert_eq!(session.analyzer.n_pending(), 0);
    assert!(session.analyzer.next_request().is_none(), "until there is a sample again");
    session.analyzer.answer(put_off, &mut session.lines);
    let snapshot = session.analyzer.snapshot(Target::default(), Cost::default(), None);
    let [warning] = snapshot.warnings.as_slice() else { panic!("{:?}", snapshot.warnings) };
    assert!(warning.contains("more memory than there is") && warning.contains("memory_max"));
    assert!(warning.contains(&*String::from_utf8_lossy(&key.path)), "{warning}");
    assert_eq!(object(&session.exact(ip, &hand)), "{double ratio}");
    assert_eq!(session.analyzer.accounting().imbalance(), 0);
}
