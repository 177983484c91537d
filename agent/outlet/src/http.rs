//! Serves the metrics and the live page over HTTP, in a thread of its own.
//!
//! Everything a client can hold on to is bounded: connections, the time of a TLS
//! handshake, the size of a request's head, the bodies in memory, and the time
//! that one request may take. A connection carries one request: a scrape every
//! few seconds gains nothing from keeping it open, and the bounds stay simple.

mod access;
mod api;
mod bounds;
mod coding;
mod connection;
mod findings;
mod guard;
mod health;
mod listen;
mod page;
mod scrapes;
mod users;
mod web_config;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::metrics::Metrics;
use super::metrics::format::Format;
use super::watch::SharedWatch;
use tlsprof_common::privilege;

pub use access::Access;
use bounds::Bounds;
use coding::{Coding, all_of};
use guard::Hosts;
use scrapes::Scrapes;

/// Requests under way when the server is stopped get this long.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after a failed accept: a lack of file descriptors does not pass at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// The server could not start.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// Another process listens there already.
    #[error(
        "cannot serve metrics on {address}: the address is in use. Stop the other process \
         (`ss -ltnp 'sport = :{}'` shows it) or choose another address with --listen or \
         agent.listen", .address.port()
    )]
    InUse {
        /// The address wanted.
        address: SocketAddr,
    },
    /// The address is not one of this host, or may not be bound.
    #[error(
        "cannot serve metrics on {address}. Choose another address with --listen or agent.listen"
    )]
    Bind {
        /// The address wanted.
        address: SocketAddr,
        /// The system's reason.
        source: io::Error,
    },
    /// No thread or runtime for the server.
    #[error("cannot start the thread that serves metrics")]
    Start(#[source] io::Error),
}

/// What is served.
#[derive(Clone, Debug)]
pub struct Shown {
    /// For Prometheus.
    pub metrics: Arc<Metrics>,
    /// For the live page.
    pub watch: SharedWatch,
}

/// A running server; dropping it stops it without waiting.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    scheme: &'static str,
    ready: Arc<AtomicBool>,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Binds `address` and serves what is `shown` there, to whom `access` lets in.
    ///
    /// # Errors
    /// When the address cannot be bound or there is no thread for it.
    pub fn start(address: SocketAddr, shown: &Shown, access: Access) -> Result<Self, HttpError> {
        Self::start_bounded(address, shown, access, Bounds::default())
    }

    fn start_bounded(
        address: SocketAddr,
        shown: &Shown,
        access: Access,
        bounds: Bounds,
    ) -> Result<Self, HttpError> {
        let bind_error = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => HttpError::InUse { address },
            _ => HttpError::Bind { address, source },
        };
        let listener = listen::bind(address).map_err(bind_error)?;
        listener.set_nonblocking(true).map_err(HttpError::Start)?;
        let address = listener.local_addr().map_err(HttpError::Start)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()
            .map_err(HttpError::Start)?;
        let listener = {
            let _inside = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(HttpError::Start)?
        };
        let (stop, stopped) = oneshot::channel();
        let scheme = access.scheme();
        let ready = Arc::new(AtomicBool::new(false));
        let router = router(shown, Hosts::of(address), Arc::clone(&ready));
        let thread = std::thread::Builder::new()
            .name("tlsprof-http".to_owned())
            .spawn(move || {
                // It talks to whoever comes.
                if let Err(error) = privilege::give_up_all() {
                    tracing::warn!(%error, "the thread that serves metrics keeps its privileges");
                }
                runtime.block_on(serve(listener, router, access, bounds, stopped));
                // A password may be under check; its time is over.
                runtime.shutdown_background();
            })
            .map_err(HttpError::Start)?;
        Ok(Self {
            address,
            scheme,
            ready,
            stop,
            thread,
        })
    }

    /// The address that is served; its port is real where 0 was asked for.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the metrics.
    pub fn url(&self) -> String {
        format!("{}metrics", self.page())
    }

    /// The URL of the live page.
    pub fn page(&self) -> String {
        format!("{}://{}/", self.scheme, self.address)
    }

    /// Says to those who ask that the profile is under way.
    pub fn set_ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
    }

    /// Stops accepting, lets requests under way end within two seconds, and
    /// waits for the thread.
    pub fn stop(self) {
        // An error means that the thread has ended already.
        let _ = self.stop.send(());
        if self.thread.join().is_err() {
            tracing::error!("the thread that serves metrics panicked");
        }
    }
}

fn router(shown: &Shown, hosts: Hosts, ready: Arc<AtomicBool>) -> Router {
    let metrics = Router::new()
        .route("/metrics", get(scrape))
        .fallback(|| async { (StatusCode::NOT_FOUND, "Not found. Try / or /metrics.\n") })
        .with_state(Arc::new(Scrapes::new(Arc::clone(&shown.metrics))));
    let page = page::router()
        .merge(findings::router())
        .merge(api::router(Arc::clone(&shown.watch)));
    metrics
        .merge(health::router(ready))
        .merge(guard::for_hosts(page, hosts))
        .layer(axum::middleware::map_response(guard::harden))
}

async fn scrape(State(scrapes): State<Arc<Scrapes>>, headers: HeaderMap) -> Response {
    let format = Format::negotiate(Some(&all_of(&headers, &header::ACCEPT)));
    let coding = Coding::asked(&headers);
    match scrapes.body(format, coding).await {
        Ok(body) => {
            let headers = [
                (header::CONTENT_TYPE, format.content_type()),
                (header::VARY, "accept, accept-encoding"),
            ];
            (headers, AppendHeaders(coding.header()), body).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "scrape failed");
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
        }
    }
}

/// Accepts connections until `stopped` fires or its sender is gone.
async fn serve(
    listener: tokio::net::TcpListener,
    router: Router,
    access: Access,
    bounds: Bounds,
    mut stopped: oneshot::Receiver<()>,
) {
    let places = Arc::new(Semaphore::new(bounds.connections as usize));
    loop {
        let accepted = tokio::select! {
            _ = &mut stopped => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                let Some(config) = access.now() else {
                    continue;
                };
                let served = connection::serve(stream, config, router.clone(), bounds);
                tokio::spawn(async move {
                    served.await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    // All places are free when the last connection has ended.
    let _ = timeout(STOP_TIMEOUT, places.acquire_many(bounds.connections)).await;
}

async fn accept(
    listener: &tokio::net::TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let place = Arc::clone(places).acquire_owned().await;
    let place = place.map_err(io::Error::other)?;
    let (stream, _) = listener.accept().await?;
    Ok((stream, place))
}

#[cfg(test)]
mod tests;
