//! The data section, or a pipe, cut into records.
//!
//! Source: `tools/perf/Documentation/perf.data-file-format.txt`, "Data".

use super::decompress::Expander;
use super::error::RecordingError;
use super::source::RecordingSource;
use crate::perf_data::format::user_record as user;
use crate::record::decode::{Cursor, Endian};
use crate::record::ring::{HEADER_BYTES, RawRecord};

/// Formats of tracepoints that are looked at, in bytes: those of all of a kernel's some thousand are 4 MB.
const MAX_FORMAT_BYTES: usize = 8 << 20;

#[derive(Clone, Copy)]
struct Header {
    kind: u32,
    misc: u16,
    len: usize,
}

impl Header {
    fn parse(bytes: &[u8], endian: Endian) -> Option<Self> {
        let mut cursor = Cursor::new(bytes, endian);
        Some(Self { kind: cursor.u32()?, misc: cursor.u16()?, len: cursor.u16()?.into() })
    }

    const fn payload_len(self) -> Option<usize> {
        self.len.checked_sub(HEADER_BYTES)
    }
}

/// Place of the record that [`EventStream::advance`] found.
#[derive(Clone, Copy)]
enum FoundRecord {
    /// Its payload is in the buffer.
    Buffer(Header),
    /// It is at the front of the expander's output.
    Expanded(Header),
}

/// Gives records until the end, or until damage after which no record can be found.
pub(super) struct EventStream {
    source: RecordingSource,
    endian: Endian,
    buffer: Vec<u8>,
    expander: Expander,
    /// The zstd stream is damaged: what is left of it cannot be expanded.
    is_expander_broken: bool,
    /// To step over, of the expander's output, before the next record.
    n_given: usize,
    warnings: Vec<String>,
    is_over: bool,
}

impl EventStream {
    pub(super) fn new(source: RecordingSource, endian: Endian) -> Self {
        Self {
            source,
            endian,
            buffer: Vec::new(),
            expander: Expander::default(),
            is_expander_broken: false,
            n_given: 0,
            warnings: Vec::new(),
            is_over: false,
        }
    }

    pub(super) const fn source(&self) -> &RecordingSource {
        &self.source
    }

    /// Faults found since this was last asked.
    pub(super) fn take_warnings(&mut self) -> impl Iterator<Item = String> {
        self.warnings.drain(..)
    }

