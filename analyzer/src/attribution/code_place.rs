//! The place of an IP in code: the load object, the bias, and the site if it is known.

use crate::attribution::recent_site::{CodePlace, KnownCode};
use crate::attribution::world::World;
use crate::bytes::file::LoadObjectIdx;
use crate::index::question::{Needs, Question};
use crate::index::site::SiteQuery;
use crate::process::table::{Backing, ObjectState, bias};
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::reason::Reason;

/// Reason why an address in code has no place.
pub(crate) enum NotLocated {
    Needs(Needs),
    Unknown(Reason),
}

impl World {
    /// The site of a sample whose code is at this place.
    pub(crate) fn site(&mut self, code: CodePlace) -> Result<KnownCode, NotLocated> {
        let n_changes = self.processes.n_changes();
        if let Some(known) = self.recent_sites.find(code, n_changes) {
            return Ok(known);
        }
        let (object, bias) = self.locate(code.pid, code.ip)?;
        let query = SiteQuery { ip: Svma(code.ip.0.wrapping_sub(bias)), skid: code.skid };
        let Some(site) = self.sites.find(object, query) else {
            return Err(NotLocated::Needs(Needs { object, question: Question::Site(query) }));
        };
        let known = KnownCode { object, bias, site };
        self.recent_sites.keep(code, n_changes, known);
        Ok(known)
    }

    /// The load object at `ip` and what the loader added to its addresses.
    pub(crate) fn locate(&self, pid: i32, ip: Avma) -> Result<(LoadObjectIdx, u64), NotLocated> {
        let unknown = NotLocated::Unknown;
        let mapping = self.processes.mapping(pid, ip).ok_or(unknown(Reason::MappingGone))?;
        let object = match mapping.backing {
            Backing::File(object) => object,
            Backing::Anonymous => return Err(unknown(Reason::JitCode)),
            Backing::Kernel => return Err(unknown(Reason::Kernel)),
        };
        let state = self.processes.object(object).map(|object| &object.state);
        match state {
            Some(ObjectState::Open(facts)) => {
                let bias = bias(facts, mapping).ok_or(unknown(Reason::Unverifiable))?;
                Ok((object, bias))
            }
            Some(ObjectState::Failed(reason)) => Err(unknown(*reason)),
            Some(ObjectState::Unopened | ObjectState::Opening) => {
                Err(NotLocated::Needs(Needs { object, question: Question::Open }))
            }
            None => Err(unknown(Reason::MappingGone)),
        }
    }
}
