//! A rustls server with a thread per connection, for the tests.
//!
//! `rustls-server CERTIFICATE KEY` prints `port N` and answers one request per
//! connection, with as many bytes as its path says: `/1048576`. It resumes TLS 1.2 by session id and by ticket, TLS 1.3 by PSK.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

#[cfg(feature = "aws-lc")]
use rustls::crypto::aws_lc_rs::Ticketer;
#[cfg(feature = "ring")]
use rustls::crypto::ring::Ticketer;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ServerSessionMemoryCache;
use rustls::{ServerConfig, ServerConnection, Stream};

const SESSIONS: usize = 1024;
/// Of the size of a record.
const PIECE: usize = 16 * 1024;
const ANSWER: &[u8] = b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nok\n";

fn configuration(certificate: &str, key: &str) -> Result<ServerConfig, Box<dyn Error>> {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.session_storage = ServerSessionMemoryCache::new(SESSIONS);
    config.ticketer = Ticketer::new()?;
    Ok(config)
}

/// How long an answer the request asks for, if it says so.
fn asked_length(request: &[u8]) -> Option<usize> {
    let path = request.strip_prefix(b"GET /")?;
    let end = path.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&path[..end]).ok()?.parse().ok()
}

fn answer(stream: &mut impl Write, request: &[u8]) -> std::io::Result<()> {
    let Some(length) = asked_length(request) else {
        return stream.write_all(ANSWER);
    };
    write!(
        stream,
        "HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n"
    )?;
    let piece = [0; PIECE];
    let mut left = length;
    while left > 0 {
        let now = left.min(PIECE);
        stream.write_all(&piece[..now])?;
        left -= now;
    }
    Ok(())
}

/// Errors are what many of the tests' clients provoke: they end the connection.
fn serve(mut socket: TcpStream, config: Arc<ServerConfig>) -> Result<(), Box<dyn Error>> {
    let mut connection = ServerConnection::new(config)?;
    let mut stream = Stream::new(&mut connection, &mut socket);
    let mut request = [0; 4096];
    match stream.read(&mut request) {
        Ok(0) => return Ok(()),
        Ok(length) => answer(&mut stream, &request[..length])?,
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
        Err(error) => return Err(error.into()),
    }
    connection.send_close_notify();
    while connection.wants_write() {
        connection.write_tls(&mut socket)?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [certificate, key] = arguments.as_slice() else {
        return Err("usage: rustls-server CERTIFICATE KEY".into());
    };
    let config = Arc::new(configuration(certificate, key)?);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("port {}", listener.local_addr()?.port());
    for socket in listener.incoming() {
        let (socket, config) = (socket?, Arc::clone(&config));
        thread::spawn(move || serve(socket, config).ok());
    }
    Ok(())
}
