//! The server's certificates, where they travel in clear: up to TLS 1.2.

/// A Certificate message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Its length in bytes, as its header states it.
    pub length: usize,
    /// Certificates in it; None where it was not seen to its end.
    pub certificates: Option<u32>,
}

/// Bytes of a length field (RFC 5246, 7.4.2).
const FIELD: usize = 3;

/// Counts the certificates of a message that passes by, without keeping them.
#[derive(Debug, Default)]
pub(super) struct Counter {
    field: Vec<u8>,
    /// The length of the whole list has come.
    in_list: bool,
    /// Bytes to pass over: the rest of a certificate.
    skip: usize,
    count: u32,
}

impl Counter {
    /// The next bytes of the message's body.
    pub(super) fn pass(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (_, rest) = bytes.split_at(self.skip.min(bytes.len()));
            self.skip -= bytes.len() - rest.len();
            let missing = FIELD - self.field.len();
            let (taken, rest) = rest.split_at(missing.min(rest.len()));
            self.field.extend_from_slice(taken);
            bytes = rest;
            if let [high, middle, low] = *self.field.as_slice() {
                self.field.clear();
                self.begin(u32::from_be_bytes([0, high, middle, low]) as usize);
            }
        }
    }

    fn begin(&mut self, length: usize) {
        if self.in_list {
            self.count = self.count.saturating_add(1);
            self.skip = length;
        }
        self.in_list = true;
    }

    /// How many have begun.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(lengths: &[u8]) -> Vec<u8> {
        let entries = lengths.iter().flat_map(|length| {
            let entry = [0, 0, *length].into_iter();
            entry.chain(std::iter::repeat_n(7, usize::from(*length)))
        });
        [0, 0, 99].into_iter().chain(entries).collect()
    }

    #[test]
    fn certificates_are_counted_in_pieces_of_any_size() {
        for (lengths, expected) in [(&[][..], 0), (&[5][..], 1), (&[5, 0, 200, 1][..], 4)] {
            let message = list(lengths);
            for size in 1..=message.len() {
                let mut counter = Counter::default();
                message.chunks(size).for_each(|piece| counter.pass(piece));
                assert_eq!(counter.count(), expected, "{lengths:?} by {size}");
            }
        }
    }
}
