//! `dataspace sessions`: what the daemon is attached to.

use super::json;
use crate::cli::{AskArgs, Global};
use crate::diagnostic;
use crate::text::visible;
use dataspace_proto::api::{SessionLine, SessionList};
use std::io::{self, Write, stdout};

/// Runs the command.
pub(super) fn run(args: &AskArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let list: SessionList = args.socket.client()?.get("sessions")?;
    let mut out = stdout().lock();
    if args.json {
        json::write(&list, &mut out)?;
    } else {
        render(&list.sessions, &mut out)?;
    }
    Ok(())
}

fn render(sessions: &[SessionLine], out: &mut dyn Write) -> io::Result<()> {
    let name = |session: &SessionLine| visible(session.name.as_deref().unwrap_or("-")).into_owned();
    let width = sessions.iter().map(|session| name(session).len()).max().unwrap_or(0).max(4);
    writeln!(out, "{:>4}  {:<width$}  {:<8}  {:>6}  TARGET", "ID", "NAME", "STATE", "UID")?;
    for session in sessions {
        let SessionLine { id, uid, state, target, events, .. } = session;
        let events = events.join(", ");
        let with = if events.is_empty() { events } else { format!(" with {}", visible(&events)) };
        let (name, state) = (name(session), state.name());
        let target = visible(target);
        writeln!(out, "{id:>4}  {name:<width$}  {state:<8}  {uid:>6}  {target}{with}")?;
        if let Some(detail) = &session.detail {
            writeln!(out, "{:>4}  {:<width$}  → {}", "", "", visible(detail))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dataspace_proto::api::{Origin, SessionState};

    #[test]
    fn a_session_is_a_line_and_why_it_stands_so_another() {
        let session = |id, name: Option<&str>, state, detail: Option<&str>| SessionLine {
            id,
            name: name.map(str::to_owned),
            origin: Origin::Configuration,
            uid: 0,
            state,
            detail: detail.map(str::to_owned),
            target: "unit \x1bredis.service".into(),
            events: if detail.is_some() { Vec::new() } else { vec!["cpu-\u{202e}clock".into()] },
            n_attached: 1,
        };
        let sessions = [
            session(1, Some("redis"), SessionState::Attached, None),
            session(12, None, SessionState::Waiting, Some("its target has ended")),
        ];
        let mut out = Vec::new();
        render(&sessions, &mut out).unwrap();
        let expected = "  ID  NAME   STATE        UID  TARGET
   1  redis  attached       0  unit \\u{1b}redis.service with cpu-\\u{202e}clock
  12  -      waiting        0  unit \\u{1b}redis.service
             → its target has ended
";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
