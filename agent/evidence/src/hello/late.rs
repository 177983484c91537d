//! Alerts in clear after the hellos of TLS 1.3.

use super::records::{Item, Records};
use super::{Direction, Facts};

/// What both directions say after an [`Exchange`](super::Exchange) is complete: a
/// client that refuses the server's flight may have no key yet to encrypt its
/// alert with.
#[derive(Debug, Default)]
pub struct Late {
    client: Records,
    server: Records,
    over: bool,
}

impl Late {
    /// Takes in the next bytes of one direction, from the beginning of a record
    /// on, and notes alerts in `facts`. What is no alert ends it.
    pub(crate) fn hear(&mut self, facts: &mut Facts, direction: Direction, bytes: &[u8]) {
        let records = match direction {
            Direction::FromClient => &mut self.client,
            Direction::FromServer => &mut self.server,
        };
        let mut rest = bytes;
        while !self.over {
            match records.next(&mut rest) {
                Ok(Some(Item::Alert(level, alert))) => facts.note_alert(direction, level, alert),
                Ok(Some(Item::ChangeCipherSpec)) => {}
                Ok(Some(Item::Message(_) | Item::Certificates(_) | Item::ApplicationData))
                | Err(_) => self.over = true,
                Ok(None) => break,
            }
        }
    }
}
