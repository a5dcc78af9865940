//! Attaches to a process and prints what it cost and what was lost: `watch PID [EVENT…]`.

use dataspace_collector::channel::batch;
use dataspace_collector::event::EventSelector;
use dataspace_collector::live::{Live, LiveConfig};
use dataspace_collector::target::TargetSpec;
use dataspace_proto::record::Record;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let pid = words.next().ok_or("usage: watch PID [EVENT…]")?.parse()?;
    let events = words.map(|word| EventSelector::parse(&word)).collect::<Result<_, _>>()?;
    let target = TargetSpec::Pids(vec![pid]);
    let live = Live::open(LiveConfig { events, ..LiveConfig::new(target) })?;
    eprintln!("{}: {:?}", live.description(), live.events());
    let (sender, receiver) = batch::channel(64, 1024);
    let running = live.start(sender)?;
    while let Some(batch) = receiver.receive() {
        for record in batch.iter() {
            match record {
                Record::Collected(counts) => eprintln!("{counts:?}"),
                Record::Warning(text) => eprintln!("warning: {text}"),
                _ => {}
            }
        }
        receiver.recycle(batch);
    }
    eprintln!("{:?}", running.join());
    Ok(())
}
