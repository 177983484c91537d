//! Bytes before TLS, and traffic that is none.

use super::fixture::{bytes, fed, read, summary};
use crate::evidence::hello::{Direction, Exchange, State};

const C: Direction = Direction::FromClient;
const S: Direction = Direction::FromServer;

fn client(bytes: &[u8]) -> State {
    Exchange::new().received(C, bytes).state
}

fn server(bytes: &[u8]) -> State {
    Exchange::new().received(S, bytes).state
}

#[test]
fn other_protocols_are_recognised_within_five_bytes() {
    for first in [
        &b"GET /"[..],
        b"POST ",
        b"PRI *",
        b"SSH-2",
        b"*1\r\n$",
        b"CONNE",
        b"\x00\x00\x00\x08\x00",
        b"\x16\x03\x09\x00\x01",
        b"\x16\x03\x01\xff\xff",
        b"\x10\x1f\x00\x04M",
        b"0....",
    ] {
        assert_eq!(client(first), State::NotTls, "{}", first.escape_ascii());
    }
    for first in [&b"SSH-2"[..], b"HTTP/", b"-ERR ", b"E\0\0\0\x20"] {
        assert_eq!(server(first), State::NotTls, "{}", first.escape_ascii());
    }
}

#[test]
fn http_is_recognised_by_its_first_byte() {
    let progress = Exchange::new().received(C, b"G");
    assert_eq!(progress.state, State::NotTls);
    assert_eq!((progress.from_client, progress.from_server), (0, 0));
}

#[test]
fn a_line_in_a_mail_session_without_tls_is_followed_for_a_while_only() {
    let mut exchange = fed([(S, &b"220 mail.example.org ESMTP\r\n"[..])]);
    let mut lines = 0;
    while exchange.progress().state == State::NeedMore {
        exchange.received(C, b"NOOP\r\n");
        exchange.received(S, b"250 Ok\r\n");
        lines += 1;
        assert!(lines < 1000);
    }
    assert_eq!(exchange.progress().state, State::NotTls);
}

#[test]
fn a_line_without_end_is_bounded() {
    let mut exchange = fed([(S, &b"* OK "[..])]);
    for _ in 0..5000 {
        exchange.received(S, b"x");
    }
    assert_eq!(exchange.progress().state, State::NotTls);
}

/// Found by fuzzing: one look past the bound saw more than many small ones.
#[test]
fn the_look_ahead_ends_at_the_same_byte_for_any_chunk() {
    for length in 4080..4100 {
        for record in [&b"\x16\x03\x01\x00\x05"[..], b"\x17\x03\x03\x00\x05"] {
            let mut session = b"* OK ".to_vec();
            session.resize(length - 1, b'x');
            session.push(b'\n');
            session.extend(record);
            let whole = fed([(S, session.as_slice())]);
            let pieces = fed(session.chunks(1).map(|byte| (S, byte)));
            assert_eq!(whole.progress(), pieces.progress(), "after {length}");
        }
    }
}

/// A PROXY header in front of a captured hello.
fn behind(header: &[u8]) -> Exchange {
    let fixture = read("openssl30-tls13-full");
    fed(std::iter::once((C, header)).chain(fixture.whole()))
}

#[test]
fn a_proxy_header_of_version_2_comes_before_tls() {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00\x0c".to_vec();
    header.extend(bytes("7f0000017f000001c35001bb"));
    assert!(summary(&behind(&header)).contains("TLS1.3"));
    assert!(behind(&header).facts().unwrap().opening.proxy_protocol);
    let local = b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00";
    assert!(summary(&behind(local)).contains("TLS1.3"));
}

#[test]
fn a_proxy_header_of_version_1_ends_with_its_line() {
    let header = b"PROXY TCP4 192.0.2.1 192.0.2.2 50000 443\r\n";
    assert!(summary(&behind(header)).ends_with("proxy_protocol"));
    assert_eq!(client(&[b'P'; 3]), State::NotTls);
    let mut endless = b"PROXY ".to_vec();
    endless.resize(108, b'x');
    assert_eq!(client(&endless), State::NotTls);
}

#[test]
fn a_proxy_header_may_come_before_starttls() {
    let fixture = read("starttls-postgresql-tls13");
    let header = &b"PROXY UNKNOWN\r\n"[..];
    let exchange = fed(std::iter::once((C, header)).chain(fixture.whole()));
    assert_eq!(
        summary(&exchange),
        format!("{} proxy_protocol", fixture.expected)
    );
}

#[test]
fn only_one_proxy_header_is_taken() {
    assert_eq!(client(b"PROXY UNKNOWN\r\nPROXY UNKNOWN\r\n"), State::NotTls);
}

#[test]
fn a_refused_request_for_tls_ends_it() {
    let mut exchange = fed([(C, bytes("0000000804d2162f").as_slice()), (S, &b"N"[..])]);
    let startup = bytes("0000002100030000");
    assert_eq!(exchange.received(C, &startup).state, State::NotTls);
}

#[test]
fn a_gss_request_may_come_before_the_one_for_tls() {
    let fixture = read("starttls-postgresql-tls13");
    let gss = bytes("0000000804d21630");
    let exchange = fed([(C, gss.as_slice()), (S, &b"N"[..])]
        .into_iter()
        .chain(fixture.whole()));
    assert_eq!(summary(&exchange), fixture.expected);
}

#[test]
fn an_ldap_bind_is_no_request_for_tls() {
    assert_eq!(
        client(&bytes("300c020101600702010304008000")),
        State::NotTls
    );
}

/// Found by fuzzing: a length of an unknown form, a message id beyond its end.
#[test]
fn an_ldap_request_has_proper_lengths() {
    assert_eq!(client(&bytes("30c0020101")), State::NotTls);
    assert_eq!(client(&bytes("301d02ff")), State::NotTls);
}

#[test]
fn a_mysql_login_without_tls_ends_it() {
    let fixture = read("starttls-mysql-tls13");
    let mut exchange = fed(fixture.whole().take(1));
    assert_eq!(
        exchange.received(C, &bytes("c000000185a67f00")).state,
        State::NotTls
    );
}
