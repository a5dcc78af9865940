//! One request to the daemon, and its answer: as much of HTTP/1.1 as our own server speaks.

use super::address::{Address, Connection};
use crate::daemon::client::token::Token;
use std::io::{self, BufRead, BufReader, Read};
use std::time::{Duration, Instant};

/// The longest head of an answer; ours are some 200 bytes.
const MAX_HEAD_BYTES: u64 = 16 << 10;

/// Headers in it.
const MAX_HEADERS: usize = 32;

/// The longest body: a snapshot of as many objects as there may be, several times over.
const MAX_BODY_BYTES: u64 = 256 << 20;

/// Time that a whole answer may take, whatever it is: the longest takes the daemon thirty seconds to make.
const WHOLE: Duration = Duration::from_secs(120);

/// An answer whose body is still to be read.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    body: Body,
}

/// The daemon's bytes, as long as they may come.
#[derive(Debug)]
struct Incoming {
    connection: Box<dyn Connection>,
    /// Time by which all of an answer has to be there; none for a stream.
    until: Option<Instant>,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.until.is_some_and(|until| Instant::now() >= until) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.connection.read(buffer)
    }
}

/// A body, by how its end is told.
#[derive(Debug)]
struct Body {
    stream: BufReader<Incoming>,
    /// Bytes of the body, or of the present chunk, that are to come.
    n_left: u64,
    is_chunked: bool,
    is_over: bool,
}

/// A request.
pub(super) struct HttpRequest<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) body: Option<&'a [u8]>,
    pub(super) token: Option<&'a Token>,
}

/// Asks the daemon at `address`; the connection is for this one request.
///
/// # Errors
/// Those of the socket, and `InvalidData` where the answer is none.
pub(super) fn ask(address: &Address, asked: &HttpRequest<'_>) -> io::Result<Answer> {
    let HttpRequest { method, path, body, token } = *asked;
    let mut stream = address.connect()?;
    let host = address.host();
    let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
    if let Some(token) = token {
        request += &format!("authorization: {}\r\n", token.header());
    }
    if let Some(body) = body {
        request += &format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    }
    let mut request = request.into_bytes();
    request.extend_from_slice(b"\r\n");
    request.extend_from_slice(body.unwrap_or_default());
    let sent = stream.write_all(&request);
    // Who is turned away is told why before the request is read: then writing fails, reading not.
    let incoming = Incoming { connection: stream, until: Some(Instant::now() + WHOLE) };
    match (read_head(BufReader::new(incoming)), sent) {
        (Err(_), Err(error)) => Err(error),
        (answer, _) => answer,
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

fn read_head(mut stream: BufReader<Incoming>) -> io::Result<Answer> {
    let mut head = Vec::new();
    loop {
        let room = MAX_HEAD_BYTES - head.len() as u64;
        let n_read = stream.by_ref().take(room).read_until(b'\n', &mut head)?;
        if n_read == 0 {
            return Err(invalid("the daemon's answer breaks off"));
        }
        if head.ends_with(b"\r\n\r\n") {
            break;
        }
    }
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    if !response.parse(&head).is_ok_and(|parsed| parsed.is_complete()) {
        return Err(invalid("what answers is not the daemon"));
    }
    let header = |name: &str| {
        let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name));
        found.and_then(|header| std::str::from_utf8(header.value).ok())
    };
    let is_chunked = header("transfer-encoding") == Some("chunked");
    let length = header("content-length").and_then(|length| length.parse::<u64>().ok());
    let n_left = match length {
        _ if is_chunked => 0,
        Some(length) if length <= MAX_BODY_BYTES => length,
        _ => return Err(invalid("the daemon's answer has no length, or is too long")),
    };
    let status = response.code.unwrap_or(0);
    let is_over = !is_chunked && n_left == 0;
    Ok(Answer { status, body: Body { stream, n_left, is_chunked, is_over } })
}

impl Answer {
    /// The whole body.
    ///
    /// # Errors
    /// Where it breaks off or does not end.
    pub(super) fn bytes(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let n_read = (&mut self.body).take(MAX_BODY_BYTES + 1).read_to_end(&mut bytes)? as u64;
        if n_read > MAX_BODY_BYTES {
            return Err(invalid("the daemon's answer is too long"));
        }
        Ok(bytes)
    }

    /// The body as it comes.
    pub(super) fn stream(mut self) -> impl BufRead + Send {
        self.body.stream.get_mut().until = None;
        BufReader::new(self.body)
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_chunked && self.n_left == 0 && !self.is_over {
            self.n_left = self.next_chunk()?;
            self.is_over = self.n_left == 0;
        }
        if self.is_over || buffer.is_empty() {
            return Ok(0);
        }
        let n_wanted = usize::try_from(self.n_left).unwrap_or(usize::MAX).min(buffer.len());
        let n_read = self.stream.read(&mut buffer[..n_wanted])?;
        if n_read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.n_left -= n_read as u64;
        if self.n_left == 0 {
            if self.is_chunked {
                self.end_of_chunk()?;
            } else {
                self.is_over = true;
            }
        }
        Ok(n_read)
    }
}

impl Body {
    /// The size of the next chunk (RFC 9112, section 7.1); 0 after the last one.
    fn next_chunk(&mut self) -> io::Result<u64> {
        let line = self.line()?;
        let digits = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(digits, 16).map_err(|_| invalid("a chunk has no size"))?;
        if size == 0 {
            // No trailer of ours is longer than its empty end.
            self.line()?;
        }
        Ok(size)
    }

    fn end_of_chunk(&mut self) -> io::Result<()> {
        if self.line()?.is_empty() {
            Ok(())
        } else {
            Err(invalid("a chunk is longer than it says"))
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.by_ref().take(256).read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\r\n") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.truncate(line.len() - 2);
        String::from_utf8(line).map_err(|_| invalid("a line of the answer is no text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;

    /// The bytes that are read of an answer, and its status.
    fn read(answer: &[u8]) -> io::Result<(u16, Vec<u8>)> {
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(answer).unwrap();
        drop(one);
        let incoming = Incoming { connection: Box::new(other), until: None };
        let answer = read_head(BufReader::new(incoming))?;
        Ok((answer.status, answer.bytes()?))
    }

    #[test]
    fn bodies_have_a_length_or_chunks() {
        let plain = b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nabcdef";
        assert_eq!(read(plain).unwrap(), (404, b"abc".to_vec()));
        let empty = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
        assert_eq!(read(empty).unwrap(), (200, Vec::new()));
        let chunks =
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n";
        assert_eq!(read(chunks).unwrap(), (200, b"abc0123456789".to_vec()));
    }

    #[test]
    fn what_is_no_answer_or_breaks_off_is_told() {
        for wrong in [
            &b""[..],
            b"SSH-2.0-x\r\n\r\n",
            b"HTTP/1.1 200 OK\r\n",
            b"HTTP/1.1 200 OK\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
            b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nabc",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nab",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nx\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n",
        ] {
            assert!(read(wrong).is_err(), "{}", String::from_utf8_lossy(wrong));
        }
        let endless = [&b"HTTP/1.1 200 OK\r\n"[..], &[b'a'; 20 << 10]].concat();
        assert!(read(&endless).is_err());
    }
}
