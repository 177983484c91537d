//! What CPU time was spent on. The rules are pure: functions and kinds of code in,
//! an activity out. `docs/accounting.md` has them in words.

pub(crate) mod kernel_functions;
pub mod kernel_symbols;
mod rules;
#[cfg(test)]
mod tests;
mod types;

pub use rules::{KernelWork, Observed, Place, classify};
pub use types::{Activity, Basis, Mode, Packets, Tls, Upkeep, UserCode, Verdict};
