//! Traces on disk, so that a second look at the same programs need not step through them again.

use crate::truth::step::{MAX_SKID, N_STACK_WORDS, Pick, State};
use crate::truth::trace::{MAX_INSTRUCTION_BYTES, Trace};
use dataspace_proto::register::N_REGISTERS;
use std::collections::HashMap;
use std::io::{Error, Result};
use std::path::Path;

/// Changes when the form does.
const MAGIC: u64 = 0x7472_7574_6800_0005;

/// Writes a trace.
pub(crate) fn write(trace: &Trace, path: &Path) -> Result<()> {
    let mut out = Vec::new();
    put(&mut out, MAGIC);
    put(&mut out, trace.n_steps);
    put(&mut out, trace.maps.len() as u64);
    out.extend_from_slice(trace.maps.as_bytes());
    put(&mut out, trace.code.len() as u64);
    for (ip, bytes) in &trace.code {
        put(&mut out, *ip);
        out.extend_from_slice(bytes);
    }
    for picks in [&trace.any, &trace.memory, &trace.waits] {
        put(&mut out, picks.len() as u64);
        for pick in picks {
            put(&mut out, pick.previous_ip);
            put_state(&mut out, &State::default(), &pick.at);
            put_state(&mut out, &pick.at, &pick.next);
            put_state(&mut out, &pick.next, &pick.later);
            let between = pick.between.iter().filter(|ip| **ip != 0);
            put(&mut out, between.clone().count() as u64);
            between.for_each(|ip| put(&mut out, *ip));
        }
    }
    // Under another name first: a run that is interrupted leaves no half of a trace.
    let partial = path.with_extension("partial");
    std::fs::write(&partial, out)?;
    std::fs::rename(partial, path)
}

/// Reads a trace that [`write`] wrote.
pub(crate) fn read(path: &Path) -> Result<Trace> {
    let bytes = std::fs::read(path)?;
    parse(&mut &*bytes).ok_or_else(|| Error::other("no trace of this version"))
}

fn parse(bytes: &mut &[u8]) -> Option<Trace> {
    if take(bytes)? != MAGIC {
        return None;
    }
    let n_steps = take(bytes)?;
    let n_bytes = usize::try_from(take(bytes)?).ok()?;
    let maps = String::from_utf8(bytes.split_off(..n_bytes)?.to_vec()).ok()?;
    let mut code = HashMap::new();
    for _ in 0..take(bytes)? {
        let ip = take(bytes)?;
        code.insert(ip, bytes.split_off(..MAX_INSTRUCTION_BYTES)?.try_into().ok()?);
    }
    let mut picks = || {
        let n_picks = take(bytes)?;
        let pick = |_| {
            let previous_ip = take(bytes)?;
            let at = take_state(bytes, &State::default())?;
            let next = take_state(bytes, &at)?;
            let later = take_state(bytes, &next)?;
            let n_between = usize::try_from(take(bytes)?).ok()?;
            let mut between = [0; MAX_SKID - 1];
            for ip in between.get_mut(..n_between)? {
                *ip = take(bytes)?;
            }
            Some(Pick { previous_ip, at, next, later, between })
        };
        (0..n_picks).map(pick).collect::<Option<Vec<_>>>()
    };
    Some(Trace { n_steps, maps, code, any: picks()?, memory: picks()?, waits: picks()? })
}

// Each word of a state has a bit.
const _: () = assert!(N_REGISTERS + 1 + N_STACK_WORDS <= u64::BITS as usize);

fn put(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn take(bytes: &mut &[u8]) -> Option<u64> {
    bytes.split_off(..8)?.try_into().ok().map(u64::from_le_bytes)
}

/// Only the registers that differ: an instruction changes two or three.
fn put_state(out: &mut Vec<u8>, before: &State, state: &State) {
    let changed = |idx: &usize| state.0[*idx] != before.0[*idx];
    let mask = (0..state.0.len()).filter(changed).fold(0, |mask, idx| mask | 1 << idx);
    put(out, mask);
    (0..state.0.len()).filter(changed).for_each(|idx| put(out, state.0[idx]));
}

fn take_state(bytes: &mut &[u8], before: &State) -> Option<State> {
    let mask = take(bytes)?;
    let mut state = *before;
    for (idx, value) in state.0.iter_mut().enumerate() {
        if mask & 1 << idx != 0 {
            *value = take(bytes)?;
        }
    }
    Some(state)
}
