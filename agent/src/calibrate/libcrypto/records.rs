//! Encryption of TLS records, as libssl does it: EVP_EncryptInit(3) and, up to TLS 1.2,
//! HMAC by EVP_DigestSignInit(3). Keys are set once, as in a connection; a record sets
//! its nonce, passes its header and its bytes, and takes the tag.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr::{null, null_mut};

use libloading::os::unix::Library;

use super::bindings::{Pointer, functions, succeeded};
use tlsprof_advise::{Hash, Protection, Records};

/// Kind of a key for HMAC (obj_mac.h).
const HMAC: c_int = 855;
/// Controls of evp.h.
const SET_IV_LENGTH: c_int = 0x9;
const GET_TAG: c_int = 0x10;
const SET_TAG: c_int = 0x11;

/// Bytes that one repeat encrypts: enough for the clock, few enough for 3DES.
pub(in crate::calibrate) const BYTES: usize = 262_144;
/// Room after a record: explicit nonce, MAC and padding, in whole blocks.
const BESIDE: usize = 80;
const NONCE: [u8; 16] = [7; 16];
/// Long enough for every cipher and hash here.
const KEY: [u8; 48] = [5; 48];

functions! {
    EVP_get_cipherbyname: fn(*const c_char) -> *const c_void;
    EVP_CIPHER_CTX_new: fn() -> Pointer;
    EVP_CIPHER_CTX_free: fn(Pointer) -> ();
    EVP_CIPHER_CTX_ctrl: fn(Pointer, c_int, c_int, *mut c_void) -> c_int;
    EVP_CIPHER_CTX_set_padding: fn(Pointer, c_int) -> c_int;
    EVP_EncryptInit_ex: fn(Pointer, *const c_void, Pointer, *const u8, *const u8) -> c_int;
    EVP_EncryptUpdate: fn(Pointer, *mut u8, *mut c_int, *const u8, c_int) -> c_int;
    EVP_EncryptFinal_ex: fn(Pointer, *mut u8, *mut c_int) -> c_int;
    EVP_PKEY_new_raw_private_key: fn(c_int, Pointer, *const u8, usize) -> Pointer;
    EVP_PKEY_free: fn(Pointer) -> ();
    EVP_MD_CTX_new: fn() -> Pointer;
    EVP_MD_CTX_free: fn(Pointer) -> ();
    EVP_MD_CTX_copy_ex: fn(Pointer, *const c_void) -> c_int;
    EVP_sha1: fn() -> *const c_void;
    EVP_sha256: fn() -> *const c_void;
    EVP_sha384: fn() -> *const c_void;
    EVP_DigestSignInit: fn(Pointer, *mut Pointer, *const c_void, Pointer, Pointer) -> c_int;
    EVP_DigestUpdate: fn(Pointer, *const c_void, usize) -> c_int;
    EVP_DigestSignFinal: fn(Pointer, *mut u8, *mut usize) -> c_int;
}

/// How the parts of a protection are called.
struct Recipe {
    cipher: &'static CStr,
    /// None where the cipher authenticates by itself.
    mac: Option<Hash>,
    is_ccm: bool,
}

const fn recipe(protection: Protection) -> Recipe {
    let (cipher, mac) = match protection {
        Protection::Aes128Gcm => (c"aes-128-gcm", None),
        Protection::Aes256Gcm => (c"aes-256-gcm", None),
        Protection::ChaCha20 => (c"chacha20-poly1305", None),
        Protection::Aes128Ccm => (c"aes-128-ccm", None),
        Protection::Aes256Ccm => (c"aes-256-ccm", None),
        Protection::Aes128Cbc(hash) => (c"aes-128-cbc", Some(hash)),
        Protection::Aes256Cbc(hash) => (c"aes-256-cbc", Some(hash)),
        Protection::TripleDes => (c"des-ede3-cbc", Some(Hash::Sha1)),
    };
    Recipe {
        cipher,
        mac,
        is_ccm: matches!(protection, Protection::Aes128Ccm | Protection::Aes256Ccm),
    }
}

