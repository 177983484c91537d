//! Which processes have listening sockets open, by an iterator of the kernel over open files.
//!
//! It takes 0.4 us for each open file of the host. A link in /proc/PID/fd takes 10 us, and
//! 1,000 workers of an nginx have a million files (docs/journal/2026-11-26-listeners-by-an-iterator.md).

use std::fs::File;
use std::io::{self, Read as _};

use aya::programs::Iter;
use aya::{Btf, Ebpf};

use super::error::{LoadError, refused};
use super::object::program;
use super::record::read;
use tlsprof_common::Listener;
use tlsprof_common::causes::one_line;
use tlsprof_common::contract::tlsprof_listener;

/// Its C function.
const PROGRAM: &str = "listeners";

/// A reading that has still to be made: of what is open by then.
#[derive(Debug)]
pub struct Listeners(File);

impl Listeners {
    pub(super) fn load(bpf: &mut Ebpf, btf: &Btf) -> Result<(), LoadError> {
        let program: &mut Iter = program(bpf, PROGRAM)?;
        program.load("task_file", btf).map_err(refused(PROGRAM))
    }

    pub(super) fn new(bpf: &mut Ebpf) -> Result<Self, LoadError> {
        let failed = |error: anyhow::Error| LoadError::Program {
            program: PROGRAM.to_owned(),
            source: error,
        };
        let program: &mut Iter = program(bpf, PROGRAM)?;
        let link = program.attach().and_then(|link| program.take_link(link));
        let link = link.map_err(refused(PROGRAM))?;
        let file = link.into_file().map_err(|error| failed(error.into()))?;
        Ok(Self(file))
    }

    /// All listeners of the host, once for each descriptor. Takes 0.4 s with a million open files.
    ///
    /// # Errors
    ///
    /// What the kernel says.
    pub fn read(mut self) -> io::Result<Vec<Listener>> {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes)?;
        Ok(decode(&bytes))
    }
}

/// Without them /proc tells who listens.
pub(super) fn told(listeners: Result<Listeners, LoadError>) -> Option<Listeners> {
    let listeners = listeners.inspect_err(|error| {
        tracing::debug!(error = one_line(error), "no iterator over open files");
    });
    listeners.ok()
}

fn decode(bytes: &[u8]) -> Vec<Listener> {
    let (records, _rest) = bytes.as_chunks::<{ size_of::<tlsprof_listener>() }>();
    let records = records.iter().filter_map(|record| read(record));
    let listeners = records.map(|one: tlsprof_listener| Listener {
        process: one.pid,
        socket: one.socket,
        port: one.port,
    });
    listeners.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_records_are_listeners() {
        let mut bytes = Vec::new();
        for (socket, process, port) in [(70_001_u64, 10_u32, 443_u16), (1 << 40, 11, 8443)] {
            bytes.extend(socket.to_ne_bytes());
            bytes.extend(process.to_ne_bytes());
            bytes.extend(port.to_ne_bytes());
            bytes.extend([0; 2]);
        }
        bytes.extend([1; 15]);
        let found = decode(&bytes);
        let expected = [(10, 70_001, 443), (11, 1 << 40, 8443)];
        let expected = expected.map(|(process, socket, port)| Listener {
            process,
            socket,
            port,
        });
        assert_eq!(found, expected);
    }
}
