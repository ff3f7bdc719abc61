//! Whoever comes: the right answer, and the run is not disturbed.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Command, Control, Server};
use crate::{Error, Result};

/// Writes down what it is asked.
#[derive(Default)]
struct Notebook(Mutex<Vec<Command>>);

impl Control for Notebook {
    fn hello(&self) -> Value {
        json!({ "filters": ["nlms"] })
    }
    fn state(&self) -> Value {
        json!({ "commands": self.0.lock().unwrap().len() })
    }
    fn call(&self, command: Command) -> Result<Value> {
        match &command {
            Command::Set { value, .. } if *value > 2.0 => return Err(Error::parameter("mu", "between 0 and 2", value)),
            _ => self.0.lock().unwrap().push(command),
        }
        Ok(json!({}))
    }
}

struct Visit {
    server: Server,
    notebook: Arc<Notebook>,
    address: SocketAddr,
    token: String,
}

fn visit() -> Visit {
    let notebook = Arc::new(Notebook::default());
    let server = Server::start(([127, 0, 0, 1], 0).into(), notebook.clone()).unwrap();
    let (address, token) = server.url().strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
    Visit { address: address.parse().unwrap(), token: token.into(), server, notebook }
}

impl Visit {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// The status and the body of the answer to `head` (request line and headers) and `body`.
    fn ask(&self, head: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect();
        // The other end may have answered and closed before all of an oversized body is written.
        let _ = write!(stream, "{head}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|s| s.parse().ok()).unwrap_or(0);
        (status, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    fn get(&self, path: &str, host: &str, more: &str) -> u16 {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {host}{more}"), "").0
    }

    fn own(&self) -> String {
        self.address.to_string()
    }

    fn bearer(&self) -> String {
        format!("\r\nAuthorization: Bearer {}", self.token)
    }

    fn post(&self, body: &str) -> (u16, String) {
        self.ask(&format!("POST /control HTTP/1.1\r\nHost: {}{}", self.own(), self.bearer()), body)
    }
}

#[test]
fn the_user_comes_in_with_the_printed_address_or_its_token() {
    let visit = visit();
    assert_eq!(visit.get(&format!("/hello?token={}", visit.token), &visit.own(), ""), 200);
    assert_eq!(visit.get("/state", &visit.own(), &visit.bearer()), 200);
    assert_eq!(visit.get("/state", &format!("localhost:{}", visit.address.port()), &visit.bearer()), 200);
    let own = format!("{}\r\nOrigin: http://{}", visit.bearer(), visit.own());
    assert_eq!(visit.get("/state", &visit.own(), &own), 200);
    assert_ne!(visit.token, self::visit().token);
    assert!(visit.token.len() == 32);
}

#[test]
fn foreign_hosts_origins_and_tokens_are_refused_by_their_status() {
    let visit = visit();
    let token = visit.bearer();
    for host in ["evil.example", "evil.example:80", "127.0.0.1", "localhost", "127.0.0.1:1", ""] {
        assert_eq!(visit.get("/state", host, &token), 421, "{host:?}");
    }
    assert_eq!(visit.get("/state", &visit.own(), &format!("{token}\r\nHost: evil.example")), 421);
    for origin in ["http://evil.example", "null", "https://127.0.0.1", "http://127.0.0.1:1"] {
        assert_eq!(visit.get("/state", &visit.own(), &format!("{token}\r\nOrigin: {origin}")), 403, "{origin}");
    }
    for wrong in ["", "\r\nAuthorization: Bearer ", "\r\nAuthorization: Bearer 0123", "\r\nAuthorization: Basic x"] {
        assert_eq!(visit.get("/state", &visit.own(), wrong), 401, "{wrong:?}");
    }
    assert_eq!(visit.get("/state?token=00000000000000000000000000000000", &visit.own(), ""), 401);
    assert_eq!(visit.ask("GET /state HTTP/1.0", "").0, 421);
    assert!(visit.notebook.0.lock().unwrap().is_empty());
}

#[test]
fn answers_allow_no_other_site_and_no_cache() {
    let visit = visit();
    let mut stream = visit.connect();
    write!(stream, "GET /state HTTP/1.1\r\nHost: {}\r\nOrigin: http://evil.example\r\nConnection: close\r\n\r\n", visit.own()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let answer = answer.to_ascii_lowercase();
    assert!(!answer.contains("access-control-"), "{answer}");
    assert!(answer.contains("content-security-policy: default-src 'none'") && answer.contains("cache-control: no-store"), "{answer}");
}

#[test]
fn commands_are_carried_out_or_refused_in_words() {
    let visit = visit();
    let (status, _) = visit.post(r#"{"do":"set","filter":"nlms","parameter":"mu","value":0.1}"#);
    assert_eq!(status, 200);
    let done = Command::Set { filter: "nlms".into(), parameter: "mu".into(), value: 0.1 };
    assert_eq!(*visit.notebook.0.lock().unwrap(), [done]);
    let (status, body) = visit.post(r#"{"do":"set","filter":"nlms","parameter":"mu","value":3}"#);
    assert!(status == 422 && body.contains("mu must be between 0 and 2, got 3"), "{status} {body}");
    for wrong in ["", "{}", "[]", r#"{"do":"erase"}"#, r#"{"do":"stop","path":"/etc/passwd"}"#, r#"{"do":"reset"}"#, "\u{0}"] {
        assert_eq!(visit.post(wrong).0, 400, "{wrong:?}");
    }
    assert_eq!(visit.post(&"x".repeat(100_000)).0, 413);
    assert_eq!(visit.get("/control", &visit.own(), &visit.bearer()), 405);
    assert_eq!(visit.get("/../../etc/passwd", &visit.own(), &visit.bearer()), 404);
    assert_eq!(visit.notebook.0.lock().unwrap().len(), 1);
}

#[test]
fn a_thousand_connections_leave_room_for_the_user() {
    let visit = visit();
    // The first ones take all the room and only wait; those over the limit are told so at once. A process has about a thousand files, so not all are kept open.
    let connect = || TcpStream::connect(visit.address).unwrap();
    let _idle: Vec<_> = (0..super::listen::CONNECTIONS).map(|_| connect()).collect();
    let mut refused = 0;
    for mut stream in (0..1000 - super::listen::CONNECTIONS).map(|_| connect()) {
        let mut answer = String::new();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.read_to_string(&mut answer).unwrap();
        // On a slow machine a place may have become free meanwhile.
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 503"), "{answer}");
        refused += usize::from(!answer.is_empty());
    }
    assert!(refused > 0);
    // Those that only wait are gone when the time for a head is over.
    std::thread::sleep(super::listen::HEAD + Duration::from_secs(1));
    assert_eq!(visit.get("/state", &visit.own(), &visit.bearer()), 200);
}

#[test]
fn a_head_or_body_that_comes_drop_by_drop_is_cut_off() {
    let visit = visit();
    let (mut head, mut body) = (visit.connect(), visit.connect());
    write!(head, "GET /state HTTP/1.1\r\nHost: {}\r\n", visit.own()).unwrap();
    write!(body, "POST /control HTTP/1.1\r\nHost: {}{}\r\nContent-Length: 50\r\n\r\n", visit.own(), visit.bearer()).unwrap();
    for _ in 0..12 {
        std::thread::sleep(Duration::from_millis(600));
        let _ = head.write_all(b"X-More: 1\r\n");
        let _ = body.write_all(b"{");
    }
    let mut answer = Vec::new();
    let _ = head.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&answer));
    let mut answer = Vec::new();
    let _ = body.read_to_end(&mut answer);
    assert!(answer.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(visit.get("/state", &visit.own(), &visit.bearer()), 200);
}

#[test]
fn a_slow_viewer_gets_the_newest_frame_and_nothing_queues() {
    let visit = visit();
    let screen = visit.server.screen();
    assert!(!screen.watched());
    let mut stream = visit.connect();
    write!(stream, "GET /frames?token={} HTTP/1.1\r\nHost: {}\r\n\r\n", visit.token, visit.own()).unwrap();
    while !screen.watched() {
        std::thread::sleep(Duration::from_millis(5));
    }
    // Some hundred megabytes while nobody reads: the sockets' buffers fill, and the rest is never kept.
    for n in 0..400u32 {
        screen.show(n.to_le_bytes().repeat(1 << 18));
        std::thread::sleep(Duration::from_millis(1));
    }
    screen.show(b"the last one".to_vec());
    let mut seen = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    while !seen.windows(12).any(|w| w == b"the last one") {
        let n = stream.read(&mut buffer).unwrap();
        assert!(n > 0 && seen.len() < 64 << 20, "{} bytes", seen.len());
        seen.extend_from_slice(&buffer[..n]);
    }
    assert!(seen.len() < 40 << 20, "{} bytes were kept", seen.len());
    drop(stream);
    screen.show(vec![0; 1 << 20]);
    for _ in 0..400 {
        screen.show(vec![0; 1 << 20]);
        if !screen.watched() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("a viewer that has gone is still waited for");
}
