//! The way in over TCP: who is let in, and what he may do.

use crate::support::daemon::{Daemon, open_dir};
use crate::support::{PATIENCE, Running, compile, dataspace};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const TOKEN: &str = "dG9rZW4gb2YgdGhlIHRlc3Rz";

struct Network {
    daemon: Daemon,
    address: String,
    token_file: PathBuf,
}

fn write_token(path: &Path, token: &str, mode: u32) {
    std::fs::write(path, format!("{token}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

impl Network {
    /// A daemon that listens on a port of the kernel's choice, with `more` in its table.
    fn start(more: &str) -> Self {
        let dir = open_dir();
        let token_file = dir.path().join("token");
        write_token(&token_file, TOKEN, 0o600);
        let config = format!(
            "[tcp]\nlisten = \"127.0.0.1:0\"\ntoken_file = \"{}\"\n{more}",
            token_file.display()
        );
        let mut daemon = Daemon::start_in(dir, &config, |_| {});
        let mut address = None;
        daemon.wait_until("it says where it listens", |daemon| {
            let log = daemon.log();
            address = log.split("127.0.0.1:").nth(1).map(|rest| {
                let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
                format!("127.0.0.1:{port}")
            });
            address.is_some()
        });
        Self { daemon, address: address.unwrap(), token_file }
    }

    /// The status, head and body of the answer to a request with these headers.
    fn ask(&self, method: &str, path: &str, headers: &[&str]) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
        // At once: a head has to be there in time.
        let head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase(), body.to_owned())
    }

    fn client(&self, args: &[&str]) -> (Option<i32>, String) {
        let (command, args) = args.split_first().unwrap();
        let url = format!("http://{}", self.address);
        let output = dataspace(&[&[*command, "--connect", &url], args].concat())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }
}

#[test]
fn without_the_token_nobody_is_let_in_and_each_refusal_is_logged() {
    let mut network = Network::start("hosts = [\"metrics.example\"]\n");
    let host = "host: localhost";
    let right = format!("authorization: Bearer {TOKEN}");
    let longer = format!("authorization: Bearer {TOKEN}x");
    let basic = format!("authorization: Basic {TOKEN}");
    for path in ["/v1/health", "/metrics", "/v1/sessions", "/no/such", "/v1/openapi.json"] {
        for headers in [
            &[host][..],
            &[host, "authorization: Bearer dG9rZW4gb2YgdGhlIHRlc3Rx"],
            &[host, &longer],
            &[host, &basic],
            &[host, &right, &right],
        ] {
            let (status, head, body) = network.ask("GET", path, headers);
            assert_eq!(status, 401, "{headers:?}: {body}");
            assert!(head.contains("www-authenticate: bearer"), "{head}");
            assert!(body.contains("unauthorized") && !body.contains(TOKEN), "{body}");
        }
    }
    for says in ["127.0.0.1:", "needs Authorization", "this is not the token"] {
        network.daemon.wait_for_line(&["refused", says]);
    }
    assert!(!network.daemon.log().contains(TOKEN), "{}", network.daemon.log());
    // A page of a stranger, whose name leads here.
    for other in ["host: attacker.example", "host: attacker.example:80", "x: y", "host:"] {
        let (status, _, body) = network.ask("GET", "/v1/health", &[other, &right]);
        assert_eq!(status, 421, "{other}: {body}");
    }
    for ours in [host, "host: 127.0.0.1:1", "host: [::1]", "host: Metrics.Example:80"] {
        let (status, head, body) = network.ask("GET", "/v1/health", &[ours, &right]);
        assert_eq!(status, 200, "{ours}: {body}");
        assert!(!head.contains("access-control"), "no page of another origin may read it: {head}");
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["sees_all"], true);
    }
}

#[test]
fn a_token_is_for_looking_unless_more_is_said() {
    let program = Running::start(&compile("chase", &["-O2", "-g"]), &["8"]).0;
    let reader = Network::start("");
    let token = reader.token_file.to_str().unwrap().to_owned();
    let (code, said) = reader.client(&["status", "--token-file", &token]);
    assert!(code == Some(0) && said.starts_with("ok:"), "{said}");
    let (code, said) = reader.client(&["attach", "-p", &program.pid(), "--token-file", &token]);
    assert!(code == Some(3) && said.contains("tcp.rights"), "{said}");
    let id = reader.daemon.attach(&program.pid());
    if let Some(id) = id {
        let (code, said) = reader.client(&["detach", &id.to_string(), "--token-file", &token]);
        assert!(code == Some(3) && said.contains("looking only"), "{said}");
        let top = ["top", "--token-file", &token, "--json", "--duration", "0.5"];
        let (code, said) = reader.client(&top);
        assert!(code == Some(0) && said.contains("\"<Total>\""), "{said}");
    }
    let (code, said) = reader.client(&["sessions"]);
    assert!(code == Some(3) && said.contains("--token-file"), "{said}");
    let all = Network::start("rights = \"all\"\n");
    let token = all.token_file.to_str().unwrap().to_owned();
    if id.is_some() {
        let top =
            ["top", "-p", &program.pid(), "--once", "--duration", "0.5", "--token-file", &token];
        let (code, said) = all.client(&top);
        assert!(code == Some(0) && said.contains("<Total>"), "{said}");
    }
    assert_eq!(all.daemon.get("/v1/sessions")["sessions"], serde_json::json!([]), "it ended");
}

