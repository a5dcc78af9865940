//! Lines above the objects, in the plain table and on the screen: the target, the events,
//! where every sample went, and what profiling costs.

use crate::text::{percent, ratio, size, span, visible};
use dataspace_proto::accounting::{Accounting, Lost};
use dataspace_proto::event::SkidModel;
use dataspace_proto::reason::Reason;
use dataspace_proto::snapshot::{EventLine, Snapshot};

/// Meaning of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it is.
    Plain,
    /// Text to look at first.
    Strong,
    /// Text that may be overlooked.
    Faint,
    /// Something was lost or is wrong: red.
    Loss,
    /// A bar that shows how much.
    Heat,
}

/// A piece of text that is not broken over lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) text: String,
    pub(crate) tone: Tone,
}

impl Segment {
    /// A piece of text.
    pub(crate) fn new(text: impl Into<String>, tone: Tone) -> Self {
        Self { text: text.into(), tone }
    }
}

/// Presence of shares after the counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shares {
    /// They have.
    Shown,
    /// There is no room.
    Omitted,
}

/// The target, and the time it has been profiled for.
pub(crate) fn target(snapshot: &Snapshot) -> Vec<Segment> {
    let name = visible(&snapshot.target.description).into_owned();
    let elapsed = span(snapshot.elapsed_ns);
    let state = if snapshot.target.running {
        Segment::new(format!("running {elapsed}"), Tone::Plain)
    } else {
        Segment::new(format!("ended after {elapsed}, totals are final"), Tone::Strong)
    };
    vec![Segment::new(name, Tone::Strong), state]
}

/// The events: how far each one's samples skid, and how often it samples.
pub(crate) fn events(snapshot: &Snapshot) -> Vec<Segment> {
    if snapshot.events.is_empty() {
        return vec![Segment::new("no event yet", Tone::Faint)];
    }
    let governed = snapshot.governance.iter().flat_map(|governance| &governance.events);
    let mut governed = governed.copied();
    let event = |event: &EventLine| {
        let now = governed.next().unwrap_or_default();
        let is_changed =
            now.period.is_some_and(|period| event.period.is_some_and(|asked| asked != period))
                || now.frequency_hz.is_some_and(|hz| event.frequency_hz != Some(hz));
        let mut text = event_text(event);
        if is_changed && let Some(number) = now.period.or(now.frequency_hz) {
            text = format!("{text} → {number}");
        }
        if now.is_off {
            text.push_str(" (off for the moment)");
        }
        Segment::new(text, if is_changed { Tone::Loss } else { Tone::Plain })
    };
    snapshot.events.iter().map(event).collect()
}

/// `samples … = attributed … + unknown … + not memory … + lost …`, then what else went amiss.
pub(crate) fn accounting(snapshot: &Snapshot, shares: Shares) -> Vec<Segment> {
    let Accounting { kernel, attributed, not_memory, lost, .. } = snapshot.accounting;
    let pending = snapshot.accounting.unknown.get(&Reason::Pending).copied().unwrap_or(0);
    let unknown = snapshot.accounting.unknown_total() - pending;
    let term = |sign: &str, name: &str, count: u64, tone: Tone| {
        let is_bare = count == 0 || shares == Shares::Omitted;
        let share = if is_bare { String::new() } else { format!(" ({})", percent(count, kernel)) };
        Segment::new(format!("{sign} {name} {count}{share}"), tone)
    };
    let loss_tone = if lost.total() > 0 { Tone::Loss } else { Tone::Plain };
    let mut segments = vec![
        Segment::new(format!("samples {kernel}"), Tone::Strong),
        term("=", "attributed", attributed, Tone::Plain),
        term("+", "unknown", unknown, Tone::Plain),
    ];
    if pending > 0 {
        segments.push(term("+", "pending", pending, Tone::Faint));
    }
    segments.push(term("+", "not memory", not_memory, Tone::Plain));
    segments.push(term("+", "lost", lost.total(), loss_tone));
    if lost.total() > 0 {
        segments.push(Segment::new(loss_causes(lost, snapshot.governance.is_some()), Tone::Loss));
    }
    segments.extend(imbalance(snapshot));
    segments
}

