//! What is probed in OpenSSL.

use super::spec::{Function, Group, Locate, Need, Program, role_cookie, step_cookie};
use crate::discover::library::{Generation, Library};
use crate::evidence::{Role, Step};

/// The functions to probe in an image that holds this library.
pub fn functions(library: &Library) -> impl Iterator<Item = &'static Function> {
    let ssl: &[Function] = if library.ssl { SSL } else { &[] };
    let crypto: &[&[Function]] = match (library.crypto, library.generation) {
        (false, _) => &[],
        (true, Generation::V1_1_1) => &[CRYPTO, CRYPTO_1_1_1],
        (true, Generation::V3) => &[CRYPTO, CRYPTO_3],
    };
    ssl.iter().chain(crypto.iter().copied().flatten())
}

/// Cookie of `EVP_PKEY_derive` in 1.1.1 (`TLSPROF_STEP_BY_PEER`).
const STEP_BY_PEER: u64 = crate::kernel::contract::TLSPROF_STEP_BY_PEER as u64;

/// libssl, all versions.
pub const SSL: &[Function] = &[
    state_machine("ossl_statem_accept", Role::Server),
    state_machine("ossl_statem_connect", Role::Client),
    Function {
        need: Need::Required,
        ..entry_only(
            &["SSL_clear"],
            Program::ConnectionClear,
            Group::Handshakes,
            1,
        )
    },
    Function {
        need: Need::Required,
        ..entry_only(&["SSL_free"], Program::ConnectionFree, Group::Handshakes, 1)
    },
];

/// libcrypto, all versions.
pub const CRYPTO: &[Function] = &[
    step(&["EVP_PKEY_keygen"], Step::KeyExchange, 0),
    // The program reads size_t *siglen.
    step(&["EVP_DigestSign"], Step::Signing, 3),
    step(&["EVP_DigestVerify"], Step::Verification, 0),
    step(&["X509_verify_cert"], Step::Verification, 0),
];

/// libcrypto, only 1.1.1.
pub const CRYPTO_1_1_1: &[Function] = &[
    // HKDF and the TLS PRF are key types in 1.1.1: the program tells key
    // derivation from key exchange by its first two arguments.
    Function {
        cookie: STEP_BY_PEER,
        ..step(&["EVP_PKEY_derive"], Step::KeyExchange, 2)
    },
    entry_only(
        &["EVP_PKEY_derive_set_peer"],
        Program::PeerSet,
        Group::Steps,
        1,
    ),
    step(&["RSA_private_decrypt"], Step::RsaDecryption, 0),
    entry_only(
        &["ERR_put_error"],
        Program::ErrorRaisedV1,
        Group::Handshakes,
        3,
    ),
];

/// libcrypto, 3.0 and later.
pub const CRYPTO_3: &[Function] = &[
    step(&["EVP_PKEY_derive"], Step::KeyExchange, 0),
    step(&["EVP_PKEY_encapsulate"], Step::KeyExchange, 0),
    step(&["EVP_PKEY_decapsulate"], Step::KeyExchange, 0),
    step(&["EVP_PKEY_public_check"], Step::KeyExchange, 0),
    step(&["EVP_PKEY_decrypt"], Step::RsaDecryption, 0),
    Function {
        group: Group::KeyDerivation,
        ..step(&["EVP_KDF_derive"], Step::KeyDerivation, 0)
    },
    entry_only(
        &["EVP_PKEY_CTX_set_group_name"],
        Program::GroupNamed,
        Group::Steps,
        2,
    ),
    entry_only(
        &["ERR_vset_error"],
        Program::ErrorRaised,
        Group::Handshakes,
        2,
    ),
];

const fn state_machine(name: &'static str, role: Role) -> Function {
    Function {
        name,
        locate: Locate::StateMachine(role),
        entry: Some(Program::HandshakeEnter),
        exit: Some(Program::HandshakeExit),
        cookie: role_cookie(role),
        group: Group::Handshakes,
        need: Need::Required,
        arguments: 1,
    }
}

/// A function of libcrypto whose time belongs to a step.
const fn step(symbol: &'static [&'static str; 1], step: Step, arguments: usize) -> Function {
    Function {
        exit: Some(Program::StepExit),
        cookie: step_cookie(step),
        ..entry_only(symbol, Program::StepEnter, Group::Steps, arguments)
    }
}

/// A function whose return does not matter.
const fn entry_only(
    symbol: &'static [&'static str; 1],
    program: Program,
    group: Group,
    arguments: usize,
) -> Function {
    let &[name] = symbol;
    Function {
        name,
        locate: Locate::Symbol(symbol),
        entry: Some(program),
        exit: None,
        cookie: 0,
        group,
        need: Need::Optional,
        arguments,
    }
}
