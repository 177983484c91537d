//! `tlsprof top`: services under watch, on a terminal.
//!
//! What is shown comes from [`Watch`](super::watch::Watch), as on the live page. The state
//! of the screen ([`screen`]) knows keys, but neither figures nor a terminal; what is drawn
//! ([`draw`]) is a function of figures, state and size. Only [`terminal`] touches the
//! terminal.

pub mod draw;
pub mod key;
pub mod order;
pub mod screen;
pub mod terminal;
#[cfg(test)]
mod tests;
pub mod view;
