//! Remembers what code was found to do: a loop is sampled again and again.

use std::collections::HashMap;

use super::{Kind, classify};

/// Verdicts by the code itself, so that one can neither be out of date, nor meant for
/// another process at the same address.
///
/// Two generations make it bounded: when the young one is full, it becomes the old one, and
/// what has not been asked for since is forgotten.
#[derive(Debug)]
pub struct Cache {
    capacity: usize,
    young: HashMap<Vec<u8>, Kind>,
    old: HashMap<Vec<u8>, Kind>,
}

impl Cache {
    /// Holds at most `capacity` verdicts.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }

    /// Like [`classify`].
    pub fn classify(&mut self, code: &[u8], at: usize) -> Kind {
        let key = [code, &at.to_le_bytes()].concat();
        if let Some(&kind) = self.young.get(&key) {
            return kind;
        }
        let (key, kind) = match self.old.remove_entry(&key) {
            Some(known) => known,
            None => (key, classify(code, at)),
        };
        if self.young.len() >= self.capacity / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, kind);
        kind
    }

    /// How many verdicts it holds.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
