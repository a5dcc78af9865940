//! Records for the analyzer before the first sample: events, and names, namespaces and mappings from
//! [before] the session.
//!
//! [before]: crate::lookup::before

use crate::channel::batch::BatchSender;
use crate::event::attr;
use crate::live::parts::{Heard, MAX_BATCHES_BEHIND, Parts};
use crate::lookup::process::warning;
use crate::system::host::{Node, node_by_cpu};
use dataspace_proto::record::Record;
use std::path::Path;
use std::time::Duration;

/// Longest wait for the analyzer at one time, until it is looked whether it is there.
const LOOK: Duration = Duration::from_secs(1);

/// Patience with whoever reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// It is at work: no more is on its way to it than it takes.
    OfAnalyzer,
    /// It may not have begun to read.
    Own,
}

/// Tells all that comes before the first sample, once; no more of what was before when it `is_over`.
pub(crate) fn tell(
    parts: &mut Parts,
    heard: Heard,
    sender: &mut BatchSender,
    pace: Pace,
    is_over: &dyn Fn() -> bool,
) {
    let Some(mut before) = parts.before.take() else { return };
    let mut push = |record: Record| {
        sender.push(record);
        if sender.is_full() {
            flush(sender, pace);
        }
    };
    push(Record::Machine(attr::MACHINE));
    let nodes = Node::all(Path::new("/"));
    push(Record::Nodes(node_by_cpu(nodes.iter().map(|node| (node.number, &*node.cpus)))));
    for plan in &parts.plans {
        push(Record::Event(Box::new(plan.event.clone())));
    }
    let warnings = parts.plans.iter().flat_map(|plan| plan.warnings.clone());
    for text in warnings.chain(std::mem::take(&mut parts.attached.warnings)) {
        push(warning(text));
    }
    if !parts.features.lost {
        push(warning(
            "this kernel (before 6.0) does not tell how many samples it lost; the last loss on each \
             CPU may be missing"
                .to_owned(),
        ));
    }
    let before = std::iter::from_fn(|| before.next_unless(is_over));
    before.filter(|record| heard.includes(record)).for_each(push);
    flush(sender, pace);
}

fn flush(sender: &mut BatchSender, pace: Pace) {
    if pace == Pace::OfAnalyzer {
        while !sender.wait_while_behind(MAX_BATCHES_BEHIND, LOOK) {}
    }
    sender.flush_or_drop_samples();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::batch::channel;

    #[test]
    fn no_more_is_on_its_way_than_the_analyzer_takes() {
        const N_RECORDS: usize = 4_000;
        let (mut sender, receiver) = channel(64, 4);
        std::thread::scope(|scope| {
            let analyzer = scope.spawn(move || {
                let (mut n_records, mut n_most) = (0, 0);
                while let Some(batch) = receiver.receive() {
                    n_most = n_most.max(receiver.receiver().len());
                    n_records += batch.len();
                    receiver.recycle(batch);
                }
                (n_records, n_most)
            });
            for n in 0..N_RECORDS {
                sender.push(warning(n.to_string()));
                if sender.is_full() {
                    flush(&mut sender, Pace::OfAnalyzer);
                }
            }
            drop(sender);
            let (n_records, n_most) = analyzer.join().unwrap();
            assert_eq!(n_records, N_RECORDS);
            assert!(n_most <= MAX_BATCHES_BEHIND, "{n_most}");
        });
    }
}
