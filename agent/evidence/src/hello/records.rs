//! Records and handshake messages of one direction, put together from chunks.

use arrayvec::ArrayVec;

use super::chain::Counter;
use super::codes::{Alert, AlertLevel};
use super::{GaveUp, TLS_LIMIT};

/// Type, version and length.
pub(super) const RECORD_HEADER: usize = 5;
/// Type and length.
const MESSAGE_HEADER: usize = 4;
/// Level and description.
const ALERT: usize = 2;
/// Room for the body of a message before any of it has come: most hellos fit, and a length
/// that lies costs no more.
const BODY_AT_FIRST: usize = 1024;

/// Longest record body: RFC 5246, 6.2.3.
const RECORD_LIMIT: usize = (1 << 14) + 2048;

/// Record types (IANA, TLS ContentType).
pub(super) mod content {
    pub(crate) const CHANGE_CIPHER_SPEC: u8 = 20;
    pub(crate) const ALERT: u8 = 21;
    pub(crate) const HANDSHAKE: u8 = 22;
    pub(crate) const APPLICATION_DATA: u8 = 23;
    pub(crate) const HEARTBEAT: u8 = 24;
}

/// Handshake message types (IANA, TLS HandshakeType).
pub(super) mod message {
    pub(crate) const CLIENT_HELLO: u8 = 1;
    pub(crate) const SERVER_HELLO: u8 = 2;
    pub(crate) const NEW_SESSION_TICKET: u8 = 4;
    pub(crate) const CERTIFICATE: u8 = 11;
    pub(crate) const SERVER_KEY_EXCHANGE: u8 = 12;
    pub(crate) const SERVER_HELLO_DONE: u8 = 14;
    pub(crate) const CERTIFICATE_VERIFY: u8 = 15;
    pub(crate) const CLIENT_KEY_EXCHANGE: u8 = 16;

    /// Whether the body is read. Of the others type and length are enough, and
    /// certificates are long.
    pub(crate) fn is_read(kind: u8) -> bool {
        matches!(
            kind,
            CLIENT_HELLO
                | SERVER_HELLO
                | NEW_SESSION_TICKET
                | SERVER_KEY_EXCHANGE
                | CERTIFICATE_VERIFY
        )
    }
}

/// A handshake message.
#[derive(Debug)]
pub(super) struct Message {
    pub kind: u8,
    /// Length of the body in bytes, as the header states it.
    pub length: usize,
    /// Empty where [`message::is_read`] says no: such a message is reported as
    /// soon as its header is there.
    pub(crate) body: Vec<u8>,
}

/// What a direction consists of.
#[derive(Debug)]
pub(super) enum Item {
    Message(Message),
    /// A Certificate message, reported before, is over: how many it held.
    Certificates(u32),
    Alert(AlertLevel, Alert),
    ChangeCipherSpec,
    ApplicationData,
}

/// The record layer, without its encryption.
#[derive(Debug, Default)]
pub(super) struct Records {
    header: ArrayVec<u8, RECORD_HEADER>,
    content: u8,
    /// Bytes of the present record that have not come.
    rest: usize,
    alert: ArrayVec<u8, ALERT>,
    messages: Messages,
}

impl Records {
    /// Takes bytes off the front of `input` up to the next item; None when all
    /// are taken.
    ///
    /// # Errors
    /// [`GaveUp::Malformed`] and [`GaveUp::TooLong`], for headers that say so.
    pub(super) fn next(&mut self, input: &mut &[u8]) -> Result<Option<Item>, GaveUp> {
        loop {
            if self.rest == 0 {
                if !fill_array(&mut self.header, input) {
                    return Ok(None);
                }
                if let Some(item) = self.begin()? {
                    return Ok(Some(item));
                }
                continue;
            }
            if input.is_empty() {
                return Ok(None);
            }
            if let Some(item) = self.body(input)? {
                return Ok(Some(item));
            }
        }
    }

    /// A record's header is there.
    fn begin(&mut self) -> Result<Option<Item>, GaveUp> {
        let (content, length) = header(&self.header).ok_or(GaveUp::Malformed)?;
        self.header.clear();
        self.alert.clear();
        (self.content, self.rest) = (content, length);
        Ok(match content {
            content::CHANGE_CIPHER_SPEC => Some(Item::ChangeCipherSpec),
            content::APPLICATION_DATA => Some(Item::ApplicationData),
            _ => None,
        })
    }

