//! Findings of `dataspace doctor`, as one JSON object.

use crate::commands::json;
use dataspace_collector::capability::{Capabilities, LimitValue};
use dataspace_collector::system::machine::Vendor;
use serde::Serialize;
use std::io::Write;

/// Rises when a field's meaning changes.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct DoctorDocument<'a> {
    schema: u32,
    kernel: &'a str,
    architecture: &'a str,
    processor: ProcessorLine<'a>,
    events: Vec<EventLine<'a>>,
    privileges: Vec<PrivilegeLine<'a>>,
    limits: Vec<LimitLine<'a>>,
}

#[derive(Serialize)]
struct ProcessorLine<'a> {
    name: &'a str,
    vendor: Option<&'static str>,
    family: u32,
    model: u32,
    is_virtual: bool,
}

#[derive(Serialize)]
struct EventLine<'a> {
    name: &'a str,
    is_available: bool,
    detail: &'a str,
    remedy: Option<&'a str>,
}

#[derive(Serialize)]
struct PrivilegeLine<'a> {
    name: &'a str,
    is_held: bool,
    purpose: &'a str,
    remedy: Option<&'a str>,
}

#[derive(Serialize)]
struct LimitLine<'a> {
    name: &'a str,
    /// Nothing where it is unlimited or not known.
    value: Option<i64>,
    is_known: bool,
    meaning: &'a str,
    remedy: Option<&'a str>,
}

/// Writes what was found as one line.
pub(super) fn write(found: &Capabilities, out: &mut dyn Write) -> anyhow::Result<()> {
    json::write(&document(found), out)
}

fn document(found: &Capabilities) -> DoctorDocument<'_> {
    let processor = &found.processor;
    DoctorDocument {
        schema: SCHEMA,
        kernel: &found.kernel,
        architecture: &found.architecture,
        processor: ProcessorLine {
            name: &processor.name,
            vendor: match processor.vendor {
                Vendor::Intel => Some("intel"),
                Vendor::Amd => Some("amd"),
                Vendor::Arm => Some("arm"),
                Vendor::Other => None,
            },
            family: processor.family,
            model: processor.model,
            is_virtual: processor.is_virtual,
        },
        events: found
            .events
            .iter()
            .map(|event| EventLine {
                name: &event.name,
                is_available: event.is_available,
                detail: &event.detail,
                remedy: event.remedy.as_deref(),
            })
            .collect(),
        privileges: found
            .privileges
            .iter()
            .map(|privilege| PrivilegeLine {
                name: privilege.name,
                is_held: privilege.is_held,
                purpose: privilege.purpose,
                remedy: privilege.remedy.as_deref(),
            })
            .collect(),
        limits: found
            .limits
            .iter()
            .map(|limit| LimitLine {
                name: limit.name,
                value: match limit.value {
                    LimitValue::Number(value) => Some(value),
                    LimitValue::Unlimited | LimitValue::Missing => None,
                },
                is_known: limit.value != LimitValue::Missing,
                meaning: limit.meaning,
                remedy: limit.remedy.as_deref(),
            })
            .collect(),
    }
}
