//! What the live page asks for, as JSON. `docs/live-page.md` documents it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::coding::Coding;
use crate::outlet::watch::{Details, SeriesState, SharedWatch, State as Services, Watch};

/// Answers that are given out again to those who ask the same until the next reading.
const ANSWERS: usize = 16;

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
struct Question {
    /// A service to be shown as well.
    service: Option<String>,
    /// The run of which the asker has points, and the number of the newest of them.
    run: Option<String>,
    #[serde(default)]
    since: u64,
}

/// The answer.
#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    state: Services,
    /// The service that was asked for.
    selected: Option<Selected>,
}

/// One service.
#[derive(Debug, Serialize)]
struct Selected {
    /// Null where it has no series of its own.
    series: Option<SeriesState>,
    /// Null where nothing is known of it.
    details: Option<Details>,
}

impl Answer {
    fn to(question: &Question, watch: &Watch) -> Self {
        let state = watch.state(watch.history().last_point());
        let same_run = question.run.as_deref() == Some(&*state.about.run);
        let since = if same_run { question.since } else { 0 };
        let selected = question.service.as_deref().map(|service| Selected {
            series: watch.series(service, since),
            details: watch.details(service),
        });
        Self { state, selected }
    }
}

/// Answers of the last reading.
#[derive(Debug, Default)]
struct Made {
    reading: u64,
    bodies: HashMap<(Question, Coding), Bytes>,
}

/// Makes answers: however often the same is asked, once for each reading.
#[derive(Debug)]
struct Answers {
    watch: SharedWatch,
    made: Mutex<Made>,
}

impl Answers {
    fn body(&self, question: Question, coding: Coding) -> Result<Bytes, serde_json::Error> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let watch = self.watch.lock().unwrap_or_else(PoisonError::into_inner);
        if made.reading != watch.reading() || made.bodies.len() >= ANSWERS {
            made.bodies.clear();
            made.reading = watch.reading();
        }
        let key = (question, coding);
        if let Some(body) = made.bodies.get(&key) {
            return Ok(body.clone());
        }
        let answer = Answer::to(&key.0, &watch);
        // Evidence is booked under this lock: writing down takes longer than looking.
        drop(watch);
        let body = Bytes::from(coding.write(serde_json::to_vec(&answer)?));
        made.bodies.insert(key, body.clone());
        Ok(body)
    }
}

pub(super) fn router(watch: SharedWatch) -> Router {
    let answers = Answers {
        watch,
        made: Mutex::default(),
    };
    Router::new()
        .route("/api/v1/state", get(answer))
        .with_state(Arc::new(answers))
}

async fn answer(
    State(answers): State<Arc<Answers>>,
    Query(question): Query<Question>,
    headers: HeaderMap,
) -> Response {
    let coding = Coding::asked(&headers);
    match answers.body(question, coding) {
        Ok(body) => {
            let headers = [
                (header::CONTENT_TYPE, "application/json"),
                (header::CACHE_CONTROL, "no-store"),
                (header::VARY, "accept-encoding"),
            ];
            (headers, AppendHeaders(coding.header()), body).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "the state cannot be written down");
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
        }
    }
}
