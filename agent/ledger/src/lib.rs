//! The accounts of each service: handshakes, their CPU time, steps and waits;
//! TCP connections; CPU time by activity.
//!
//! Pure bookkeeping: no clock, no system call. Every sum only grows, so that it
//! can be exported as a counter, and memory is bounded by [`Limits`].

mod accept_queue;
mod alternatives;
mod booking;
mod connections;
mod cpu;
mod distribution;
mod flights;
mod handshakes;
mod hellos;
pub mod interval;
mod ledger;
mod limits;
mod moments;
mod network;
mod origins;
mod processes;
mod profile;
mod recent;
mod remotes;
mod sampled_steps;
mod service;
mod since;
mod sources;
mod steps;
#[cfg(test)]
mod tests;
mod unit_costs;

pub use accept_queue::AcceptQueueAccount;
pub use alternatives::{
    Alternatives, Chosen, CipherOffers, Consequences, Counts, RSA_TRANSPORT, TurnedAway,
};
pub use connections::{Closed, ConnectionAccount, EstimatedTurns, Turns};
pub use cpu::{Accounted, Check, CpuAccount, Part, PrimitiveAccount, Primitives, Sampling};
pub use distribution::Distribution;
pub use flights::{Chains, Flights, INITIAL_WINDOW};
pub use handshakes::{CostDistribution, HandshakeKey, HandshakeSum, RoleAccount, is_lower_bound};
pub use hellos::{FEATURES, HelloAccount};
pub use ledger::{Ledger, SharedLedger};
pub use limits::{Limits, OTHER, bounded, bounded_long};
pub use moments::Moments;
pub use network::NetworkEvents;
pub use origins::{Brought, Origins};
pub use processes::Processes;
pub use profile::{Code, Profile, Spot};
pub use recent::Recent;
pub use remotes::Ports;
pub use sampled_steps::{SampledStep, StepSet};
pub use service::ServiceAccount;
pub use sources::{Agreement, Application, ApplicationBytes, Estimated, SocketAccount};
pub use steps::{Class, Pending, StepAccount};
pub use unit_costs::{Unit, UnitCost, are_requests};
