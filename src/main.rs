//! The `dataspace` binary.
mod expendable;
mod file_source;
mod session;
use session::Source as _;

struct Lines;
impl dataspace_analyzer::analyzer::Observer for Lines {
    fn decided(
        &mut self,
        a: &dataspace_analyzer::analyzer::Analyzer,
        d: dataspace_analyzer::analyzer::Decided<'_>,
    ) {
        println!("{}", serde_json::to_string(&a.sample_line(d)).unwrap());
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let config = dataspace_analyzer::analyzer::Config::default();
    match args[1].as_str() {
        "script" => {
            let mut r = dataspace_collector::recording::Recording::open(args[2].as_ref()).unwrap();
            let a = session::replay(&mut r, config, Default::default(), &mut Lines, |_| {
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
            eprintln!("{:?} {:?}", a.accounting(), a.accounting().imbalance());
        }
        "top" => {
            let spec =
                dataspace_collector::target::TargetSpec::Pids(vec![args[2].parse().unwrap()]);
            let s = session::LiveSession::start(
                dataspace_collector::live::LiveConfig::new(spec),
                config,
                file_source::FilePolicy { is_live: true, symfs: None },
            )
            .unwrap();
            for _ in 0..5 {
                std::thread::sleep(std::time::Duration::from_secs(1));
                s.snapshot();
            }
            s.stop();
            s.join();
            let snap = s.snapshot();
            for o in snap.objects.iter().take(40) {
                println!("{:6} {:?} {}", o.metrics.all.samples, o.metrics.all.evidence, o.object);
            }
            println!("{:?} {:?} {:?}", snap.accounting, snap.accounting.imbalance(), snap.cost);
            println!("{:?}", snap.warnings);
        }
        _ => {}
    }
}