/// Makes ready what a protection needs. The result encrypts [`BYTES`] in records of that
/// length, and says whether it succeeded; None if the library cannot.
pub(super) fn prepare(
    library: &Library,
    protection: Protection,
    records: Records,
) -> Option<Box<dyn FnMut() -> bool + '_>> {
    let call = Functions::of(library)?;
    let recipe = recipe(protection);
    let cipher = Cipher::new(&call, &recipe)?;
    let mac = match recipe.mac {
        Some(hash) => Some(Mac::new(&call, hash)?),
        None => None,
    };
    let mut buffer = vec![0x5a_u8; records.bytes() + BESIDE];
    Some(Box::new(move || {
        let one = |buffer: &mut Vec<u8>| match &mac {
            Some(mac) => mac_then_encrypt(&call, mac, &cipher, buffer),
            None => seal(&call, &recipe, &cipher, buffer),
        };
        (0..BYTES / records.bytes()).all(|_| one(&mut buffer).is_some())
    }))
}

/// A record of an AEAD: TLS 1.3's way, which costs what that of TLS 1.2 does.
fn seal(call: &Functions, recipe: &Recipe, cipher: &Cipher, buffer: &mut [u8]) -> Option<()> {
    let (header, mut tag) = ([0x17_u8, 3, 3, 0x40, 0], [0_u8; 16]);
    let (context, length) = (cipher.pointer, int(buffer.len().checked_sub(BESIDE)?)?);
    let mut out = 0;
    let data = buffer.as_mut_ptr();
    // SAFETY: the context is valid and has a key; nonce, header and tag are as long as
    // was set; data is longer than `length` by more than a block, and may be encrypted
    // in place. Null where the documentation allows it: no cipher, engine or key anew,
    // and for CCM the length alone.
    succeeded(unsafe {
        let nonce = NONCE.as_ptr();
        (call.EVP_EncryptInit_ex)(context, null(), null_mut(), null(), nonce)
    })?;
    if recipe.is_ccm {
        // SAFETY: as before.
        succeeded(unsafe {
            (call.EVP_EncryptUpdate)(context, null_mut(), &raw mut out, null(), length)
        })?;
    }
    // SAFETY: as before.
    succeeded(unsafe {
        let (header, long) = (header.as_ptr(), int(header.len())?);
        (call.EVP_EncryptUpdate)(context, null_mut(), &raw mut out, header, long)
    })?;
    // SAFETY: as before.
    succeeded(unsafe { (call.EVP_EncryptUpdate)(context, data, &raw mut out, data, length) })?;
    // SAFETY: as before; an AEAD adds nothing here.
    succeeded(unsafe { (call.EVP_EncryptFinal_ex)(context, data, &raw mut out) })?;
    // SAFETY: as before.
    succeeded(unsafe {
        let (tag, long) = (tag.as_mut_ptr().cast(), int(tag.len())?);
        (call.EVP_CIPHER_CTX_ctrl)(context, GET_TAG, long, tag)
    })
}

/// A record of TLS 1.2 with CBC: its MAC, then the encryption of all.
fn mac_then_encrypt(call: &Functions, mac: &Mac, cipher: &Cipher, buffer: &mut [u8]) -> Option<()> {
    let (all, record) = (int(buffer.len())?, buffer.len().checked_sub(BESIDE)?);
    mac.sign(call, buffer.get(..record)?)?;
    let (mut out, data) = (0, buffer.as_mut_ptr());
    // SAFETY: the context is valid; `all` is a multiple of the block, so that no more
    // than that is written, and in place is allowed.
    succeeded(unsafe { (call.EVP_EncryptUpdate)(cipher.pointer, data, &raw mut out, data, all) })
}

fn int(length: usize) -> Option<c_int> {
    c_int::try_from(length).ok()
}

/// A context of a cipher with its key, freed at the end.
struct Cipher {
    free: unsafe extern "C" fn(Pointer),
    pointer: Pointer,
}

