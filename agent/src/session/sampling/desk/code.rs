//! What user code is for: by the code in the sample, and where a process has compiled it itself, by
//! more of it.

use std::io;

use crate::session::primitives::own_code::Compiled;
use tlsprof_common::Pid;
pub(super) use tlsprof_discover::memory::Surroundings;
use tlsprof_evidence::activity::Tls;
use tlsprof_evidence::cpu::CpuSample;
use tlsprof_evidence::fingerprint::{Cache, Kind, compiled};

/// Pieces of machine code whose kind is remembered, some 300 bytes each.
const MAX_CODE: usize = 4096;

/// Kinds of code, remembered.
#[derive(Debug)]
pub(super) struct Codes {
    kinds: Cache,
    ciphers: Compiled,
}

impl Default for Codes {
    fn default() -> Self {
        Self {
            kinds: Cache::new(MAX_CODE),
            ciphers: Compiled::new(compiled::is_chacha20_poly1305),
        }
    }
}

impl Codes {
    /// What the code in a sample does; `mapped` if it is a file's. More of it is read from its process
    /// only where it may matter: out of handshakes, of services that use ChaCha20-Poly1305.
    pub(super) fn kind(
        &mut self,
        sample: &CpuSample,
        tls: Tls,
        mapped: bool,
        around: impl FnOnce(Pid, u64) -> io::Result<Surroundings>,
    ) -> Kind {
        let kind = self.kinds.classify(&sample.code, sample.at);
        let may_matter =
            !mapped && !sample.handshake && matches!(tls, Tls::Seen { chacha20: true, .. });
        if !may_matter || !matches!(kind, Kind::PublicKey | Kind::Copy | Kind::Other) {
            return kind;
        }
        match self.ciphers.ask(sample, around) {
            true => Kind::ChaCha,
            false => kind,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use super::*;
    use tlsprof_evidence::callers::UserStack;

    const SEEN: Tls = Tls::Seen {
        hashed_mac: false,
        chacha20: true,
    };

    /// Java 17's Poly1305, as compiled, and a place where it was sampled.
    fn compiled_poly1305() -> Surroundings {
        let text = include_str!("../../../../evidence/src/fingerprint/testdata/compiled.txt");
        let mut words = text.lines().nth(1).unwrap().split(' ');
        let digits = words.next().unwrap().as_bytes().as_chunks::<2>().0.iter();
        let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        Surroundings {
            bytes: digits.map(|pair| byte(pair)).collect(),
            at: words.next_back().unwrap().parse().unwrap(),
        }
    }

    fn sample(around: &Surroundings) -> CpuSample {
        CpuSample {
            process: 7,
            handshake: false,
            before_handshakes: false,
            instruction: 0x7000,
            code: around.bytes[around.at - 128..around.at + 128].to_vec(),
            at: 128,
            kernel_stack: Vec::new(),
            user_stack: UserStack::default(),
            count: 1,
        }
    }

    /// The kind of a sample, and how often memory was read for it.
    fn kind(
        sample: &CpuSample,
        tls: Tls,
        mapped: bool,
        around: Option<&Surroundings>,
    ) -> (Kind, usize) {
        let (mut codes, mut reads) = (Codes::default(), 0);
        let mut ask = || {
            codes.kind(sample, tls, mapped, |_, _| {
                reads += 1;
                around.cloned().ok_or(io::ErrorKind::NotFound.into())
            })
        };
        let kind = ask();
        assert_eq!(kind, ask());
        (kind, reads)
    }

    #[test]
    fn compiled_poly1305_is_known_by_what_is_around() {
        let around = compiled_poly1305();
        let sample = sample(&around);
        let (known, reads) = kind(&sample, SEEN, false, Some(&around));
        assert_eq!((known, reads), (Kind::ChaCha, 1));
        assert_ne!(kind(&sample, SEEN, false, None).0, Kind::ChaCha);
        let changed = Surroundings {
            bytes: around.bytes[1..].to_vec(),
            at: around.at,
        };
        assert_ne!(kind(&sample, SEEN, false, Some(&changed)).0, Kind::ChaCha);
    }

    #[test]
    fn memory_is_read_only_where_it_matters() {
        let around = compiled_poly1305();
        let sample = sample(&around);
        let in_handshake = CpuSample {
            handshake: true,
            ..sample.clone()
        };
        let of_another_suite = Tls::Seen {
            hashed_mac: true,
            chacha20: false,
        };
        for (sample, tls, mapped) in [
            (&sample, SEEN, true),
            (&sample, of_another_suite, false),
            (&sample, Tls::Unknown, false),
            (&in_handshake, SEEN, false),
        ] {
            let (kind, reads) = kind(sample, tls, mapped, Some(&around));
            assert_ne!(kind, Kind::ChaCha);
            assert_eq!(reads, 0);
        }
    }
}
