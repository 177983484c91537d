//! What machine code is for, by what its instructions are made of: no symbols needed.

/// What code does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// AES rounds, and carry-less multiplication for GHASH.
    Aes,
    /// ChaCha20 or Poly1305.
    ChaCha,
    /// SHA-1 or SHA-2.
    Sha,
    /// Wide multiplication with carry chains: Montgomery, curve arithmetic.
    PublicKey,
    /// Copying of memory.
    Copy,
    /// Anything else.
    Other,
}