/// Time in which nothing was seen, contradictions, and the costs on both sides.
pub(crate) fn cost(snapshot: &Snapshot) -> Vec<Segment> {
    let Accounting { attributed, conflicts, voted, by_frequency, .. } = snapshot.accounting;
    let Accounting { throttled_ns, invisible_ns, outside, .. } = snapshot.accounting;
    let cost = snapshot.cost;
    let gap_ns = snapshot.governance.as_ref().map_or(0, |governance| governance.gap_ns);
    let mut segments = Vec::new();
    let times =
        [(throttled_ns, "throttled"), (invisible_ns, "not visible"), (gap_ns, "switched off")];
    for (time_ns, what) in times {
        if time_ns > 0 {
            segments.push(Segment::new(format!("{what} {}", span(time_ns)), Tone::Loss));
        }
    }
    let rate = if attributed == 0 { "none".into() } else { percent(conflicts, attributed) };
    segments.push(Segment::new(format!("conflicts {rate}"), Tone::Plain));
    for (n_named, how) in [(voted, "votes"), (by_frequency, "frequency")] {
        if n_named > 0 {
            let rate = percent(n_named, attributed);
            segments.push(Segment::new(format!("named by {how} {rate}"), Tone::Plain));
        }
    }
    if cost.own_cpu_ns > 0 || cost.own_rss_bytes > 0 {
        let cpu = ratio(cost.own_cpu_ns, snapshot.elapsed_ns) * 100.0;
        let memory = size(cost.own_rss_bytes);
        segments.push(Segment::new(format!("own cost {cpu:.1}% CPU, {memory}"), Tone::Faint));
    }
    if cost.target_ns > 0 {
        let cpu = ratio(cost.target_ns, snapshot.elapsed_ns) * 100.0;
        segments.push(Segment::new(format!("target's cost {cpu:.1}% CPU"), Tone::Faint));
    }
    if let Some(event) = snapshot.governance.as_ref().and_then(|one| one.events.first()) {
        let each_us = event.sample_cost_ns as f64 / 1000.0;
        segments.push(Segment::new(format!("{each_us:.1} µs a sample"), Tone::Faint));
    }
    let lives = snapshot.governance.as_ref().and_then(|governance| governance.lives);
    if let Some(exit_ns) = lives.map(|lives| lives.exit_ns).filter(|&ns| ns > 0) {
        let exit_ms = exit_ns as f64 / 1e6;
        segments.push(Segment::new(format!("target's exit +{exit_ms:.2} ms"), Tone::Faint));
    }
    if outside > 0 {
        segments.push(Segment::new(format!("others' samples {outside}"), Tone::Faint));
    }
    segments
}

/// A skid model as JSON has it too.
pub(crate) fn skid_text(skid: SkidModel) -> String {
    match skid {
        SkidModel::Exact => "exact".to_owned(),
        SkidModel::AfterOne => "after-one".to_owned(),
        SkidModel::Unknown(range) => format!("unknown({range})"),
    }
}

/// An event with how far its samples skid, and how often it samples.
pub(crate) fn event_text(event: &EventLine) -> String {
    let skid = skid_text(event.skid);
    let rate = match (event.period, event.frequency_hz) {
        (_, Some(hz)) => format!(", {hz} Hz"),
        (Some(period), None) => format!(", period {period}"),
        (None, None) => String::new(),
    };
    format!("{} (skid {skid}{rate})", visible(&event.name))
}

/// In a recording the kernel's word on samples lost does not say why.
pub(crate) fn loss_causes(lost: Lost, is_live: bool) -> String {
    let causes = [
        (lost.ring_full, if is_live { "ring full" } else { "by the kernel" }),
        (lost.channel_full, "channel full"),
        (lost.undecodable, "undecodable"),
    ];
    let named = causes.iter().filter(|(count, _)| *count > 0);
    let texts: Vec<String> = named.map(|(count, cause)| format!("{cause} {count}")).collect();
    format!("[{}]", texts.join(", "))
}

/// Samples on their way while the session runs; once it has ended, there must be none.
fn imbalance(snapshot: &Snapshot) -> Option<Segment> {
    let imbalance = snapshot.accounting.imbalance();
    if imbalance == 0 {
        return None;
    }
    Some(if snapshot.target.running {
        Segment::new(format!("+ on their way {imbalance}"), Tone::Faint)
    } else {
        Segment::new(format!("+ NOT ACCOUNTED FOR {imbalance}"), Tone::Loss)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn joined(segments: Vec<Segment>) -> String {
        segments.iter().map(|s| s.text.as_str()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn losses_are_named_and_red() {
        let segments = accounting(&fixture::lossy(), Shares::Shown);
        let lost: Vec<&Segment> = segments.iter().filter(|s| s.tone == Tone::Loss).collect();
        assert_eq!(lost[0].text, "+ lost 300 (2.3%)");
        assert_eq!(lost[1].text, "[by the kernel 250, undecodable 50]");
        assert!(
            accounting(&fixture::running(), Shares::Shown).iter().all(|s| s.tone != Tone::Loss)
        );
    }

    #[test]
    fn what_does_not_add_up_is_said() {
        let mut snapshot = fixture::running();
        snapshot.accounting.kernel += 7;
        assert!(joined(accounting(&snapshot, Shares::Shown)).ends_with("+ on their way 7"));
        snapshot.target.running = false;
        let last = accounting(&snapshot, Shares::Shown).pop().unwrap();
        assert_eq!((last.text.as_str(), last.tone), ("+ NOT ACCOUNTED FOR 7", Tone::Loss));
    }

    #[test]
    fn what_waits_is_not_unknown() {
        let mut snapshot = fixture::running();
        snapshot.accounting.unknown.insert(Reason::Pending, 5);
        snapshot.accounting.kernel += 5;
        let text = joined(accounting(&snapshot, Shares::Omitted));
        assert!(text.contains("+ unknown 1000 + pending 5 + not memory 900"), "{text}");
    }

    #[test]
    fn events_tell_skid_and_rate() {
        assert_eq!(
            joined(events(&fixture::running())),
            "cpu-clock (skid after-one, 499 Hz) page-faults (skid exact, period 1)"
        );
    }
}
