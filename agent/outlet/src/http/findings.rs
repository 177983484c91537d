//! The page of each finding: that of docs/findings.

use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, Html, IntoResponse as _, Response};
use axum::routing::get;
use maud::{DOCTYPE, html};
use tlsprof_advise::Kind;

use super::coding::Coding;
use crate::html::markdown::{Place, markdown};

pub(super) fn router() -> Router {
    Router::new().route("/findings/{name}", get(finding))
}

async fn finding(Path(name): Path<String>, asked: HeaderMap) -> Response {
    let Some(kind) = Kind::named(&name) else {
        let told = "There is no finding of this name. The live page at / lists the findings.\n";
        return (StatusCode::NOT_FOUND, told).into_response();
    };
    let coding = Coding::asked(&asked);
    let headers = [
        (header::CACHE_CONTROL, "no-cache"),
        (header::VARY, "accept-encoding"),
    ];
    let body = coding.write(page(kind).into_bytes());
    (headers, AppendHeaders(coding.header()), Html(body)).into_response()
}

/// With the styles of the live page: policy forbids others.
fn page(kind: &Kind) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (kind.label) " · tlsprof" }
                link rel="icon" type="image/svg+xml" href="/assets/icon.svg";
                link rel="stylesheet" href="/assets/base.css";
                link rel="stylesheet" href="/assets/layout.css";
            }
            body {
                header { p { a href="/" { "tlsprof" } } }
                main class="page" {
                    (markdown(kind.page(), Place::Alone, |name| Some(format!("/findings/{name}"))))
                }
            }
        }
    };
    page.into_string() + "\n"
}
