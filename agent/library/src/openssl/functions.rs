//! What is probed in OpenSSL.

use super::parts::{Generation, Parts};
use crate::spec::{Function, Group, Locate, Need, Program, role_cookie, step_cookie};
use tlsprof_common::{Role, Step, contract};

/// The functions to probe in an image that holds these parts.
pub(super) fn functions(parts: Parts) -> Vec<&'static Function> {
    let ssl: &[Function] = if parts.ssl { SSL } else { &[] };
    let crypto: &[&[Function]] = match (parts.crypto, parts.generation) {
        (false, _) => &[],
        (true, Generation::V1_1_1) => &[CRYPTO, CRYPTO_1_1_1],
        (true, Generation::V3) => &[CRYPTO, CRYPTO_3],
    };
    ssl.iter()
        .chain(crypto.iter().copied().flatten())
        .chain(errors(parts))
        .collect()
}

/// The step that all of a function's time is in.
pub(super) fn step_of(name: &str, generation: Generation) -> Option<Step> {
    let of_generation = match generation {
        Generation::V1_1_1 => CRYPTO_1_1_1,
        Generation::V3 => CRYPTO_3,
    };
    let mut all = CRYPTO.iter().chain(of_generation);
    all.find(|function| function.name == name)?.step
}

/// Return of a function that belongs to a step; cookie: step.
const STEP_EXIT: Program = Program::ends("step_exit");
/// Entry of a libcrypto function that belongs to a step; cookie: step.
const STEP_ENTER: Program = Program::explains("step_enter");
/// `EVP_PKEY_CTX_set_group_name`: argument 1 names the key exchange group.
const GROUP_NAMED: Program = Program::explains("group_named");
/// 1.1.1: `EVP_PKEY_derive_set_peer`: the next derive of that context is a key exchange.
const PEER_SET: Program = Program::explains("peer_set");
/// The library put an error on its queue (3.x: lib and reason are arguments 0 and 1).
const ERROR_RAISED: Program = Program::explains("error_raised");
/// The same in 1.1.1 (`ERR_put_error`: lib and reason are arguments 0 and 2).
const ERROR_RAISED_V1: Program = Program::explains("error_raised_v1");
/// Return of the handshake state machine.
const HANDSHAKE_EXIT: Program = Program::ends("handshake_exit");
/// `SSL_clear`: called inside the state machine it marks the first call of
/// a new handshake.
const CONNECTION_CLEAR: Program = Program::explains("connection_clear");
/// `SSL_free`: an unfinished handshake of that object is abandoned.
const CONNECTION_FREE: Program = Program::explains("connection_free");
/// Entry of the handshake state machine; cookie: role.
const HANDSHAKE_ENTER: Program = Program::begins("handshake_enter");

/// How errors of libssl are seen. libcrypto raises and drops errors of its own
/// several times a handshake: it is better not to be called for these.
fn errors(parts: Parts) -> &'static [Function] {
    match (parts.ssl, parts.crypto, parts.generation) {
        (true, false, Generation::V1_1_1) => LIBSSL_ERRORS_1_1_1,
        (true, false, Generation::V3) => LIBSSL_ERRORS_3,
        (true, true, Generation::V1_1_1) => &[PUT_ERROR],
        (true, true, Generation::V3) => &[VSET_ERROR],
        (false, _, Generation::V1_1_1) => LIBCRYPTO_ERRORS_1_1_1,
        (false, _, Generation::V3) => LIBCRYPTO_ERRORS_3,
    }
}

/// Cookie of `EVP_PKEY_derive` in 1.1.1.
const STEP_BY_PEER: u64 = contract::TLSPROF_STEP_BY_PEER as u64;
/// Cookie of `EVP_PKEY_encapsulate`.
const ENCAPSULATE: u64 = contract::TLSPROF_STEP_ENCAPSULATE as u64;
/// Cookie of `EVP_PKEY_decapsulate`.
const DECAPSULATE: u64 = contract::TLSPROF_STEP_DECAPSULATE as u64;

/// libssl, all versions.
const SSL: &[Function] = &[
    state_machine("ossl_statem_accept", Role::Server),
    state_machine("ossl_statem_connect", Role::Client),
    Function {
        need: Need::Required,
        ..entry_only(&["SSL_clear"], CONNECTION_CLEAR, Group::Handshakes, 1)
    },
    Function {
        need: Need::Required,
        ..entry_only(&["SSL_free"], CONNECTION_FREE, Group::Handshakes, 1)
    },
];

