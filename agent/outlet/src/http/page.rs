//! The live page: its files, compiled in.

use std::sync::LazyLock;

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse as _, Response};
use axum::routing::get;
use ring::digest;

use super::coding::Coding;

/// A file of the page.
struct Asset {
    name: &'static str,
    kind: &'static str,
    text: &'static str,
}

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const PLAIN: &str = "text/plain; charset=utf-8";

macro_rules! assets {
    ($($kind:ident $name:literal),+ $(,)?) => {
        [$(Asset {
            name: $name,
            kind: $kind,
            text: include_str!(concat!("page/", $name)),
        }),+]
    };
}

/// All of them; the first is the page itself.
static ASSETS: &[Asset] = &assets![
    HTML "index.html",
    SVG "icon.svg",
    CSS "base.css",
    CSS "layout.css",
    SCRIPT "main.js",
    SCRIPT "address.js",
    SCRIPT "poll.js",
    SCRIPT "series.js",
    SCRIPT "format.js",
    SCRIPT "element.js",
    SCRIPT "theme.js",
    SCRIPT "chart.js",
    SCRIPT "figures.js",
    SCRIPT "services.js",
    SCRIPT "service.js",
    SCRIPT "mixes.js",
    SCRIPT "findings.js",
    SCRIPT "agent.js",
    SCRIPT "vendor/uPlot.iife.min.js",
    CSS "vendor/uPlot.min.css",
    PLAIN "vendor/uPlot-LICENSE",
];

/// What each of them is known by in caches: the beginning of its SHA-256.
static TAGS: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| {
    let tags = ASSETS.iter().map(|asset| {
        let hash = digest::digest(&digest::SHA256, asset.text.as_bytes());
        let hash = hash.as_ref().iter().take(12);
        let text: String = hash.map(|byte| format!("{byte:02x}")).collect();
        HeaderValue::from_str(&format!("\"{text}\""))
    });
    tags.filter_map(Result::ok).collect()
});

pub(super) fn router() -> Router {
    Router::new()
        .route(
            "/",
            get(|headers: HeaderMap| async move { serve("index.html", &headers) }),
        )
        .route("/assets/{*name}", get(asset))
}

async fn asset(Path(name): Path<String>, headers: HeaderMap) -> Response {
    serve(&name, &headers)
}

/// A browser keeps what it has, but asks each time: the next version of the agent may have
/// another.
fn serve(name: &str, asked: &HeaderMap) -> Response {
    let known = ASSETS.iter().zip(TAGS.iter());
    let Some((asset, tag)) = known.into_iter().find(|(asset, _)| asset.name == name) else {
        return (StatusCode::NOT_FOUND, "Not found. Try /.\n").into_response();
    };
    let headers = [
        (header::ETAG, tag.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::VARY, HeaderValue::from_static("accept-encoding")),
    ];
    if asked.get(header::IF_NONE_MATCH) == Some(tag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let coding = Coding::asked(asked);
    let body = coding.write(asset.text.as_bytes().to_vec());
    let kind = [(header::CONTENT_TYPE, asset.kind)];
    (headers, kind, AppendHeaders(coding.header()), body).into_response()
}
