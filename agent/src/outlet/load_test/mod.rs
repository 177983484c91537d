//! Load tests, told to those who watch: that one is running on this host, to the
//! agent ([`running`]), and when it ran, to Grafana ([`annotation`], [`grafana`]).
//!
//! A load test is a command that `tlsprof report` runs and profiles. Neither the
//! command nor its arguments leave the report: they may hold names and secrets.

pub mod annotation;
pub mod grafana;
pub mod running;
pub mod url;
