//! What an unprivileged user gets, and what refusals say.

use super::clock::SPINNER;
use crate::support::{Program, Session, as_nobody, open};
use dataspace_collector::error::ErrorKind;
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::{Live, LiveConfig};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::record::Record;

#[test]
fn an_unprivileged_user_sees_user_code_of_own_processes() {
    as_nobody("live::privilege::an_unprivileged_user_sees_user_code_of_own_processes", || {
        let program = Program::new(SPINNER);
        let mut partner = program.spawn();
        partner.read_line();
        let target = TargetSpec::Pids(vec![partner.pid()]);
        let Some(live) = open(LiveConfig::new(target)) else { return };
        assert!(!live.events()[0].includes_kernel);
        let mut session = Session::start(live);
        session.wait_for(|record| matches!(record, Record::Sample(_)));
        partner.finish();
        let (said, _) = session.finish();
        assert!(said.has_mapping(&program.path()));
    });
}

#[test]
fn a_refusal_names_the_process_and_a_remedy() {
    as_nobody("live::privilege::a_refusal_names_the_process_and_a_remedy", || {
        let error = Live::open(LiveConfig::new(TargetSpec::Pids(vec![1]))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotPermitted);
        assert!(error.to_string().contains("process 1 belongs to user 0; run as root"), "{error}");
    });
}

#[test]
fn a_fifth_watched_variable_is_one_too_many() {
    let program = Program::new(SPINNER);
    let address = program.address("counter");
    let selector = EventSelector::parse(&format!("mem:{address:#x}/4:u")).unwrap();
    let target = TargetSpec::Command(program.argv());
    let config = LiveConfig { events: vec![selector; 5], ..LiveConfig::new(target) };
    match Live::open(config) {
        Ok(_) => eprintln!("skipped: this machine has more than 4 debug registers"),
        Err(error) => {
            let refused = [ErrorKind::MachineCannot, ErrorKind::NotPermitted];
            assert!(refused.contains(&error.kind()), "{error}");
        }
    }
}
