//! The place of an IP in code: the load object, the bias, and the site if it is known.

use crate::attribution::recent_site::{CodePlace, KnownCode};
use crate::attribution::verdict::Attribution;
use crate::attribution::world::World;
use crate::bytes::file::LoadObjectIdx;
use crate::index::question::{Needs, Question};
use crate::index::site::{Past, SiteQuery, Trigger};
use crate::process::table::{Backing, ObjectState, bias};
use dataspace_proto::address::{Avma, Svma};
use dataspace_proto::reason::Reason;
use dataspace_proto::record::Sample;
use dataspace_proto::register::Register;

/// Reason why an address in code has no place.
pub(crate) enum NotLocated {
    Needs(Needs),
    Unknown(Reason),
}

/// The address at which the user's code of a sample went on; 0 where that is not known.
pub(crate) fn user_ip(sample: &Sample) -> Avma {
    let user_ip = || sample.user_registers.get(Register::Rip).map_or(Avma(0), Avma);
    if sample.is_user() { sample.ip } else { user_ip() }
}

impl World {
    /// The site of a sample whose code is at this place.
    #[inline]
    pub(crate) fn site(&mut self, code: CodePlace) -> Result<KnownCode, NotLocated> {
        let n_changes = self.processes.n_changes();
        if let Some(known) = self.recent_sites.find(code, n_changes) {
            return Ok(known);
        }
        // All that follows waits for the answer: one that is known takes no way through the memory of one that is not.
        let KnownCode { object, bias, site } = self.find_site(code, n_changes)?;
        Ok(KnownCode { object, bias, site })
    }

    #[cold]
    fn find_site(&mut self, code: CodePlace, n_changes: u64) -> Result<KnownCode, NotLocated> {
        let (object, bias) = self.locate(code.pid, code.ip)?;
        let query = SiteQuery { ip: Svma(code.ip.0.wrapping_sub(bias)), skid: code.skid };
        let Some(site) = self.sites.find(object, query) else {
            return Err(NotLocated::Needs(Needs { object, question: Question::Site(query) }));
        };
        let known = KnownCode { object, bias, site };
        self.recent_sites.keep(code, n_changes, known);
        Ok(known)
    }

    /// The load object of a sample's trigger, and its address there.
    pub(crate) fn trigger_place(
        &self,
        sample: &Sample,
        attribution: &Attribution,
    ) -> Option<(LoadObjectIdx, Svma)> {
        let trigger = attribution.trigger?;
        if let Some((object, _, own)) = self.own_trigger(sample, attribution) {
            return Some((object, own.svma));
        }
        // Another load object may have called what was interrupted.
        let (object, bias) = self.locate(sample.pid, trigger).ok()?;
        Some((object, Svma(trigger.0.wrapping_sub(bias))))
    }

    /// The trigger of a sample where it is one of its site, with the site's load object and past.
    pub(crate) fn own_trigger(
        &self,
        sample: &Sample,
        attribution: &Attribution,
    ) -> Option<(LoadObjectIdx, &Past, &Trigger)> {
        let site = attribution.site?;
        let (object, ip) = self.sites.code(site);
        let bias = user_ip(sample).0.wrapping_sub(ip.0);
        let at = Svma(attribution.trigger?.0.wrapping_sub(bias));
        let past = self.sites.past(site)?;
        let trigger = past.triggers.iter().find(|trigger| trigger.svma == at)?;
        Some((object, past, trigger))
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
