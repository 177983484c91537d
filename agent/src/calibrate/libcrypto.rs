//! The functions of a libcrypto that are timed (OpenSSL 1.1.1 and 3.x), by their
//! documented interface: EVP_PKEY-DH(7), EVP_PKEY_derive(3), EVP_DigestSign(3).
#![allow(
    unsafe_code,
    reason = "calls into a library that is loaded at run time"
)]

use std::ffi::{CStr, c_int};
use std::path::Path;
use std::ptr::null_mut;

use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

use tlsprof_advise::{Operation, X25519MLKEM768};

/// Numbers of kinds of keys (obj_mac.h); they never change.
const RSA: c_int = 6;
const EC: c_int = 408;
const X25519: c_int = 1034;
const X448: c_int = 1035;

/// Room for any shared secret or signature here.
const ROOM: usize = 1024;

mod bindings;
mod hybrid;
mod records;

use bindings::{Context, Functions, Key, Pointer, succeeded};
pub(super) use records::BYTES;

/// A libcrypto that is loaded.
pub(super) struct Libcrypto {
    call: Functions,
    /// Behind the functions: dropped after them.
    library: Library,
}

/// A kind of key: its number, and a parameter if it needs one.
type Kind = (c_int, Option<(&'static CStr, &'static CStr)>);

const fn kind(operation: Operation) -> Option<Kind> {
    const CURVE: &CStr = c"ec_paramgen_curve";
    const BITS: &CStr = c"rsa_keygen_bits";
    let name = match operation {
        Operation::KeyExchange(name) | Operation::Signing(name) => name,
        Operation::Encryption(..) => return None,
    };
    Some(match name.as_bytes() {
        b"x25519" => (X25519, None),
        b"x448" => (X448, None),
        b"secp256r1" | b"ecdsa_p256" => (EC, Some((CURVE, c"P-256"))),
        b"secp384r1" => (EC, Some((CURVE, c"P-384"))),
        b"secp521r1" => (EC, Some((CURVE, c"P-521"))),
        b"rsa_2048" => (RSA, Some((BITS, c"2048"))),
        _ => return None,
    })
}

impl Libcrypto {
    /// Loads the library; None if it cannot be, or is no libcrypto that is known.
    /// The caller has made sure that its code may run here.
    pub(super) fn open(path: &Path) -> Option<Self> {
        // SAFETY: runs the library's initialisers, in a process that exists for that.
        let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.ok()?;
        Some(Self {
            call: Functions::of(&library)?,
            library,
        })
    }

    /// Makes ready what an operation needs. The result does it once, and says whether
    /// it succeeded; None if the library cannot.
    pub(super) fn prepare(&self, operation: Operation) -> Option<Box<dyn FnMut() -> bool + '_>> {
        if let Operation::Encryption(protection, length) = operation {
            return records::prepare(&self.library, protection, length);
        }
        if operation == Operation::KeyExchange(X25519MLKEM768) {
            return hybrid::prepare(&self.library, &self.call);
        }
        let kind = kind(operation)?;
        let key = self.generate(kind)?;
        Some(match operation {
            Operation::KeyExchange(_) => Box::new(move || self.exchange(kind, &key).is_some()),
            Operation::Signing(_) => Box::new(move || self.sign(&key).is_some()),
            Operation::Encryption(..) => return None,
        })
    }

    fn generate(&self, (number, parameter): Kind) -> Option<Key<'_>> {
        let call = &self.call;
        // SAFETY: a new context for a kind of key; null stands for no engine.
        let context = Context::of(call, unsafe {
            (call.EVP_PKEY_CTX_new_id)(number, null_mut())
        })?;
        // SAFETY: the context is valid, and the strings end in a zero byte.
        succeeded(unsafe { (call.EVP_PKEY_keygen_init)(context.pointer) })?;
        if let Some((name, value)) = parameter {
            let (name, value) = (name.as_ptr(), value.as_ptr());
            // SAFETY: as before.
            succeeded(unsafe { (call.EVP_PKEY_CTX_ctrl_str)(context.pointer, name, value) })?;
        }
        // SAFETY: as before; a new key is made and put there.
        Key::made(call, |key| unsafe {
            (call.EVP_PKEY_keygen)(context.pointer, key)
        })
    }

    /// What one side does in a handshake: a key of its own, and the secret.
    fn exchange(&self, kind: Kind, peer: &Key<'_>) -> Option<()> {
        let call = &self.call;
        let own = self.generate(kind)?;
        // SAFETY: `own` is a valid key; null stands for no engine.
        let context = Context::of(call, unsafe {
            (call.EVP_PKEY_CTX_new)(own.pointer, null_mut())
        })?;
        // SAFETY: context and peer's key are valid, and of one kind.
        succeeded(unsafe { (call.EVP_PKEY_derive_init)(context.pointer) })?;
        // SAFETY: as before.
        succeeded(unsafe { (call.EVP_PKEY_derive_set_peer)(context.pointer, peer.pointer) })?;
        let mut secret = [0_u8; ROOM];
        let mut length = ROOM;
        // SAFETY: `length` says how much room there is.
        let derived = unsafe {
            (call.EVP_PKEY_derive)(context.pointer, secret.as_mut_ptr(), &raw mut length)
        };
        succeeded(derived)
    }

    /// A signature with SHA-256 over as many bytes as in TLS 1.3 (RFC 8446, 4.4.3).
    fn sign(&self, key: &Key<'_>) -> Option<()> {
        let call = &self.call;
        // SAFETY: makes a new context.
        let context = unsafe { (call.EVP_MD_CTX_new)() };
        if context.is_null() {
            return None;
        }
        let context = Digest {
            call,
            pointer: context,
        };
        // SAFETY: context and key are valid; null where no key context is wanted, and
        // for no engine.
        succeeded(unsafe {
            let sha256 = (call.EVP_sha256)();
            let (pointer, key) = (context.pointer, key.pointer);
            (call.EVP_DigestSignInit)(pointer, null_mut(), sha256, null_mut(), key)
        })?;
        let message = [0x20_u8; 130];
        let mut signature = [0_u8; ROOM];
        let mut length = ROOM;
        // SAFETY: `length` says how much room there is.
        succeeded(unsafe {
            let (to, from) = (signature.as_mut_ptr(), message.as_ptr());
            (call.EVP_DigestSign)(context.pointer, to, &raw mut length, from, message.len())
        })
    }
}

/// A context of a signature, freed at the end.
struct Digest<'a> {
    call: &'a Functions,
    pointer: Pointer,
}

impl Drop for Digest<'_> {
    fn drop(&mut self) {
        // SAFETY: made by EVP_MD_CTX_new, and freed once.
        unsafe { (self.call.EVP_MD_CTX_free)(self.pointer) }
    }
}

/// Lets this process run only when nothing else wants to (sched(7), SCHED_IDLE).
pub(super) fn be_idle() {
    // SAFETY: numbers only, of which musl has more; SCHED_IDLE needs priority 0.
    let parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    // SAFETY: passes a valid structure; 0 is this thread, the only one.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameters) };
}