    /// The next record; `None` at the end. Compressed ones come as what they contain.
    pub(super) fn next_record(&mut self) -> Result<Option<RawRecord<'_>>, RecordingError> {
        let (header, payload) = match self.advance()? {
            None => return Ok(None),
            Some(FoundRecord::Buffer(header)) => (header, &self.buffer[..]),
            Some(FoundRecord::Expanded(header)) => {
                self.n_given = header.len;
                let bytes = self.expander.output().get(HEADER_BYTES..header.len);
                (header, bytes.unwrap_or_default())
            }
        };
        Ok(Some(RawRecord { kind: header.kind, misc: header.misc, payload }))
    }

    fn advance(&mut self) -> Result<Option<FoundRecord>, RecordingError> {
        self.expander.consume(std::mem::take(&mut self.n_given));
        while !self.is_over {
            if let Some(header) = self.expanded_header() {
                return Ok(Some(FoundRecord::Expanded(header)));
            }
            if self.is_over || self.expand() {
                continue;
            }
            let at = self.source.offset();
            let Some(header) = self.read_record()? else {
                break;
            };
            match header.kind {
                user::COMPRESSED | user::COMPRESSED2 => self.feed(header.kind, at),
                user::AUXTRACE | user::HEADER_TRACING_DATA => {
                    if self.take_trailing_data(header.kind, at)? {
                        return Ok(Some(FoundRecord::Buffer(header)));
                    }
                }
                _ => return Ok(Some(FoundRecord::Buffer(header))),
            }
        }
        Ok(None)
    }

    /// Reads one record of the file itself into the buffer.
    fn read_record(&mut self) -> Result<Option<Header>, RecordingError> {
        let at = self.source.offset();
        self.source.read(&mut self.buffer, HEADER_BYTES)?;
        let Some(header) = Header::parse(&self.buffer, self.endian) else {
            self.end_inside_record(at);
            return Ok(None);
        };
        let Some(payload_len) = header.payload_len() else {
            self.refuse_length(at, header.len);
            return Ok(None);
        };
        self.source.read(&mut self.buffer, payload_len)?;
        if self.buffer.len() < payload_len {
            self.end_inside_record(at);
            return Ok(None);
        }
        Ok(Some(header))
    }

    /// The data ends; says so unless it ends where it should.
    fn end_inside_record(&mut self, at: u64) {
        self.is_over = true;
        let n_cut = self.source.offset().saturating_sub(at);
        match self.source.remaining() {
            Some(n_missing) if n_missing > 0 => self.warnings.push(format!(
                "the recording is cut off at byte {}: {n_missing} bytes of records are missing",
                self.source.offset()
            )),
            _ if n_cut > 0 => self.warnings.push(format!(
                "the recording ends inside the record at byte {at}, {n_cut} bytes into it"
            )),
            _ => {}
        }
    }

    fn refuse_length(&mut self, at: u64, len: usize) {
        self.is_over = true;
        let missed = match self.source.remaining() {
            Some(n) => format!("the {} bytes from there on", n.saturating_add(HEADER_BYTES as u64)),
            None => "all from there on".to_owned(),
        };
        self.warnings.push(format!(
            "damage: the record at byte {at} says it is {len} bytes long; {missed} are not read"
        ));
    }

    /// `PERF_RECORD_AUXTRACE` and `PERF_RECORD_HEADER_TRACING_DATA` begin with the length of what
    /// follows them outside the record. A trace is stepped over; formats come after the record in the buffer, as far
    /// as they are wanted. Whether all of it was there.
    fn take_trailing_data(&mut self, kind: u32, at: u64) -> Result<bool, RecordingError> {
        let mut cursor = Cursor::new(&self.buffer, self.endian);
        let len = match kind {
            user::AUXTRACE => cursor.u64(),
            _ => cursor.u32().map(u64::from),
        };
        let len = len.unwrap_or(0);
        let mut n_there = 0;
        if kind == user::HEADER_TRACING_DATA {
            let mut formats = Vec::new();
            self.source.read(
                &mut formats,
                MAX_FORMAT_BYTES.min(usize::try_from(len).unwrap_or(usize::MAX)),
            )?;
            n_there = formats.len() as u64;
            self.buffer.append(&mut formats);
        }
        n_there += self.source.skip(len - n_there)?;
        if n_there < len {
            self.is_over = true;
            self.warnings.push(format!(
                "the recording is cut off in the data of the record at byte {at}: that claims {len} bytes, and \
                 {n_there} are there"
            ));
        }
        Ok(n_there == len)
    }

    /// Hands the compressed record in the buffer to the expander.
    fn feed(&mut self, kind: u32, at: u64) {
        if self.is_expander_broken {
            return;
        }
        let data = match kind {
            user::COMPRESSED => Some(&self.buffer[..]),
            _ => compressed2_data(&self.buffer, self.endian),
        };
        let result = match data {
            Some(data) => self.expander.feed(data).map_err(|error| error.to_string()),
            None => Err("its length exceeds the record".to_owned()),
        };
        if let Err(error) = result {
            self.break_expander(&format!("the compressed record at byte {at}: {error}"));
        }
    }

    /// Expands some more of the last compressed record, if there is more.
    fn expand(&mut self) -> bool {
        if self.is_expander_broken {
            return false;
        }
        match self.expander.expand() {
            Ok(has_more) => has_more,
            Err(error) => {
                let end = self.source.offset();
                self.break_expander(&format!("the compressed record before byte {end}: {error}"));
                false
            }
        }
    }

    fn break_expander(&mut self, what: &str) {
        self.is_expander_broken = true;
        self.warnings.push(format!(
            "damage in {what}; no compressed record from there on can be expanded, and the samples \
             in them are missing"
        ));
    }

    /// The header of the record at the front of the expander's output, if all of it is there.
    fn expanded_header(&mut self) -> Option<Header> {
        let output = self.expander.output();
        let header = Header::parse(output, self.endian)?;
        if header.payload_len().is_none() {
            let n_missed = output.len();
            self.refuse_expanded(header.len, n_missed);
            return None;
        }
        (output.len() >= header.len).then_some(header)
    }

    fn refuse_expanded(&mut self, len: usize, n_missed: usize) {
        self.is_over = true;
        let rest = self.source.remaining().map_or(String::new(), |n| format!(" and {n} behind it"));
        self.warnings.push(format!(
            "damage: a record in the compressed one before byte {} says it is {len} bytes long; \
             {n_missed} bytes expanded{rest} are not read",
            self.source.offset()
        ));
    }
}

