//! A map that gives up its oldest entry when it is full.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// For keys that the kernel gives out: nobody can choose them so that they collide, and a
/// handshake is looked up a dozen times.
pub(super) type NumberMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// So many that are gone may stay in the order, and as many as there are entries.
const ROOM_FOR_GONE: usize = 64;

/// At most so many entries; the one that was put in first goes first.
#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    room: usize,
    entries: NumberMap<K, (u64, V)>,
    /// In the order in which they were put in; among them some that are gone.
    order: VecDeque<(u64, K)>,
    inserted: u64,
}

impl<K: Copy + Eq + Hash, V> Bounded<K, V> {
    pub(super) fn new(room: usize) -> Self {
        Self {
            room,
            entries: NumberMap::default(),
            order: VecDeque::new(),
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
        if self.order.len() > ROOM_FOR_GONE + 2 * self.entries.len() {
            self.forget_gone();
        }
        self.order.push_back((self.inserted, key));
        replaced.or(evicted)
    }

    pub(super) fn remove(&mut self, key: K) -> Option<V> {
        self.entries.remove(&key).map(|(_, value)| value)
    }

    pub(super) fn pop_oldest(&mut self) -> Option<V> {
        while let Some((number, key)) = self.order.pop_front() {
            if self.is_here(number, &key) {
                return self.remove(key);
            }
        }
        None
    }

    fn is_here(&self, number: u64, key: &K) -> bool {
        self.entries.get(key).is_some_and(|(own, _)| *own == number)
    }

    /// Rare enough to cost each entry that was ever put in about one look-up.
    fn forget_gone(&mut self) {
        let mut order = std::mem::take(&mut self.order);
        order.retain(|(number, key)| self.is_here(*number, key));
        self.order = order;
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
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

    #[test]
    fn what_is_gone_takes_bounded_room() {
        let mut map = Bounded::new(8);
        map.insert(0, 0);
        for key in 1..10_000 {
            map.insert(key, key);
            assert_eq!(map.remove(key), Some(key));
            assert!(map.order.len() <= ROOM_FOR_GONE + 5, "{key}");
        }
        assert_eq!(map.pop_oldest(), Some(0));
        assert_eq!(map.pop_oldest(), None);
    }

    #[test]
    fn an_entry_that_was_replaced_is_as_new() {
        let mut map = Bounded::new(2);
        map.insert(1, 'a');
        map.insert(2, 'b');
        map.remove(1);
        map.insert(1, 'c');
        assert_eq!(map.insert(3, 'd'), Some('b'));
        assert_eq!(map.pop_oldest(), Some('c'));
    }
}