/// libcrypto, all versions.
const CRYPTO: &[Function] = &[
    step(&["EVP_PKEY_keygen"], Step::KeyExchange, 0),
    // The program reads size_t *siglen.
    step(&["EVP_DigestSign"], Step::Signing, 3),
    step(&["EVP_DigestVerify"], Step::Verification, 0),
    step(&["X509_verify_cert"], Step::Verification, 0),
];

/// libcrypto, only 1.1.1.
const CRYPTO_1_1_1: &[Function] = &[
    // HKDF and the TLS PRF are key types in 1.1.1: the program tells key
    // derivation from key exchange by its first two arguments.
    Function {
        cookie: STEP_BY_PEER,
        step: None,
        ..step(&["EVP_PKEY_derive"], Step::KeyExchange, 2)
    },
    entry_only(&["EVP_PKEY_derive_set_peer"], PEER_SET, Group::Steps, 1),
    step(&["RSA_private_decrypt"], Step::RsaDecryption, 0),
];

/// libcrypto, 3.0 and later.
const CRYPTO_3: &[Function] = &[
    step(&["EVP_PKEY_derive"], Step::KeyExchange, 0),
    // The programs read the length of the ciphertext, which tells the group: by
    // its name libssl asks for the key only.
    Function {
        cookie: ENCAPSULATE,
        ..step(&["EVP_PKEY_encapsulate"], Step::KeyExchange, 3)
    },
    Function {
        cookie: DECAPSULATE,
        ..step(&["EVP_PKEY_decapsulate"], Step::KeyExchange, 5)
    },
    step(&["EVP_PKEY_public_check"], Step::KeyExchange, 0),
    step(&["EVP_PKEY_decrypt"], Step::RsaDecryption, 0),
    Function {
        group: Group::KeyDerivation,
        ..step(&["EVP_KDF_derive"], Step::KeyDerivation, 0)
    },
    entry_only(
        &["EVP_PKEY_CTX_set_group_name"],
        GROUP_NAMED,
        Group::Steps,
        2,
    ),
];

/// All errors of 1.1.1. In an image that holds both libraries, calls between
/// them pass no stub, so that there is no other place.
const PUT_ERROR: Function = entry_only(&["ERR_put_error"], ERROR_RAISED_V1, Group::Handshakes, 3);

/// All errors of 3.0 and later, likewise.
const VSET_ERROR: Function = entry_only(&["ERR_vset_error"], ERROR_RAISED, Group::Handshakes, 2);

/// libssl alone, 1.1.1.
const LIBSSL_ERRORS_1_1_1: &[Function] = &[imported(
    "ERR_put_error@plt",
    &["ERR_put_error"],
    ERROR_RAISED_V1,
    3,
)];

/// libssl alone, 3.0 and later: `ossl_statem_fatal` and `ossl_rlayer_fatal` call
/// the first, `ERR_raise` the second, with the same first two arguments.
const LIBSSL_ERRORS_3: &[Function] = &[
    imported("ERR_vset_error@plt", &["ERR_vset_error"], ERROR_RAISED, 2),
    imported("ERR_set_error@plt", &["ERR_set_error"], ERROR_RAISED, 2),
];

/// libcrypto alone, 1.1.1.
const LIBCRYPTO_ERRORS_1_1_1: &[Function] = &[Function {
    group: Group::AllErrors,
    ..PUT_ERROR
}];

/// libcrypto alone, 3.0 and later.
const LIBCRYPTO_ERRORS_3: &[Function] = &[Function {
    group: Group::AllErrors,
    ..VSET_ERROR
}];

const fn state_machine(name: &'static str, role: Role) -> Function {
    Function {
        name,
        locate: Locate::StateMachine(role),
        entry: Some(HANDSHAKE_ENTER),
        exit: Some(HANDSHAKE_EXIT),
        cookie: role_cookie(role),
        step: None,
        group: Group::Handshakes,
        need: Need::Required,
        arguments: 1,
    }
}

/// A function of libcrypto whose time belongs to a step.
const fn step(symbol: &'static [&'static str; 1], step: Step, arguments: usize) -> Function {
    Function {
        exit: Some(STEP_EXIT),
        cookie: step_cookie(step),
        step: Some(step),
        ..entry_only(symbol, STEP_ENTER, Group::Steps, arguments)
    }
}

/// A function of libcrypto, where libssl calls it. Optional: without it the
/// errors of all of libcrypto are probed ([`Group::AllErrors`]).
const fn imported(
    name: &'static str,
    symbol: &'static [&'static str; 1],
    program: Program,
    arguments: usize,
) -> Function {
    Function {
        name,
        locate: Locate::Import(symbol),
        ..entry_only(symbol, program, Group::Handshakes, arguments)
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
        step: None,
        group,
        need: Need::Optional,
        arguments,
    }
}
