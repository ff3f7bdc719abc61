//! Calls into a block while it runs.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::{Error, Result};

/// What a [`Track`](super::Track) block can be told while it runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Learn, or only predict.
    Adapt(bool),
    /// Pass the input on as the prediction while the tracker rests.
    Bypass(bool),
    /// Forget what was learned.
    Reset,
    /// Change one of the tracker's parameters.
    Set(String, f64),
    /// Take over what `Controls::save` gave.
    Restore(Vec<u8>),
}

/// What is asked of a block: a command, or its tracker's state.
pub(super) type Call = (Option<Command>, Sender<Result<Vec<u8>>>);

/// A handle that calls a [`Track`](super::Track) block while it runs, from any thread.
///
/// The runtime's own calls wait for ever for a block that has just ended, and hold up the whole flowgraph meanwhile; these do not.
#[derive(Clone, Debug)]
pub struct Controls(Sender<Call>);

/// How long a block may take to answer.
const TIMEOUT: Duration = Duration::from_secs(1);

impl Controls {
    pub(super) fn new() -> (Self, Receiver<Call>) {
        let (calls, waiting) = channel();
        (Self(calls), waiting)
    }

    /// Obeyed before the next sample; an error says why it was not, and that nothing has changed.
    pub fn call(&self, command: Command) -> Result<()> {
        self.ask(Some(command)).map(drop)
    }

    /// The tracker's parameters and everything that it has learned.
    pub(crate) fn save(&self) -> Result<Vec<u8>> {
        self.ask(None)
    }

    fn ask(&self, command: Option<Command>) -> Result<Vec<u8>> {
        let ended = || Error::Data("the filter has ended".into());
        let (answer, answered) = channel();
        self.0.send((command, answer)).map_err(|_| ended())?;
        match answered.recv_timeout(TIMEOUT) {
            Ok(result) => result,
            Err(RecvTimeoutError::Disconnected) => Err(ended()),
            Err(RecvTimeoutError::Timeout) => Err(Error::Data("no samples are coming: the call is obeyed when the next ones come".into())),
        }
    }
}

/// Hands what was asked since the last time to `answer`.
pub(super) fn answer(calls: &Option<Receiver<Call>>, mut obey: impl FnMut(Option<&Command>) -> Result<Vec<u8>>) {
    for (command, answer) in calls.iter().flat_map(Receiver::try_iter) {
        // After the time-out nobody listens.
        let _ = answer.send(obey(command.as_ref()));
    }
}
