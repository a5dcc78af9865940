//! `dataspace attach` and `dataspace detach`.

use super::json;
use crate::cli::{AttachArgs, DetachArgs, Global};
use crate::diagnostic;
use crate::text::visible;
use std::io::{Write, stdout};

/// Has the daemon attach.
pub(super) fn attach(args: AttachArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let (client, is_json) = (args.socket.client()?, args.json);
    let session = client.attach(&args.resolve()?)?;
    let mut out = stdout().lock();
    if is_json {
        json::write(&session, &mut out)?;
    } else {
        let events = session.events.join(", ");
        let (target, events) = (visible(&session.target), visible(&events));
        writeln!(out, "session {}: {target} with {events}", session.id)?;
    }
    Ok(())
}

/// Has the daemon end sessions.
pub(super) fn detach(args: &DetachArgs, global: &Global) -> anyhow::Result<()> {
    diagnostic::start(global.verbose, false);
    let client = args.socket.client()?;
    for key in &args.sessions {
        let session = client.detach(key)?;
        let mut out = stdout().lock();
        if args.json {
            json::write(&session, &mut out)?;
        } else {
            writeln!(out, "session {}: {}", session.id, session.state.name())?;
        }
    }
    Ok(())
}
