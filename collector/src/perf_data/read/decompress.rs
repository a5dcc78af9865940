//! The records inside `PERF_RECORD_COMPRESSED` and `PERF_RECORD_COMPRESSED2`.
//!
//! All of them together are one zstd stream, flushed at the end of each; a record may begin in one
//! and end in the next (`tools/perf/util/tool.c`, `perf_session__process_compressed_event()`).

use std::io;
use zstd::stream::raw::{Decoder, Operation};

/// So much is expanded at a time; a record has at most 64 KiB.
const STEP_LEN: usize = 128 << 10;
/// Bound on what all records together expand to: so many times their length, and the least beside it. Samples come to
/// 5 to 20 times, and the same one again and again to 100; what is made to exhaust us to 10,000.
const MAX_RATIO: u64 = 256;
const MIN_EXPANDED_LEN: u64 = 16 << 20;

/// Expands compressed records, a piece at a time.
#[derive(Default)]
pub(super) struct Expander {
    decoder: Option<Decoder<'static>>,
    input: Vec<u8>,
    input_at: usize,
    /// More output may come though the input is used up.
    has_more: bool,
    output: Vec<u8>,
    output_at: usize,
    /// Of all records so far.
    n_fed: u64,
    n_expanded: u64,
}

impl Expander {
    /// Gives it the data of the next compressed record.
    pub(super) fn feed(&mut self, data: &[u8]) -> io::Result<()> {
        if self.decoder.is_none() {
            self.decoder = Some(Decoder::new()?);
        }
        self.input.clear();
        self.input.extend_from_slice(data);
        self.input_at = 0;
        self.n_fed = self.n_fed.saturating_add(data.len() as u64);
        self.has_more = !data.is_empty();
        Ok(())
    }

    /// Expanded bytes that were not consumed yet.
    pub(super) fn output(&self) -> &[u8] {
        self.output.get(self.output_at..).unwrap_or_default()
    }

    /// Steps over `n` bytes of the output.
    pub(super) fn consume(&mut self, n: usize) {
        self.output_at = self.output_at.saturating_add(n).min(self.output.len());
    }

    /// Expands some more; `false` when it needs the next compressed record for that.
    pub(super) fn expand(&mut self) -> io::Result<bool> {
        let Some(decoder) = self.decoder.as_mut().filter(|_| self.has_more) else {
            return Ok(false);
        };
        self.output.drain(..self.output_at);
        self.output_at = 0;
        let start = self.output.len();
        self.output.resize(start + STEP_LEN, 0);
        let input = self.input.get(self.input_at..).unwrap_or_default();
        let room = self.output.get_mut(start..).unwrap_or_default();
        let result = decoder.run_on_buffers(input, room);
        let (n_read, n_written) =
            result.as_ref().map_or((0, 0), |status| (status.bytes_read, status.bytes_written));
        self.output.truncate(start + n_written);
        result?;
        self.input_at += n_read;
        self.n_expanded = self.n_expanded.saturating_add(n_written as u64);
        let most = self.n_fed.saturating_mul(MAX_RATIO).saturating_add(MIN_EXPANDED_LEN);
        if self.n_expanded > most {
            let what = format!("it expands to more than {MAX_RATIO} times its length");
            return Err(io::Error::other(what));
        }
        let is_stuck = n_read == 0 && n_written == 0;
        self.has_more = !is_stuck && (self.input_at < self.input.len() || n_written == STEP_LEN);
        Ok(n_written > 0 || self.has_more)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zstd::stream::raw::{Encoder, OutBuffer};

    /// Compresses each piece and flushes, as `perf` does.
    fn compressed(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut encoder = Encoder::new(1).unwrap();
        pieces
            .iter()
            .map(|piece| {
                let mut room = vec![0; piece.len() + 1024];
                let n = encoder.run_on_buffers(piece, &mut room).unwrap().bytes_written;
                let mut rest = OutBuffer::around(&mut room[n..]);
                assert_eq!(encoder.flush(&mut rest).unwrap(), 0);
                let n = n + rest.pos();
                room.truncate(n);
                room
            })
            .collect()
    }

    fn expand_all(expander: &mut Expander) -> Vec<u8> {
        let mut bytes = Vec::new();
        while expander.expand().unwrap() {
            let n = expander.output().len();
            bytes.extend_from_slice(expander.output());
            expander.consume(n);
        }
        bytes
    }

    #[test]
    fn each_piece_comes_out_when_it_was_fed() {
        let first: Vec<u8> = (0..300_000u32).map(|i| (i / 7) as u8).collect();
        let second = b"and the end".to_vec();
        let pieces = compressed(&[&first, &second]);
        let mut expander = Expander::default();
        expander.feed(&pieces[0]).unwrap();
        assert_eq!(expand_all(&mut expander), first);
        expander.feed(&pieces[1]).unwrap();
        assert_eq!(expand_all(&mut expander), second);
    }

    #[test]
    fn what_is_not_consumed_stays_in_front_of_the_next() {
        let pieces = compressed(&[b"abc", b"def"]);
        let mut expander = Expander::default();
        expander.feed(&pieces[0]).unwrap();
        while expander.expand().unwrap() {}
        expander.consume(1);
        expander.feed(&pieces[1]).unwrap();
        while expander.expand().unwrap() {}
        assert_eq!(expander.output(), b"bcdef");
    }

    #[test]
    fn what_expands_to_far_more_than_samples_do_is_given_up() {
        let piece = vec![0; 32 << 20];
        let mut expander = Expander::default();
        expander.feed(&compressed(&[&piece])[0]).unwrap();
        let (mut n_bytes, mut expanded) = (0, Ok(true));
        while let Ok(true) = expanded {
            n_bytes += expander.output().len();
            expander.consume(expander.output().len());
            expanded = expander.expand();
        }
        assert!(expanded.is_err());
        assert!((16 << 20..18 << 20).contains(&n_bytes), "{n_bytes}");
    }

    #[test]
    fn other_bytes_are_an_error() {
        let mut expander = Expander::default();
        expander.feed(b"this is not zstd").unwrap();
        assert!(expander.expand().is_err());
    }
}
