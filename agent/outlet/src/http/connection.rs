//! One connection: TLS where it is asked for, one request, one answer.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::http::{Request, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::bounds::Bounds;
use super::health;
use super::web_config::WebConfig;

/// Serves one connection to its end, or to the end of its time.
pub(super) async fn serve(stream: TcpStream, config: Arc<WebConfig>, router: Router, of: Bounds) {
    let served = async {
        let Some(tls) = &config.tls else {
            return speak(stream, config, router, of).await;
        };
        let accepted = TlsAcceptor::from(Arc::clone(tls)).accept(stream);
        match timeout(of.handshake, accepted).await {
            Ok(Ok(stream)) => speak(stream, config, router, of).await,
            Ok(Err(error)) => tracing::debug!(%error, "TLS handshake failed"),
            Err(_) => tracing::debug!("TLS handshake took too long"),
        }
    };
    if timeout(of.connection, served).await.is_err() {
        tracing::debug!("connection took too long");
    }
}

async fn speak<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    config: Arc<WebConfig>,
    router: Router,
    of: Bounds,
) {
    let service = service_fn(move |request| {
        let (config, router) = (Arc::clone(&config), router.clone());
        async move { Ok::<_, Infallible>(answer(&config, router, request).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(of.head)
        .max_buf_size(of.head_bytes)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended early");
    }
}

async fn answer(config: &WebConfig, router: Router, request: Request<Incoming>) -> Response {
    let open = health::is_open(request.uri().path());
    let mut response = if open || is_admitted(config, &request).await {
        match TowerToHyperService::new(router).call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    } else {
        let challenge = [(header::WWW_AUTHENTICATE, "Basic realm=\"tlsprof\"")];
        (StatusCode::UNAUTHORIZED, challenge, "Unauthorized\n").into_response()
    };
    for (name, value) in &config.headers {
        response.headers_mut().insert(name, value.clone());
    }
    response
}

async fn is_admitted(config: &WebConfig, request: &Request<Incoming>) -> bool {
    match &config.users {
        Some(users) => {
            users
                .admit(request.headers().get(header::AUTHORIZATION))
                .await
        }
        None => true,
    }
}
