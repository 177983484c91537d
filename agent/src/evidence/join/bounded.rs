//! A map that gives up its oldest entry when it is full.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// For keys that the kernel gives out: nobody can choose them so that they collide, and a
/// handshake is looked up a dozen times.
pub(super) type NumberMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// At most so many entries; the one that was put in first goes first.
#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    room: usize,
    entries: NumberMap<K, (u64, V)>,
    order: BTreeMap<u64, K>,
    inserted: u64,
}

impl<K: Copy + Eq + Hash, V> Bounded<K, V> {
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            entries: NumberMap::default(),
            order: BTreeMap::new(),
            inserted: 0,
        }
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        self.entries.get(&key).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        self.entries.get_mut(&key).map(|(_, value)| value)
    }

    /// Puts in an entry in place of that of the same key; what had to go for it
    /// comes back.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let replaced = self.remove(key);
        let evicted = if self.entries.len() >= self.room {
            self.pop_oldest()
        } else {
            None
        };
        self.inserted += 1;
        self.entries.insert(key, (self.inserted, value));
        self.order.insert(self.inserted, key);
        replaced.or(evicted)
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        let (number, value) = self.entries.remove(&key)?;
        self.order.remove(&number);
        Some(value)
    }

    pub(super) fn pop_oldest(&mut self) -> Option<V> {
        let (_, key) = self.order.pop_first()?;
        self.entries.remove(&key).map(|(_, value)| value)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        assert_eq!(self.entries.len(), self.order.len());
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let mut map = Bounded::new(2);
        assert_eq!(map.insert(1, 'a'), None);
        assert_eq!(map.insert(2, 'b'), None);
        assert_eq!(map.insert(1, 'c'), Some('a'));
        assert_eq!(map.insert(3, 'd'), Some('b'));
        assert_eq!((map.get(1), map.get(2)), (Some(&'c'), None));
        assert_eq!(map.remove(1), Some('c'));
        assert_eq!((map.len(), map.pop_oldest()), (1, Some('d')));
        assert_eq!(map.pop_oldest(), None);
    }
}
