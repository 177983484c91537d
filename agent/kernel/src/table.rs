//! Hashes of the kernel that programs fill and the agent empties.

use std::io;
use std::marker::PhantomData;
use std::os::fd::AsFd as _;

use aya::Pod;
use aya::maps::{HashMap, Map};

use super::batch;
use tlsprof_common::causes::one_line;

/// Taken by one system call: 256 KiB of samples.
const BATCH: usize = 256;

/// A hash of the kernel that is emptied now and then.
pub(super) struct Table<K, V> {
    map: Map,
    room: usize,
    /// The kernel can hand over many elements at once.
    in_batches: bool,
    empty: V,
    keys: PhantomData<K>,
}

impl<K: Pod + Default, V: Pod> Table<K, V> {
    /// `empty` is any value.
    pub(super) fn new(map: Map, room: u32, empty: V) -> Self {
        Self {
            map,
            room: room as usize,
            in_batches: true,
            empty,
            keys: PhantomData,
        }
    }

    /// Takes all elements that are there.
    pub(super) fn drain(&mut self, mut take: impl FnMut(K, &V)) {
        if self.in_batches
            && let Err(error) = self.drain_in_batches(&mut take)
        {
            let error = one_line(&error);
            tracing::info!(error, "the kernel hands over elements one by one");
            self.in_batches = false;
        }
        if !self.in_batches {
            self.drain_one_by_one(take);
        }
    }

    fn drain_in_batches(&self, take: &mut impl FnMut(K, &V)) -> io::Result<()> {
        let Map::HashMap(map) = &self.map else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        let mut keys = vec![K::default(); BATCH];
        let mut values = vec![self.empty; BATCH];
        let mut position = None;
        loop {
            let taken = batch::take(map.fd().as_fd(), position, &mut keys, &mut values)?;
            for (key, value) in keys.iter().zip(&values).take(taken.count) {
                take(*key, value);
            }
            position = taken.next;
            if position.is_none() {
                return Ok(());
            }
        }
    }

    /// What is counted between reading and removing is lost: a few in a million.
    fn drain_one_by_one(&mut self, mut take: impl FnMut(K, &V)) {
        let Ok(mut map) = HashMap::<_, K, V>::try_from(&mut self.map) else {
            return;
        };
        // Bounded: a key that is removed under the iteration makes it begin again.
        let keys: Vec<K> = map.keys().take(self.room).filter_map(Result::ok).collect();
        for key in keys {
            let Ok(value) = map.get(&key, 0) else {
                continue;
            };
            if map.remove(&key).is_ok() {
                take(key, &value);
            }
        }
    }
}