/// `PERF_RECORD_COMPRESSED2`: the length of the data, the data, padding.
fn compressed2_data(payload: &[u8], endian: Endian) -> Option<&[u8]> {
    let mut cursor = Cursor::new(payload, endian);
    let len = cursor.u64()?;
    cursor.take(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    fn record(kind: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(0u16.to_le_bytes());
        bytes.extend((payload.len() as u16 + 8).to_le_bytes());
        bytes.extend(payload);
        bytes
    }

    fn stream(bytes: Vec<u8>) -> EventStream {
        let len = bytes.len() as u64;
        let reader = Box::new(io::Cursor::new(bytes));
        let source = RecordingSource::new(reader, "perf.data".into(), 0, Some(len), Some(len));
        EventStream::new(source, Endian::Little)
    }

    fn kinds(stream: &mut EventStream) -> Vec<u32> {
        let mut kinds = Vec::new();
        while let Some(record) = stream.next_record().unwrap() {
            kinds.push(record.kind);
        }
        kinds
    }

    #[test]
    fn trailing_data_is_stepped_over() {
        let mut bytes = record(user::HEADER_TRACING_DATA, &[5, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend([0xff; 5]);
        bytes.extend(record(user::AUXTRACE, &[3, 0, 0, 0, 0, 0, 0, 0]));
        bytes.extend([0xff; 3]);
        bytes.extend(record(9, &[]));
        let mut stream = stream(bytes);
        assert_eq!(kinds(&mut stream), [user::HEADER_TRACING_DATA, user::AUXTRACE, 9]);
        assert_eq!(stream.take_warnings().count(), 0);
    }

    #[test]
    fn a_record_without_length_ends_the_stream_and_says_how_much_is_missed() {
        let mut bytes = record(9, &[1; 8]);
        bytes.extend([0; 24]);
        let mut stream = stream(bytes);
        assert_eq!(kinds(&mut stream), [9]);
        assert_eq!(
            stream.take_warnings().collect::<Vec<_>>(),
            [
                "damage: the record at byte 16 says it is 0 bytes long; the 24 bytes from there on are \
              not read"
            ]
        );
    }

    #[test]
    fn records_straddle_compressed_ones() {
        let inner = [record(9, &[1; 40]), record(4, &[2; 16])].concat();
        let mut encoder = zstd::stream::raw::Encoder::new(1).unwrap();
        let mut bytes = Vec::new();
        for piece in [&inner[..20], &inner[20..50], &inner[50..]] {
            let mut room = vec![0; 1024];
            let n = compress(&mut encoder, piece, &mut room);
            let mut payload = (n as u64).to_le_bytes().to_vec();
            payload.extend(&room[..n]);
            payload.resize(payload.len().next_multiple_of(8), 0);
            bytes.extend(record(user::COMPRESSED2, &payload));
        }
        assert_eq!(kinds(&mut stream(bytes)), [9, 4]);
    }

    fn compress(
        encoder: &mut zstd::stream::raw::Encoder<'_>,
        piece: &[u8],
        room: &mut [u8],
    ) -> usize {
        use zstd::stream::raw::{Operation, OutBuffer};
        let n = encoder.run_on_buffers(piece, room).unwrap().bytes_written;
        let mut rest = OutBuffer::around(&mut room[n..]);
        encoder.flush(&mut rest).unwrap();
        n + rest.pos()
    }
}