    /// Bytes of a record's body are there: of this record's, not beyond.
    fn body(&mut self, input: &mut &[u8]) -> Result<Option<Item>, GaveUp> {
        let (mut body, beyond) = input.split_at(self.rest.min(input.len()));
        let before = body.len();
        let item = match self.content {
            content::HANDSHAKE => self.messages.next(&mut body)?,
            content::ALERT => self.alert(&mut body),
            _ => {
                body = &[];
                None
            }
        };
        let taken = before - body.len();
        self.rest -= taken;
        *input = input.get(taken..).unwrap_or(beyond);
        Ok(item)
    }

    fn alert(&mut self, body: &mut &[u8]) -> Option<Item> {
        let whole = fill_array(&mut self.alert, body);
        let item = match *self.alert.as_slice() {
            [level, description] if whole => {
                Some(Item::Alert(AlertLevel::of(level), Alert(description)))
            }
            _ => None,
        };
        if whole {
            self.alert.clear();
        }
        item
    }
}

/// Type and length of a record; None if no TLS peer sends such a header.
pub(super) fn header(bytes: &[u8]) -> Option<(u8, usize)> {
    let [content, 3, 0..=4, high, low] = *bytes else {
        return None;
    };
    let length = usize::from(u16::from_be_bytes([high, low]));
    let known = (content::CHANGE_CIPHER_SPEC..=content::HEARTBEAT).contains(&content);
    (known && length <= RECORD_LIMIT).then_some((content, length))
}

/// Handshake messages, which may span records or share them.
#[derive(Debug, Default)]
struct Messages {
    header: ArrayVec<u8, MESSAGE_HEADER>,
    /// The message whose body is being read.
    open: Option<Message>,
    /// Bytes to pass over: the body of a message that is not read.
    skip: usize,
    /// Of a Certificate message that is passed over.
    certificates: Option<Counter>,
}

impl Messages {
    fn next(&mut self, input: &mut &[u8]) -> Result<Option<Item>, GaveUp> {
        let (skipped, rest) = input.split_at(self.skip.min(input.len()));
        self.skip -= skipped.len();
        *input = rest;
        if let Some(counter) = &mut self.certificates {
            counter.pass(skipped);
        }
        if self.skip == 0
            && let Some(counter) = self.certificates.take()
        {
            return Ok(Some(Item::Certificates(counter.count())));
        }
        if self.open.is_none() {
            if !fill_array(&mut self.header, input) {
                return Ok(None);
            }
            let message = self.begin()?;
            if !message::is_read(message.kind) {
                self.skip = message.length;
                let passes = message.kind == message::CERTIFICATE;
                self.certificates = passes.then(Counter::default);
                return Ok(Some(Item::Message(message)));
            }
            self.open = Some(message);
        }
        let whole = |message: &mut Message| fill(&mut message.body, message.length, input);
        Ok(self.open.take_if(whole).map(Item::Message))
    }

    fn begin(&mut self) -> Result<Message, GaveUp> {
        let [kind, high, middle, low] = *self.header.as_slice() else {
            return Err(GaveUp::Malformed);
        };
        self.header.clear();
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        if message::is_read(kind) && length > TLS_LIMIT {
            return Err(GaveUp::TooLong);
        }
        Ok(Message {
            kind,
            length,
            body: Vec::with_capacity(match message::is_read(kind) {
                true => length.min(BODY_AT_FIRST),
                false => 0,
            }),
        })
    }
}

/// Moves bytes from `input` to `buffer` until it holds `want`; false if there
/// are not enough.
fn fill(buffer: &mut Vec<u8>, want: usize, input: &mut &[u8]) -> bool {
    let missing = want.saturating_sub(buffer.len());
    let (taken, rest) = input.split_at(missing.min(input.len()));
    buffer.extend_from_slice(taken);
    *input = rest;
    buffer.len() >= want
}

/// The same for a buffer of this size.
fn fill_array<const N: usize>(buffer: &mut ArrayVec<u8, N>, input: &mut &[u8]) -> bool {
    let (taken, rest) = input.split_at(buffer.remaining_capacity().min(input.len()));
    buffer.extend(taken.iter().copied());
    *input = rest;
    buffer.is_full()
}
