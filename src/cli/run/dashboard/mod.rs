//! `--serve`: the run in a browser.
//!
//! [`Dashboard`] stands between a run and [`serve`](crate::serve): at each look of the watch loop it takes down how the filters do ([`history`]) and, while somebody
//! watches, draws a frame ([`draw`]); what viewers ask for goes through the [`desk`]. Filters do nothing for it that they would not do anyway, except that they keep a
//! glimpse of their streams when they are asked for one.

mod desk;
mod draw;
mod history;
mod states;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::Subject;
use crate::blocks::Recorder;
use crate::flowgraphs::track::View;
use crate::serve::{Screen, Server};
use crate::{Error, Result};

/// Between two looks of a run that is served.
pub(in crate::cli) const EVERY: Duration = Duration::from_millis(90);

/// Whether and where a run is shown.
#[derive(clap::Args, Clone)]
pub(in crate::cli) struct ServeArgs {
    /// Show the run in a browser, to be steered from there: prints the address to open. Without ADDRESS:PORT on any free port, for this machine alone
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:0", value_parser = address)]
    pub(in crate::cli) serve: Option<SocketAddr>,
    /// Folder for the states and recordings that are asked for there
    #[arg(long, value_name = "DIR", requires = "serve")]
    pub(in crate::cli) keep: Option<PathBuf>,
}

fn address(text: &str) -> Result<SocketAddr> {
    let expected = "an address and a port, such as 127.0.0.1:8080 (recordings stand before --serve, or write --serve=ADDRESS:PORT)";
    let address: SocketAddr = text.parse().map_err(|_| Error::parameter("serve", expected, text))?;
    // Whoever calls has to call this server by its name, and that is none.
    let named = !address.ip().is_unspecified();
    if named { Ok(address) } else { Err(Error::parameter("serve", "one address of this machine, not all of them", text)) }
}

impl ServeArgs {
    /// A recorder for the flowgraph, where viewers may record.
    pub(in crate::cli) fn recorder(&self) -> Option<Recorder> {
        self.keep.as_ref().map(|_| Recorder::default())
    }
}

/// What a radio lets viewers see and change. Values are in the unit of their setting.
pub(in crate::cli) trait Tuner: Send + Sync + 'static {
    /// Names, units and ranges: `{name, label, unit, low, high}`.
    fn settings(&self) -> Vec<Value>;
    /// Whether something is transmitted.
    fn transmits(&self) -> bool;
    /// What the settings are and what was lost, now.
    fn state(&self) -> Value;
    fn set(&self, setting: &str, value: f64) -> Result<()>;
}

/// What the ends of a run add to what is shown of it.
#[derive(Default)]
pub(in crate::cli) struct Ends {
    pub(in crate::cli) recorder: Option<Recorder>,
    pub(in crate::cli) tuner: Option<Box<dyn Tuner>>,
    pub(in crate::cli) centre_hz: Option<f64>,
    /// Receive channels, each with all filters.
    pub(in crate::cli) channels: Vec<usize>,
}

/// A run that is shown.
pub(in crate::cli) struct Dashboard {
    desk: Arc<desk::Desk>,
    draw: draw::Draw,
    screen: Arc<Screen>,
    server: Server,
}

impl Dashboard {
    /// Opens the address that is asked for, if any, and prints it.
    pub(in crate::cli) fn start(args: &ServeArgs, subject: &Subject, ends: Ends) -> Result<Option<Self>> {
        let dashboard = Self::open(args, subject, ends)?;
        if let Some(dashboard) = &dashboard {
            eprintln!("kaflow: open {}", dashboard.url());
        }
        if let Some(address) = args.serve.filter(|address| !address.ip().is_loopback()) {
            note!("others in this network can read what goes between you and {address}, the token too; ssh -L does without it");
        }
        Ok(dashboard)
    }

    /// Opens the address that is asked for, if any.
    pub(in crate::cli) fn open(args: &ServeArgs, subject: &Subject, ends: Ends) -> Result<Option<Self>> {
        let Some(address) = args.serve else { return Ok(None) };
        if let Some(folder) = &args.keep {
            std::fs::create_dir_all(folder).map_err(|e| Error::io(folder, e))?;
        }
        let desk = Arc::new(desk::Desk::new(subject, ends, args.keep.clone())?);
        let server = Server::start(address, desk.clone())?;
        Ok(Some(Self { draw: draw::Draw::new(desk.names().len()), desk, screen: server.screen(), server }))
    }

    /// The address to open.
    pub(in crate::cli) fn url(&self) -> &str {
        self.server.url()
    }

    /// Whether anybody looks.
    pub(in crate::cli) fn watched(&self) -> bool {
        self.screen.watched()
    }

    /// To be called at every look of the run.
    pub(in crate::cli) fn look(&mut self, subject: &Subject, view: &View<'_>) {
        self.desk.look(view);
        if self.watched() {
            self.screen.show(self.draw.frame(subject, view, &self.desk));
        }
    }
}
