//! A comparison: text and a page for people, JSON for programs.

pub mod html;
pub mod json;
#[cfg(test)]
pub(crate) mod sample;
mod sentences;
pub mod text;
mod words;
