//! What CPU time was spent on.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::{Activity, Primitive, Step, Unit};

/// CPU samples of the profile.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Sampling {
    /// Seconds between two samples of a CPU; null where none were taken.
    pub period_seconds: Option<f64>,
    /// The same in the beginning, where samples were taken more often then, as the length of the report was not
    /// known.
    #[serde(default)]
    pub first_period_seconds: Option<f64>,
    /// Why none were taken; null where they were.
    pub unavailable: Option<String>,
}

/// CPU time of a service in one activity. The shares of all activities and
/// [`CpuSamples::unattributed_seconds`] add up to the service's `cpu_seconds`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ActivityCpu {
    /// `handshake`, `encryption`, `tcp_open`, `tcp_close`, `socket_io`, `application`.
    pub activity: Activity,
    /// CPU time of the service's processes, scaled to what the kernel accounts.
    pub cpu_seconds: f64,
    /// The part of it in user mode, divided by samples.
    pub user_seconds: f64,
    /// The part of it in kernel mode, divided by samples.
    pub system_seconds: f64,
    /// Kernel work for the service outside its processes' time, a period for each
    /// sample. In no sum.
    pub softirq_seconds: f64,
    /// `cpu_seconds` as a share of the service's CPU time.
    pub share: f64,
    /// Lower limit of `share` in 95% of cases: binomial by Wilson, from the numbers of
    /// samples.
    pub share_low: f64,
    /// Upper limit.
    pub share_high: f64,
    /// Samples that `cpu_seconds` rests on.
    pub samples: u64,
    /// Samples that `softirq_seconds` rests on: the service's part by its connections opened
    /// and closed and its bytes moved.
    pub softirq_samples: u64,
}

/// The samples of a service.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct CpuSamples {
    /// How many its processes had.
    pub count: u64,
    /// How many at one rate would be as precise: less than `count` where the rate fell. 0 in reports from before
    /// it could.
    #[serde(default)]
    pub(crate) effective: f64,
    /// Those of them in the kernel, in functions that are on no list: they are in
    /// `application`.
    pub unclassified: u64,
    /// Those of them in `encryption` that only their instructions tell, in code of no
    /// known TLS library: the cipher itself. What frames and copies records
    /// there is not told from `application`.
    #[serde(default)]
    pub cipher_alone: u64,
    /// Those of them in the kernel.
    pub system: u64,
    /// What all of them stand for, at a period each, as a share of what the kernel
    /// accounted: about 1, less where samples were lost. Null without CPU time.
    pub sampled_ratio: Option<f64>,
    /// CPU time that no sample speaks for, in seconds.
    pub unattributed_seconds: f64,
    /// How far the sum of the activities is from what the kernel accounted, as a
    /// share of that. Null without CPU time.
    pub(crate) reconciliation_error_ratio: Option<f64>,
}

/// CPU time that a service spent on one cryptographic primitive in handshakes and encryption. All of
/// them add up to these two activities.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct PrimitiveCpu {
    /// `rsa_dh` (RSA and finite-field DH, in code that nothing else uses), `big_number` (the same, and
    /// curves without code of their own), `multiprecision` (any public-key algorithm, in GMP), `p256`,
    /// `p384`, `p521`,
    /// `elliptic_curve` (which one is not known), `curve25519` (X25519 and Ed25519), `curve448`, `ml_kem`,
    /// `ml_dsa`, `public_key` (the algorithm is not known), `sha` (SHA-1 and SHA-2), `sha3`,
    /// `key_derivation` (HMAC, HKDF and TLS's PRF but for their hash), `aes` (with GHASH),
    /// `chacha20_poly1305`, `x509` (with ASN.1), `random`, `memory`, `other` (code with a name that is
    /// none of these), `kernel`, `not_identified`.
    pub primitive: Primitive,
    /// CPU time, scaled to what the kernel accounts.
    pub cpu_seconds: f64,
    /// The part of it in handshakes.
    pub handshake_seconds: f64,
    /// `cpu_seconds` as a share of the service's CPU time.
    pub share: f64,
    /// Lower limit of `share` in 95% of cases: binomial by Wilson, from the numbers of
    /// samples.
    pub share_low: f64,
    /// Upper limit.
    pub share_high: f64,
    /// Samples that `cpu_seconds` rests on.
    pub samples: u64,
}

/// The samples of handshakes and encryption whose code was looked up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct PrimitiveSamples {
    /// How many.
    pub count: u64,
    /// Those of them that are identified by the name of their function, or as the kernel.
    pub by_name: u64,
    /// Those of them that only their machine instructions identify.
    pub by_instructions: u64,
    /// Those of them that nothing identifies.
    pub not_identified: u64,
}

/// CPU time that a service spent in handshakes on one step, by what the code of CPU samples computes
/// and what the handshakes negotiated: with and without probes in the TLS library. All of them add up
/// to the CPU time of handshakes in `primitives`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct SampledStep {
    /// `key_exchange`, `signing`, `verification`, `rsa_decryption`, `key_derivation` or `other`; several
    /// where samples cannot separate them. Only what is proved: memory, hashes and calls around the
    /// arithmetic of a step are `other`.
    pub steps: Vec<Step>,
    /// CPU time, scaled to what the kernel accounts.
    pub cpu_seconds: f64,
    /// `cpu_seconds` as a share of all of these.
    pub share: f64,
    /// Lower limit of `share` in 95% of cases: binomial by Wilson, from the number of samples.
    pub share_low: f64,
    /// Upper limit.
    pub share_high: f64,
    /// Samples that `cpu_seconds` rests on.
    pub samples: u64,
    /// The share of the same steps where library probes measured them too; null where they did not.
    pub measured_share: Option<f64>,
}

/// CPU time of one unit of work.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct UnitCost {
    /// `handshake` (activity `handshake`, all handshakes that ended), `turn` (a request
    /// and its answer: `encryption`, `socket_io` and `application`) or `megabyte` (a
    /// million bytes on TLS connections after their handshakes, both directions:
    /// `encryption`).
    pub unit: Unit,
    /// How many of them, counted exactly.
    pub count: f64,
    /// CPU time of one, in seconds.
    pub cpu_seconds: f64,
    /// Lower limit of `cpu_seconds` in 95% of cases: binomial by Wilson.
    pub low_seconds: f64,
    /// Upper limit.
    pub high_seconds: f64,
    /// Samples that it rests on.
    pub samples: u64,
    /// The cipher suite that carried 95% of the bytes or more; null if there is none.
    pub cipher: Option<String>,
}
