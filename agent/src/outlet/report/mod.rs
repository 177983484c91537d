//! The report of one profile: text for people, JSON for programs.

pub mod model;
