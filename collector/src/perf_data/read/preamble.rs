//! The tables of a recording in file mode, which are read before its records.

use super::attr::Attr;
use super::error::RecordingError;
use super::feature;
use super::intake::Intake;
use super::source::{ReadSeek, RecordingSource, read_at};
use crate::perf_data::format::bytes::until_nul;
use crate::perf_data::format::header::{FileHeader, SECTION_BYTES, Section};
use crate::record::decode::{Cursor, Endian};
use std::io::SeekFrom;
use std::path::{Path, PathBuf};

/// The longest table that is read: build-ids of 600,000 files, or the ids of 8 million counters.
const MAX_TABLE_BYTES: u64 = 64 << 20;
/// `struct perf_trace_event_type`: an id and a name.
const EVENT_TYPE_LEN: usize = 72;

/// Reads attributes, ids and features, and leaves `file` where its records begin.
pub(super) fn read(
    file: Box<dyn ReadSeek>,
    header: &FileHeader,
    endian: Endian,
    len_bytes: u64,
    path: PathBuf,
) -> Result<(RecordingSource, Intake), RecordingError> {
    let intake = Intake::new(endian);
    let n_id_bytes_left = MAX_TABLE_BYTES;
    let mut tables = Tables { file, endian, len_bytes, path, intake, n_id_bytes_left };
    tables.attrs(header)?;
    tables.event_types(header.event_types)?;
    let data_end = tables.features(header)?;
    let offset = header.data.offset;
    let Tables { mut file, path, intake, .. } = tables;
    file.seek(SeekFrom::Start(offset)).map_err(|source| RecordingError::Io {
        path: path.clone(),
        offset,
        source,
    })?;
    Ok((RecordingSource::new(file, path, offset, Some(data_end), Some(len_bytes)), intake))
}

struct Tables {
    file: Box<dyn ReadSeek>,
    endian: Endian,
    len_bytes: u64,
    path: PathBuf,
    intake: Intake,
    /// Many events can point at the same ids: all of them together are bounded.
    n_id_bytes_left: u64,
}

impl Tables {
    /// The bytes of `section`, or what there is of them.
    fn section(&mut self, section: Section) -> Result<Vec<u8>, RecordingError> {
        if section.offset >= self.len_bytes {
            return Ok(Vec::new());
        }
        let n = section.len_bytes.min(MAX_TABLE_BYTES);
        read_at(self.file.as_mut(), section.offset, n, &self.path)
    }

    /// The attributes of every event, each followed by the place of its ids.
    fn attrs(&mut self, header: &FileHeader) -> Result<(), RecordingError> {
        let section = self.section(header.attrs)?;
        let no_event = |path: &Path| RecordingError::NoEvent {
            path: path.into(),
            offset: header.attrs.offset,
            len_bytes: header.attrs.len_bytes,
        };
        let entry_len = usize::try_from(header.attr_entry_len).unwrap_or(usize::MAX);
        let mut n_damaged = 0u32;
        for entry in section.chunks_exact(entry_len) {
            let Some((front, place)) = entry.split_last_chunk::<{ SECTION_BYTES as usize }>()
            else {
                break;
            };
            let ids = Section::parse(&mut Cursor::new(place, self.endian)).unwrap_or_default();
            match Attr::parse(front, self.endian) {
                Some((attr, _)) => self.event(attr, ids)?,
                None => n_damaged += 1,
            }
        }
        if self.intake.events_mut().is_empty() {
            return Err(no_event(&self.path));
        }
        if n_damaged > 0 {
            self.intake.warn(format!(
                "the attributes of {n_damaged} events are damaged: their samples cannot be read"
            ));
        }
        Ok(())
    }

    fn event(&mut self, attr: Attr, ids: Section) -> Result<(), RecordingError> {
        let len_bytes = ids.len_bytes.min(self.n_id_bytes_left);
        let ids = self.section(Section { len_bytes, ..ids })?;
        self.n_id_bytes_left = self.n_id_bytes_left.saturating_sub(ids.len() as u64);
        let mut ids = Cursor::new(&ids, self.endian);
        self.intake.events_mut().add(attr, std::iter::from_fn(|| ids.u64()));
        Ok(())
    }

    /// The names of tracepoints, which recorders before Linux 3.3 kept in a table.
    fn event_types(&mut self, section: Section) -> Result<(), RecordingError> {
        let table = self.section(section)?;
        for entry in table.chunks_exact(EVENT_TYPE_LEN) {
            let mut cursor = Cursor::new(entry, self.endian);
            if let Some(id) = cursor.u64() {
                self.intake.events_mut().add_tracepoint_name(id, until_nul(cursor.rest()));
            }
        }
        Ok(())
    }

    /// The features, whose places stand after the data. Gives where the data ends.
    fn features(&mut self, header: &FileHeader) -> Result<u64, RecordingError> {
        if header.data.len_bytes == 0 {
            self.intake.warn(
                "the recorder did not finish this recording: event names and build-ids are \
                 missing, and records may be"
                    .to_owned(),
            );
            return Ok(self.len_bytes);
        }
        let features: Vec<u32> = header.features().collect();
        let len_bytes = features.len() as u64 * SECTION_BYTES;
        let places = self.section(Section { offset: header.data.end(), len_bytes })?;
        let mut cursor = Cursor::new(&places, self.endian);
        let mut n_missing = 0u32;
        for feature in features {
            let place = Section::parse(&mut cursor);
            let is_whole = place.is_some_and(|place| place.end() <= self.len_bytes);
            n_missing += u32::from(!is_whole);
            if let Some(place) = place.filter(|_| feature::is_used(feature)) {
                let section = self.section(place)?;
                self.intake.feature(feature, &section);
            }
        }
        if n_missing > 0 {
            self.intake.warn(format!(
                "{n_missing} of the tables behind the records are not whole: event names or \
                 build-ids may be missing"
            ));
        }
        Ok(header.data.end())
    }
}