impl Cipher {
    fn new(call: &Functions, recipe: &Recipe) -> Option<Self> {
        // SAFETY: the name ends in a zero byte.
        let kind = unsafe { (call.EVP_get_cipherbyname)(recipe.cipher.as_ptr()) };
        // SAFETY: makes a new context.
        let pointer = unsafe { (call.EVP_CIPHER_CTX_new)() };
        if kind.is_null() || pointer.is_null() {
            return None;
        }
        let free = call.EVP_CIPHER_CTX_free;
        let made = Self { free, pointer };
        // SAFETY: context and kind are valid; null for no engine, and for what comes later.
        succeeded(unsafe { (call.EVP_EncryptInit_ex)(pointer, kind, null_mut(), null(), null()) })?;
        if recipe.mac.is_some() {
            // SAFETY: as before. It always succeeds.
            unsafe { (call.EVP_CIPHER_CTX_set_padding)(pointer, 0) };
        } else {
            // SAFETY: as before; a nonce of 12 bytes has no argument.
            succeeded(unsafe {
                (call.EVP_CIPHER_CTX_ctrl)(pointer, SET_IV_LENGTH, 12, null_mut())
            })?;
        }
        if recipe.is_ccm {
            // SAFETY: as before; null where only the length of the tag is set.
            succeeded(unsafe { (call.EVP_CIPHER_CTX_ctrl)(pointer, SET_TAG, 16, null_mut()) })?;
        }
        // SAFETY: key and nonce are as long as the cipher's, or longer.
        succeeded(unsafe {
            let (key, nonce) = (KEY.as_ptr(), NONCE.as_ptr());
            (call.EVP_EncryptInit_ex)(pointer, null(), null_mut(), key, nonce)
        })?;
        Some(made)
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: made by EVP_CIPHER_CTX_new, and freed once.
        unsafe { (self.free)(self.pointer) }
    }
}

/// Contexts of an HMAC, freed at the end: one with the key, and one to copy it to.
struct Mac {
    free: unsafe extern "C" fn(Pointer),
    keyed: Pointer,
    copy: Pointer,
}

impl Mac {
    fn new(call: &Functions, hash: Hash) -> Option<Self> {
        // SAFETY: makes two new contexts.
        let (keyed, copy) = unsafe { ((call.EVP_MD_CTX_new)(), (call.EVP_MD_CTX_new)()) };
        let free = call.EVP_MD_CTX_free;
        // Freeing null does nothing.
        let made = Self { free, keyed, copy };
        // SAFETY: the key has the length that is passed; null for no engine.
        let key = unsafe {
            (call.EVP_PKEY_new_raw_private_key)(HMAC, null_mut(), KEY.as_ptr(), length(hash))
        };
        if keyed.is_null() || copy.is_null() || key.is_null() {
            return None;
        }
        // SAFETY: takes no argument and returns what is never freed.
        let kind = unsafe {
            match hash {
                Hash::Sha1 => (call.EVP_sha1)(),
                Hash::Sha256 => (call.EVP_sha256)(),
                Hash::Sha384 => (call.EVP_sha384)(),
            }
        };
        // SAFETY: context, hash and key are valid; the context keeps the key for itself,
        // so that it is freed here.
        let begun = unsafe {
            let begun = (call.EVP_DigestSignInit)(keyed, null_mut(), kind, null_mut(), key);
            (call.EVP_PKEY_free)(key);
            begun
        };
        succeeded(begun)?;
        Some(made)
    }

    fn sign(&self, call: &Functions, data: &[u8]) -> Option<()> {
        let (header, mut mac, mut long) = ([0_u8; 13], [0_u8; 64], 64);
        // SAFETY: both contexts are valid.
        succeeded(unsafe { (call.EVP_MD_CTX_copy_ex)(self.copy, self.keyed) })?;
        for part in [header.as_slice(), data] {
            // SAFETY: passes a slice with its length.
            succeeded(unsafe {
                (call.EVP_DigestUpdate)(self.copy, part.as_ptr().cast(), part.len())
            })?;
        }
        // SAFETY: `long` says how much room there is.
        succeeded(unsafe { (call.EVP_DigestSignFinal)(self.copy, mac.as_mut_ptr(), &raw mut long) })
    }
}

const fn length(hash: Hash) -> usize {
    match hash {
        Hash::Sha1 => 20,
        Hash::Sha256 => 32,
        Hash::Sha384 => 48,
    }
}

impl Drop for Mac {
    fn drop(&mut self) {
        // SAFETY: made by EVP_MD_CTX_new or null, and freed once.
        unsafe {
            (self.free)(self.keyed);
            (self.free)(self.copy);
        }
    }
}
