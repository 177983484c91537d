//! What the code of handshakes and encryption computes.

use std::ffi::OsStr;
use std::path::Path;

use crate::document::{Block, Cell, Drawn, Shade, Table};
use tlsprof_common::units::{counted, percent, time};
use tlsprof_report::model::{Primitive, PrimitiveCpu, PrimitiveSamples, Service};

use super::sampled_steps;

/// Of the samples, so many without a name are worth a word on how to get one.
const NAMELESS: f64 = 0.1;

/// The table of primitives; None where no sample was looked up. Steps say more: it is folded where
/// samples show them and nothing else does.
pub(super) fn primitives(service: &Service) -> Option<Block> {
    let samples = service.primitive_samples.as_ref()?;
    let number = counted(samples.count, "sample", "samples");
    let mut table = Table::new("Handshake and encryption CPU by cryptographic primitive")
        .words("primitive")
        .number("share of CPU")
        .bar("share, drawn; line: 95% CI")
        .numbers(["CPU", "in handshakes"])
        .number("95% CI")
        .help("95% confidence interval, from the number of samples")
        .optional();
    for row in &service.primitives {
        let limits = Some((row.share_low, row.share_high));
        table.row([
            name(row.primitive).into(),
            percent(row.share).into(),
            Cell::default().drawn(Drawn::Bar(row.share, shade(row), limits)),
            time(row.cpu_seconds).into(),
            time(row.handshake_seconds).into(),
            format!("{} to {}", percent(row.share_low), percent(row.share_high)).into(),
        ]);
    }
    let mut blocks = vec![table.into()];
    blocks.extend(Block::remarks(notes(service, samples)));
    let title = format!("CPU by cryptographic primitive ({number})");
    Some(match sampled_steps::alone(service) {
        true => Block::Details(title, blocks),
        false => Block::section(title, blocks),
    })
}

fn notes(service: &Service, samples: &PrimitiveSamples) -> Vec<String> {
    let share = |part: u64| percent(part as f64 / samples.count.max(1) as f64);
    let mut notes = vec![format!(
        "Identified by function name: {} of the samples; by machine instructions: {}; not identified: {}.",
        share(samples.by_name),
        share(samples.by_instructions),
        share(samples.not_identified),
    )];
    let mut rows = service.primitives.iter();
    if rows.any(|row| row.primitive == Primitive::PublicKey) {
        notes.push(
            "The algorithm of some public-key code is unknown: it has no function names (stripped), and \
             its instructions are those of RSA, elliptic curves and other public-key algorithms alike."
                .to_owned(),
        );
    }
    let has_names = samples.not_identified as f64 <= NAMELESS * samples.count as f64;
    if is_java(service) && !has_names {
        notes.push(
            "Most of this code has a name if Java writes a list of what it has compiled, before the profile or \
             during it: jcmd PID Compiler.perfmap (JDK 17 and later)."
                .to_owned(),
        );
    }
    notes
}

fn is_java(service: &Service) -> bool {
    Path::new(&service.executable).file_name() == Some(OsStr::new("java"))
}

/// The colour of the activity that a primitive is used for most.
fn shade(row: &PrimitiveCpu) -> Shade {
    match row.handshake_seconds * 2.0 >= row.cpu_seconds {
        true => Shade::Handshake,
        false => Shade::Encryption,
    }
}

/// A primitive in words.
const fn name(primitive: Primitive) -> &'static str {
    match primitive {
        Primitive::RsaDh => "RSA, DH",
        Primitive::BigNumber => "big numbers: RSA, DH, some curves",
        Primitive::Multiprecision => "big numbers, any algorithm (GMP)",
        Primitive::P256 => "P-256",
        Primitive::P384 => "P-384",
        Primitive::P521 => "P-521",
        Primitive::EllipticCurve => "elliptic curve, any",
        Primitive::Curve25519 => "X25519, Ed25519",
        Primitive::Curve448 => "X448, Ed448",
        Primitive::MlKem => "ML-KEM",
        Primitive::MlDsa => "ML-DSA",
        Primitive::PublicKey => "public key, algorithm unknown",
        Primitive::Sha => "SHA-1, SHA-2",
        Primitive::Sha3 => "SHA-3, SHAKE",
        Primitive::KeyDerivation => "HMAC, HKDF, TLS PRF",
        Primitive::Aes => "AES, GHASH",
        Primitive::ChaCha => "ChaCha20-Poly1305",
        Primitive::X509 => "ASN.1, X.509",
        Primitive::Random => "random numbers",
        Primitive::Memory => "memory allocation, copying",
        Primitive::Other => "protocol and other code",
        Primitive::Kernel => "kernel",
        Primitive::NotIdentified | Primitive::Unknown => "not identified",
    }
}
