//! What profiling costs the targets.
