//! Serves the metrics over HTTP, in a thread of its own.
//!
//! Everything a client can hold on to is bounded: connections, the size of a
//! request's head, and the time that one request may take. A connection carries
//! one request: a scrape every few seconds gains nothing from keeping it open,
//! and the bounds stay simple.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

use super::metrics::Metrics;
use super::metrics::format::Format;

/// Connections at once; further ones wait in the kernel's queue.
const CONNECTIONS: u32 = 64;
/// A request's head must come within this time,
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// and be no longer than this many bytes.
const HEAD_BYTES: usize = 16 * 1024;
/// The whole connection, the answer's way to a slow reader included, may take
/// this long: twice the usual time limit of a scrape.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(20);
/// Requests under way when the server is stopped get this long.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);
/// Pause after a failed accept: a lack of file descriptors does not pass at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

const INDEX: &str = include_str!("index.html");

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

/// A running server; dropping it stops it without waiting.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Binds `address` and serves `metrics` there.
    ///
    /// # Errors
    /// When the address cannot be bound or there is no thread for it.
    pub fn start(address: SocketAddr, metrics: Arc<Metrics>) -> Result<Self, HttpError> {
        let bind_error = |source: io::Error| match source.kind() {
            io::ErrorKind::AddrInUse => HttpError::InUse { address },
            _ => HttpError::Bind { address, source },
        };
        let listener = TcpListener::bind(address).map_err(bind_error)?;
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
        let thread = std::thread::Builder::new()
            .name("tlsprof-http".to_owned())
            .spawn(move || runtime.block_on(serve(listener, router(metrics), stopped)))
            .map_err(HttpError::Start)?;
        Ok(Self {
            address,
            stop,
            thread,
        })
    }

    /// The address that is served; its port is real where 0 was asked for.
    pub const fn address(&self) -> SocketAddr {
        self.address
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

fn router(metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/", get(|| async { Html(INDEX) }))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/metrics", get(scrape))
        .fallback(|| async { (StatusCode::NOT_FOUND, "Not found. Try /metrics.\n") })
        .with_state(metrics)
}

async fn scrape(State(metrics): State<Arc<Metrics>>, headers: HeaderMap) -> Response {
    // Several Accept lines mean the same as one with commas (RFC 9110, 5.3).
    let accept: Vec<&str> = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .collect();
    let format = Format::negotiate(Some(&accept.join(",")));
    match metrics.encode(format) {
        Ok(body) => {
            let headers = [
                (header::CONTENT_TYPE, format.content_type()),
                (header::VARY, "accept"),
            ];
            (headers, body).into_response()
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
    mut stopped: oneshot::Receiver<()>,
) {
    let places = Arc::new(Semaphore::new(CONNECTIONS as usize));
    loop {
        let accepted = tokio::select! {
            _ = &mut stopped => break,
            accepted = accept(&listener, &places) => accepted,
        };
        match accepted {
            Ok((stream, place)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    connection(stream, router).await;
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
    let _ = timeout(STOP_TIMEOUT, places.acquire_many(CONNECTIONS)).await;
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

async fn connection(stream: TcpStream, router: Router) {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    match timeout(CONNECTION_TIMEOUT, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "connection ended early"),
        Err(_) => tracing::debug!("connection took too long"),
    }
}

#[cfg(test)]
mod tests;
