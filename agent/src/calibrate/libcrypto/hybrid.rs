//! Key exchange with X25519MLKEM768 as a server does it (OpenSSL 3.5): it reads the client's public
//! key and encapsulates a secret for it (EVP_PKEY_encapsulate(3), EVP_PKEY-ML-KEM(7)).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use libloading::os::unix::Library;

use super::bindings::{Context, Key, Pointer, functions, succeeded};

const NAME: &CStr = c"X25519MLKEM768";
/// Room for the ciphertext, 1,088 + 32 bytes (draft-ietf-tls-ecdhe-mlkem).
const CIPHERTEXT: usize = 2048;
/// Room for the secret, 32 + 32 bytes.
const SECRET: usize = 128;

functions! {
    EVP_PKEY_CTX_new_from_name: fn(Pointer, *const c_char, *const c_char) -> Pointer;
    EVP_PKEY_CTX_set_group_name: fn(Pointer, *const c_char) -> c_int;
    EVP_PKEY_paramgen_init: fn(Pointer) -> c_int;
    EVP_PKEY_paramgen: fn(Pointer, *mut Pointer) -> c_int;
    EVP_PKEY_get1_encoded_public_key: fn(Pointer, *mut *mut u8) -> usize;
    EVP_PKEY_set1_encoded_public_key: fn(Pointer, *const u8, usize) -> c_int;
    EVP_PKEY_encapsulate_init: fn(Pointer, *const c_void) -> c_int;
    EVP_PKEY_encapsulate: fn(Pointer, *mut u8, *mut usize, *mut u8, *mut usize) -> c_int;
}

/// Makes a client's key ready. The result does a server's part once, and says whether it
/// succeeded; None if the library has no such group.
pub(super) fn prepare<'a>(
    library: &'a Library,
    common: &'a super::bindings::Functions,
) -> Option<Box<dyn FnMut() -> bool + 'a>> {
    let call = Functions::of(library)?;
    let public = {
        let client = generate(&call, common)?;
        encoded(&call, &client)?
    };
    Some(Box::new(move || answer(&call, common, public).is_some()))
}

fn context<'a>(call: &Functions, common: &'a super::bindings::Functions) -> Option<Context<'a>> {
    // SAFETY: the name ends in a zero byte; null stands for the defaults.
    Context::of(common, unsafe {
        (call.EVP_PKEY_CTX_new_from_name)(null_mut(), NAME.as_ptr(), null())
    })
}

fn generate<'a>(call: &Functions, common: &'a super::bindings::Functions) -> Option<Key<'a>> {
    let context = context(call, common)?;
    // SAFETY: the context is valid.
    succeeded(unsafe { (common.EVP_PKEY_keygen_init)(context.pointer) })?;
    // SAFETY: as before; a new key is made and put there.
    Key::made(common, |key| unsafe {
        (common.EVP_PKEY_keygen)(context.pointer, key)
    })
}

/// The public key as a client sends it. What the library allocates for that is kept: it is done once.
fn encoded(call: &Functions, key: &Key<'_>) -> Option<&'static [u8]> {
    let mut bytes = null_mut();
    // SAFETY: the key is valid; the library allocates the bytes and says how many.
    let length = unsafe { (call.EVP_PKEY_get1_encoded_public_key)(key.pointer, &raw mut bytes) };
    if bytes.is_null() || length == 0 {
        return None;
    }
    // SAFETY: so many bytes are there, and are never freed.
    Some(unsafe { std::slice::from_raw_parts(bytes, length) })
}

fn answer(call: &Functions, common: &super::bindings::Functions, public: &[u8]) -> Option<()> {
    let client = {
        let context = context(call, common)?;
        // SAFETY: the context is valid, and the name ends in a zero byte.
        succeeded(unsafe { (call.EVP_PKEY_paramgen_init)(context.pointer) })?;
        // SAFETY: as before.
        succeeded(unsafe { (call.EVP_PKEY_CTX_set_group_name)(context.pointer, NAME.as_ptr()) })?;
        // SAFETY: as before; a new key is made and put there.
        Key::made(common, |key| unsafe {
            (call.EVP_PKEY_paramgen)(context.pointer, key)
        })?
    };
    // SAFETY: the key is valid, and so many bytes are there.
    succeeded(unsafe {
        (call.EVP_PKEY_set1_encoded_public_key)(client.pointer, public.as_ptr(), public.len())
    })?;
    // SAFETY: the key is valid; null stands for no engine.
    let context = Context::of(common, unsafe {
        (common.EVP_PKEY_CTX_new)(client.pointer, null_mut())
    })?;
    // SAFETY: the context is valid; null stands for no parameters.
    succeeded(unsafe { (call.EVP_PKEY_encapsulate_init)(context.pointer, null()) })?;
    let (mut ciphertext, mut secret) = ([0_u8; CIPHERTEXT], [0_u8; SECRET]);
    let (mut long, mut short) = (CIPHERTEXT, SECRET);
    // SAFETY: the lengths say how much room there is.
    succeeded(unsafe {
        let (to, secret) = (ciphertext.as_mut_ptr(), secret.as_mut_ptr());
        (call.EVP_PKEY_encapsulate)(context.pointer, to, &raw mut long, secret, &raw mut short)
    })
}
