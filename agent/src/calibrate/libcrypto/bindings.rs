//! Functions of a libcrypto, its keys and contexts.

#![allow(
    unsafe_code,
    reason = "calls into a library that is loaded at run time"
)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

use libloading::os::unix::Library;

/// Defines the functions by name and type, and looks them up.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) -> $result:ty;)+) => {
        #[allow(non_snake_case, reason = "the library's names")]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($argument),*) -> $result,)+
        }

        impl Functions {
            /// None if the library lacks one.
            pub(super) fn of(library: &Library) -> Option<Self> {
                Some(Self {
                    // SAFETY: the types are those of OpenSSL's documentation, the same
                    // from 1.1.1 to 3.x; the library stays loaded as long as they are
                    // used, since `Libcrypto` outlives what it makes.
                    $($name: unsafe {
                        *library.get(concat!(stringify!($name), "\0").as_bytes()).ok()?
                    },)+
                })
            }
        }
    };
}

pub(super) use functions;

functions! {
    EVP_PKEY_CTX_new_id: fn(c_int, Pointer) -> Pointer;
    EVP_PKEY_CTX_new: fn(Pointer, Pointer) -> Pointer;
    EVP_PKEY_CTX_free: fn(Pointer) -> ();
    EVP_PKEY_CTX_ctrl_str: fn(Pointer, *const c_char, *const c_char) -> c_int;
    EVP_PKEY_keygen_init: fn(Pointer) -> c_int;
    EVP_PKEY_keygen: fn(Pointer, *mut Pointer) -> c_int;
    EVP_PKEY_free: fn(Pointer) -> ();
    EVP_PKEY_derive_init: fn(Pointer) -> c_int;
    EVP_PKEY_derive_set_peer: fn(Pointer, Pointer) -> c_int;
    EVP_PKEY_derive: fn(Pointer, *mut u8, *mut usize) -> c_int;
    EVP_MD_CTX_new: fn() -> Pointer;
    EVP_MD_CTX_free: fn(Pointer) -> ();
    EVP_sha256: fn() -> *const c_void;
    EVP_DigestSignInit: fn(Pointer, *mut Pointer, *const c_void, Pointer, Pointer) -> c_int;
    EVP_DigestSign: fn(Pointer, *mut u8, *mut usize, *const u8, usize) -> c_int;
}

pub(super) type Pointer = *mut c_void;

pub(super) fn succeeded(result: c_int) -> Option<()> {
    (result == 1).then_some(())
}

/// A key, freed at the end.
pub(super) struct Key<'a> {
    call: &'a Functions,
    pub(super) pointer: Pointer,
}

impl<'a> Key<'a> {
    /// The key that `make` allocates: it gets a null pointer to put the key's address into.
    pub(super) fn made(
        call: &'a Functions,
        make: impl FnOnce(*mut Pointer) -> c_int,
    ) -> Option<Self> {
        let mut pointer = null_mut();
        succeeded(make(&raw mut pointer))?;
        (!pointer.is_null()).then_some(Self { call, pointer })
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: made by EVP_PKEY_keygen or EVP_PKEY_paramgen, and freed once.
        unsafe { (self.call.EVP_PKEY_free)(self.pointer) }
    }
}

/// A context of a key, freed at the end.
pub(super) struct Context<'a> {
    call: &'a Functions,
    pub(super) pointer: Pointer,
}

impl<'a> Context<'a> {
    pub(super) fn of(call: &'a Functions, pointer: Pointer) -> Option<Self> {
        (!pointer.is_null()).then_some(Self { call, pointer })
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: made by EVP_PKEY_CTX_new or its like, and freed once.
        unsafe { (self.call.EVP_PKEY_CTX_free)(self.pointer) }
    }
}
