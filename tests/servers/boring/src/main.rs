//! A server on BoringSSL with a thread per connection, for the tests.
//!
//! `boring-server CERTIFICATE KEY` prints `port N` and answers one request per connection.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use boring::ssl::{SslAcceptor, SslFiletype, SslMethod};

const ANSWER: &[u8] = b"HTTP/1.0 200 OK\r\nConnection: close\r\n\r\nok\n";

fn acceptor(certificate: &str, key: &str) -> Result<SslAcceptor, Box<dyn Error>> {
    let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls())?;
    builder.set_certificate_chain_file(certificate)?;
    builder.set_private_key_file(key, SslFiletype::PEM)?;
    builder.set_curves_list("X25519MLKEM768:X25519:P-256:P-384:P-521")?;
    Ok(builder.build())
}

/// Errors are what many of the tests' clients provoke: they end the connection.
fn serve(socket: TcpStream, acceptor: &SslAcceptor) -> Result<(), Box<dyn Error>> {
    let mut stream = acceptor.accept(socket)?;
    if stream.read(&mut [0; 4096])? > 0 {
        stream.write_all(ANSWER)?;
    }
    stream.shutdown()?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [certificate, key] = arguments.as_slice() else {
        return Err("usage: boring-server CERTIFICATE KEY".into());
    };
    let acceptor = acceptor(certificate, key)?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("port {}", listener.local_addr()?.port());
    for socket in listener.incoming() {
        let (socket, acceptor) = (socket?, acceptor.clone());
        thread::spawn(move || serve(socket, &acceptor).ok());
    }
    Ok(())
}