#[test]
fn who_has_no_token_excludes_nobody_who_has_it() {
    let network = Network::start("");
    // They say nothing, or show a wrong token, and stay.
    let held: Vec<TcpStream> = (0..100)
        .map(|number| {
            let mut stream = TcpStream::connect(&network.address).unwrap();
            if number % 2 == 0 {
                let request = "GET /v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n";
                stream.write_all(request.as_bytes()).unwrap();
            }
            stream
        })
        .collect();
    let right = format!("authorization: Bearer {TOKEN}");
    let (status, _, body) = network.ask("GET", "/v1/health", &["host: localhost", &right]);
    assert_eq!(status, 200, "{body}");
    // Eight of them at most, itself, and those on which it was waited for.
    let n_connections = &serde_json::from_str::<Value>(&body).unwrap()["n_connections"];
    assert!(n_connections.as_u64().unwrap() < 20, "{n_connections}");
    drop(held);
    let mut stream = TcpStream::connect(&network.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 401") && answer.contains("connection: close"), "{answer}");
}

/// A stream over TCP that is open.
fn open_stream(network: &Network, token: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&network.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let request = format!(
        "GET /v1/sessions/waiting/stream HTTP/1.1\r\nhost: localhost\r\n\
         authorization: Bearer {token}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&head));
    stream
}

#[test]
fn a_stream_ends_with_the_token_that_opened_it() {
    let session = "[[session]]\nname = \"waiting\"\ncgroup = \"/no/such/group\"\n";
    let network = Network::start(session);
    let is_closed = |mut stream: TcpStream| {
        let mut rest = Vec::new();
        let read = stream.read_to_end(&mut rest);
        let is_gone = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionReset;
        read.as_ref().map_or_else(is_gone, |_| true)
    };
    let stream = open_stream(&network, TOKEN);
    let other = "YW5vdGhlciB0b2tlbiBvZiB0ZXN0cw";
    write_token(&network.token_file, other, 0o600);
    network.daemon.signal(Signal::HUP);
    assert!(is_closed(stream), "the token was replaced");
    let stream = open_stream(&network, other);
    std::fs::write(&network.daemon.config, session).unwrap();
    network.daemon.signal(Signal::HUP);
    assert!(is_closed(stream), "TCP is not configured any more");
    let Network { mut daemon, .. } = network;
    daemon.wait_until("it says that it listens all the same", |daemon| {
        let log = daemon.log();
        log.lines().any(|line| line.contains("tcp.listen") && line.contains("restart"))
    });
}

#[test]
fn a_token_that_others_may_read_is_refused_and_a_new_one_is_taken() {
    let mut network = Network::start("");
    let other = "YW5vdGhlciB0b2tlbiBvZiB0ZXN0cw";
    write_token(&network.token_file, other, 0o644);
    network.daemon.signal(Signal::HUP);
    network.daemon.wait_until("it says what is wrong", |daemon| {
        daemon.log().contains("may be read by others")
    });
    let status = |network: &Network, token: &str| {
        let token = format!("authorization: Bearer {token}");
        network.ask("GET", "/v1/health", &["host: localhost", &token]).0
    };
    assert_eq!((status(&network, other), status(&network, TOKEN)), (401, 200));
    write_token(&network.token_file, other, 0o600);
    network.daemon.signal(Signal::HUP);
    network.daemon.wait_until("the configuration is read again", |daemon| {
        daemon.log().contains("was read again")
    });
    assert_eq!((status(&network, other), status(&network, TOKEN)), (200, 401));
    // A daemon does not begin with one, and the check says so beforehand.
    write_token(&network.token_file, other, 0o604);
    let config = network.daemon.config.to_str().unwrap();
    for args in [&["config", "check", config][..], &["daemon", "--config", config, "--socket", "x"]]
    {
        let output = dataspace(args).stdin(Stdio::null()).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(3) && errors.contains("chmod 0640"), "{errors}");
    }
}
