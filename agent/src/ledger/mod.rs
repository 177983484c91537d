//! The accounts of each service: handshakes, their CPU time, steps and waits.
