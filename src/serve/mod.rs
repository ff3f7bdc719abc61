//! A run seen and steered from a browser, by its user and nobody else.
//!
//! [`Server`] answers HTTP in a thread of its own. What it shows and does is behind [`Control`], which a run implements; the server knows neither filters nor
//! flowgraphs. It keeps these promises, whoever calls:
//!
//! - It listens on the address that was asked for, which is loopback unless the user names another.
//! - Every call needs the token of this run, which stands in the printed address and nowhere else ([`gate`]).
//! - A page of another site cannot call it: `Host` and `Origin` are compared with what this server is called, and there are no CORS headers.
//! - Bodies, headers, connections and waiting are bounded ([`listen`]). Nothing queues for a viewer: a slow one gets the newest frame when it is ready for it.
//! - No file path is taken over HTTP: states and recordings have plain names in a folder that the command line named, and names that exist are refused.

pub(crate) mod frame;
mod gate;
mod listen;
mod page;
mod routes;
#[cfg(test)]
mod tests;

use std::{net::SocketAddr, sync::Arc, thread};

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::{oneshot, watch};

use crate::{Error, Result};

/// What a run lets its viewers see and do. Calls come from the server's thread and must not block for long.
pub(crate) trait Control: Send + Sync + 'static {
    /// What does not change: streams, filters with their parameters, ranges and units.
    fn hello(&self) -> Value;
    /// Figures of this moment.
    fn state(&self) -> Value;
    /// Does what is asked, or says in words that fit beside the control why not.
    fn call(&self, command: Command) -> Result<Value>;
}

/// What a viewer can ask for.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Command {
    /// Learn, or only predict.
    Adapt { filter: String, on: bool },
    /// Let the filter rest.
    Bypass { filter: String, on: bool },
    /// Forget what was learned.
    Reset { filter: String },
    /// Change a parameter.
    Set { filter: String, parameter: String, value: f64 },
    /// Keep the filter's state under a new name.
    Save { filter: String, name: String },
    /// Take a kept state over.
    Load { filter: String, name: String },
    /// Change a setting of the radio.
    Radio { setting: String, value: f64 },
    /// Start or stop a recording.
    Record { on: bool },
    /// End the run, with its report.
    // With braces, or an unknown key beside it would pass.
    Stop {},
}

/// The newest frame for all viewers; empty before the first.
pub(crate) struct Screen(watch::Sender<axum::body::Bytes>);

impl Screen {
    /// Whether anybody looks: where not, nothing needs to be drawn.
    pub(crate) fn watched(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Replaces the newest frame; those who are slow never see the old one.
    pub(crate) fn show(&self, frame: Vec<u8>) {
        self.0.send_replace(frame.into());
    }
}

/// A server that runs until it is dropped.
pub(crate) struct Server {
    url: String,
    screen: Arc<Screen>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Server {
    /// Listens on `address` (port 0: any free one).
    pub(crate) fn start(address: SocketAddr, control: Arc<dyn Control>) -> Result<Self> {
        let refused = |e: std::io::Error| Error::Data(format!("cannot serve on {address}: {e}"));
        let listener = std::net::TcpListener::bind(address).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let gate = gate::Gate::new(address)?;
        let url = format!("http://{address}/?token={}", gate.token());
        let screen = Arc::new(Screen(watch::Sender::new(Default::default())));
        let router = routes::router(control, screen.clone(), Arc::new(gate));
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(refused)?;
        let serve = move || runtime.block_on(listen::serve(listener, router, stopped));
        let thread = thread::Builder::new().name("serve".into()).spawn(serve).map_err(refused)?;
        Ok(Self { url, screen, stop: Some(stop), thread: Some(thread) })
    }

    /// The address to open, token included.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Where frames are shown.
    pub(crate) fn screen(&self) -> Arc<Screen> {
        self.screen.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends with its connections; a panic in it has nobody left to tell.
            let _ = thread.join();
        }
    }
}
