//! Requests to the management interface, and their responses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// How long one response may take: a watchdog.
const ANSWER: Duration = Duration::from_secs(120);
/// The longest response: the command line accepts no longer one.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A request, and its expected result.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: &'static str,
    /// The path with the query.
    pub path: String,
    pub body: String,
    /// Header fields besides those of every request.
    pub headers: Vec<(&'static str, String)>,
    pub status: u16,
    /// The expected number of items in the response.
    pub items: Option<usize>,
}

impl Request {
    pub fn new(method: &'static str, path: impl Into<String>) -> Self {
        let (path, body, headers) = (path.into(), String::new(), Vec::new());
        Self { method, path, body, headers, status: 200, items: None }
    }

    pub fn json(self, body: &Value) -> Self {
        self.text(body.to_string())
    }

    pub fn text(self, body: String) -> Self {
        Self { body, ..self }
    }

    pub fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sets the expected status.
    pub fn ends(self, status: u16) -> Self {
        Self { status, ..self }
    }

    /// Sets the expected number of items in the response.
    pub fn gives(self, items: usize) -> Self {
        Self { items: Some(items), ..self }
    }

    /// Returns the path without the query.
    pub fn place(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    /// Describes it for messages.
    pub fn says(&self) -> String {
        let path: String = self.path.chars().take(100).collect();
        format!("{} {path}", self.method)
    }

    /// Returns an error unless the response is as expected.
    pub fn check(&self, answer: &Answer) -> Result<()> {
        let start: String = String::from_utf8_lossy(&answer.body).chars().take(300).collect();
        ensure!(answer.status == self.status, "{}: {}: {start}", self.says(), answer.status);
        if let Some(wanted) = self.items {
            let items = answer.json()?["items"].as_array().map(Vec::len);
            ensure!(items == Some(wanted), "{}: {items:?} items: {start}", self.says());
        }
        Ok(())
    }
}

/// A response.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// The session that a login returns.
    pub session: Option<String>,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Result<Value> {
        serde_json::from_slice(&self.body).context("the response is not JSON")
    }
}

/// A connection for consecutive requests.
pub struct Connection {
    stream: BufReader<TcpStream>,
    /// The part of the head common to all requests.
    common: String,
}

impl Connection {
    pub fn open(api: &str, token: &str) -> Result<Self> {
        let stream = TcpStream::connect(api)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        let common = format!("Host: {api}\r\nAuthorization: Bearer {token}\r\n");
        Ok(Self { stream: BufReader::new(stream), common })
    }

    pub fn ask(&mut self, request: &Request) -> Result<Answer> {
        self.send(request)?;
        self.receive().with_context(|| request.says())
    }

    pub fn send(&mut self, request: &Request) -> Result<()> {
        let mut text = format!("{} {} HTTP/1.1\r\n{}", request.method, request.path, self.common);
        for (name, value) in &request.headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if !request.body.is_empty() {
            text.push_str("Content-Type: application/json\r\n");
        }
        text.push_str(&format!("Content-Length: {}\r\n\r\n{}", request.body.len(), request.body));
        self.stream.get_mut().write_all(text.as_bytes()).with_context(|| request.says())
    }

    pub fn receive(&mut self) -> Result<Answer> {
        let first = self.line()?;
        let status = first.split(' ').nth(1).context("no status")?.parse()?;
        let (mut length, mut is_chunked, mut session) = (0, false, None);
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            match (name.to_ascii_lowercase().as_str(), value.trim()) {
                ("content-length", value) => length = value.parse()?,
                ("transfer-encoding", value) => is_chunked = value == "chunked",
                ("x-auth-token", value) => session = Some(value.to_owned()),
                _ => {}
            }
        }
        let mut body = Vec::new();
        match is_chunked {
            true => self.chunks(&mut body)?,
            false => self.take(length, &mut body)?,
        }
        Ok(Answer { status, session, body })
    }

    fn chunks(&mut self, body: &mut Vec<u8>) -> Result<()> {
        loop {
            let length = usize::from_str_radix(&self.line()?, 16)?;
            self.take(length, body)?;
            self.line()?;
            if length == 0 {
                return Ok(());
            }
        }
    }

    fn take(&mut self, length: usize, body: &mut Vec<u8>) -> Result<()> {
        let have = body.len();
        ensure!(have + length <= ANSWER_BYTES_MAX, "the response has {} bytes", have + length);
        body.resize(have + length, 0);
        Ok(self.stream.read_exact(&mut body[have..])?)
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            bail!("the connection ended");
        }
        line.truncate(line.trim_end().len());
        Ok(line)
    }
}
