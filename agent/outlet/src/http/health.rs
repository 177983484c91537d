//! Whether the agent is up, for service managers and orchestrators: by the paths that Prometheus
//! has, and without a password, which these seldom have.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;

const HEALTHY: &str = "/-/healthy";
const READY: &str = "/-/ready";

/// Whether everyone may ask for that path.
pub(super) fn is_open(path: &str) -> bool {
    path == HEALTHY || path == READY
}

/// `ready` is raised when the profile is under way.
pub(super) fn router(ready: Arc<AtomicBool>) -> Router {
    let is_ready = move || async move {
        if ready.load(Ordering::Relaxed) {
            (StatusCode::OK, "ready\n")
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, "attaching\n")
        }
    };
    Router::new()
        .route(HEALTHY, get(|| async { "healthy\n" }))
        .route(READY, get(is_ready))
}
