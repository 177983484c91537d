//! What of OpenSSL there is in an image.

/// Generation of OpenSSL, as far as its functions differ for a profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// 1.1.1 and its patch releases.
    V1_1_1,
    /// 3.0 and later.
    V3,
}

/// What of OpenSSL is in one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Its generation.
    pub generation: Generation,
    /// libssl: handshakes.
    pub ssl: bool,
    /// libcrypto: the steps.
    pub crypto: bool,
}
