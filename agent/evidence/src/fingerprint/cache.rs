//! Remembers what code was found to do: a loop is sampled again and again.

use std::collections::HashMap;
use std::hash::Hash;

use super::{Kind, classify};

/// Answers to questions that are asked again and again.
///
/// Two generations make it bounded: when the young one is full, it becomes the old one, and
/// what has not been asked for since is forgotten.
#[derive(Debug)]
pub struct Answers<Q, A> {
    capacity: usize,
    young: HashMap<Q, A>,
    old: HashMap<Q, A>,
}

impl<Q: Eq + Hash, A: Copy> Answers<Q, A> {
    /// Holds at most `capacity` answers.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }

    /// The answer to a question: that of `find`, the first time.
    pub fn get(&mut self, question: Q, find: impl FnOnce(&Q) -> A) -> A {
        if let Some(&answer) = self.young.get(&question) {
            return answer;
        }
        let answer = self.old.remove(&question);
        let answer = answer.unwrap_or_else(|| find(&question));
        if self.young.len() >= self.capacity / 2 {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(question, answer);
        answer
    }

    /// How many answers it holds.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Verdicts by the code itself, so that one can neither be out of date, nor meant for
/// another process at the same address.
#[derive(Debug)]
pub struct Cache(Answers<Vec<u8>, Kind>);

impl Cache {
    /// Holds at most `capacity` verdicts.
    pub fn new(capacity: usize) -> Self {
        Self(Answers::new(capacity))
    }

    /// Like [`classify`].
    pub fn classify(&mut self, code: &[u8], at: usize) -> Kind {
        let key = [code, &at.to_le_bytes()].concat();
        self.0.get(key, |_| classify(code, at))
    }

    /// How many verdicts it holds.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
