//! What can be asked for.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::{
    Json, Router,
    body::{Body, Bytes, to_bytes},
    extract::{Request, State},
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{Command, Control, Screen, gate, page};

/// Bytes of a command, at most.
const BODY: usize = 4096;
/// A body that takes longer ends the request.
const WAIT: Duration = Duration::from_secs(5);

#[derive(Clone)]
struct Desk {
    control: Arc<dyn Control>,
    screen: Arc<Screen>,
}

pub(super) fn router(control: Arc<dyn Control>, screen: Arc<Screen>, gate: Arc<gate::Gate>) -> Router {
    let parts = page::PARTS.iter().fold(Router::new(), |router, part| router.route(part.path, get(async || part.answer())));
    parts
        .route("/", get(async || page::INDEX.answer()))
        .route("/hello", get(async |State(desk): State<Desk>| Json(desk.control.hello())))
        .route("/state", get(async |State(desk): State<Desk>| Json(desk.control.state())))
        .route("/control", post(control_it))
        .route("/frames", get(frames))
        .with_state(Desk { control, screen })
        .layer(middleware::from_fn_with_state(gate, gate::keep))
}

/// A command in, what came of it out; refused values are answered in words.
async fn control_it(State(desk): State<Desk>, request: Request) -> Response {
    let answer = |status: StatusCode, error: String| (status, Json(json!({ "error": error }))).into_response();
    let body = match tokio::time::timeout(WAIT, to_bytes(request.into_body(), BODY)).await {
        Err(_) => return answer(StatusCode::REQUEST_TIMEOUT, "the command did not come".into()),
        Ok(Err(_)) => return answer(StatusCode::PAYLOAD_TOO_LARGE, format!("a command has at most {BODY} bytes")),
        Ok(Ok(body)) => body,
    };
    let command: Command = match serde_json::from_slice(&body) {
        Ok(command) => command,
        Err(error) => return answer(StatusCode::BAD_REQUEST, error.to_string()),
    };
    match desk.control.call(command) {
        Ok(value) => Json::<Value>(value).into_response(),
        Err(error) => answer(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    }
}

/// Frames without an end, each with its length in front (u32, little endian). A viewer that is slow misses some: one frame waits for it, no more.
async fn frames(State(desk): State<Desk>) -> Response {
    let mut newest = desk.screen.0.subscribe();
    let (send, receive) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Ok(place) = send.reserve().await {
            tokio::select! {
                changed = newest.changed() => if changed.is_err() { return },
                () = send.closed() => return,
            }
            let frame = newest.borrow_and_update();
            place.send([&(frame.len() as u32).to_le_bytes(), &frame[..]].concat().into());
        }
    });
    ([(header::CONTENT_TYPE, "application/octet-stream")], Body::new(Frames(receive))).into_response()
}

/// What comes out of a channel, as the body of an answer.
struct Frames(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Frames {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
