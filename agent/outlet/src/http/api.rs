//! What the live page asks for, as JSON. `docs/live-page.md` documents it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::coding::Coding;
use crate::watch::{Details, SeriesState, SharedWatch, State as Services, Watch};

/// Answers that are given out again to those who ask the same until the next reading.
const ANSWERS: usize = 16;
/// After one was made the next waits this many times as long as it took: whoever asks for what,
/// profiling goes on.
const PAUSE: u32 = 3;

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

/// Makes answers: however often the same is asked, once for each reading; and one at a time.
#[derive(Debug)]
struct Answers {
    watch: SharedWatch,
    made: Mutex<Made>,
    turn: Arc<Semaphore>,
}

impl Answers {
    async fn body(&self, question: Question, coding: Coding) -> Result<Bytes, serde_json::Error> {
        let key = (question, coding);
        if let Some(body) = self.known(&key) {
            return Ok(body);
        }
        // An error: closed, which it never is.
        let turn = Arc::clone(&self.turn).acquire_owned().await.ok();
        // Those who waited may find that another has asked the same.
        if let Some(body) = self.known(&key) {
            return Ok(body);
        }
        let begun = Instant::now();
        let body = self.make(key);
        let pause = begun.elapsed() * PAUSE;
        tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            drop(turn);
        });
        body
    }

    fn known(&self, key: &(Question, Coding)) -> Option<Bytes> {
        let reading = lock(&self.watch).reading();
        let mut made = lock(&self.made);
        if made.reading != reading {
            made.bodies.clear();
            made.reading = reading;
        }
        made.bodies.get(key).cloned()
    }

    fn make(&self, key: (Question, Coding)) -> Result<Bytes, serde_json::Error> {
        // No evidence is booked while this looks: writing down takes longer.
        let answer = Answer::to(&key.0, &lock(&self.watch));
        let body = Bytes::from(key.1.write(serde_json::to_vec(&answer)?));
        let mut made = lock(&self.made);
        if made.bodies.len() >= ANSWERS {
            made.bodies.clear();
        }
        made.bodies.insert(key, body.clone());
        Ok(body)
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn router(watch: SharedWatch) -> Router {
    let answers = Answers {
        watch,
        made: Mutex::default(),
        turn: Arc::new(Semaphore::new(1)),
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
    match answers.body(question, coding).await {
        Ok(body) => {
            let headers = [
                (header::CONTENT_TYPE, "application/json"),
                (header::CACHE_CONTROL, "no-store"),
                (header::VARY, "accept-encoding"),
            ];
            (headers, AppendHeaders(coding.header()), body).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "the state cannot be written as JSON");
            (StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")).into_response()
        }
    }
}
