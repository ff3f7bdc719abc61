//! Predistortion: learn an amplifier from what it was given and what came back, and send what makes it put out the signal itself.
//!
//! 1. [`Learner`] fits the amplifier, `u[n] = Σ z[n − a] G(|z[n − b]|)`, from pairs that are in step. Behind a [coupler](Path::Coupler) that is least squares. Over the
//!    [air](Path::Air) the amplifier is slow and the channel behind it fast: block after block the channel is fitted to the amplifier as it is known, and then the
//!    amplifier behind that channel to all blocks so far.
//! 2. [`Table::invert`] inverts the model: `z ← clip(z + 0.8 (x − u(z)))`, held to a level. [`Table::fitted`] learns the inverse directly from a good coupler, with
//!    what came back as its input (indirect learning; Eun and Powers 1997).
//! 3. [`Predistorter`] runs the table on a stream, [`predistort`] on a whole signal.
//!
//! Amplitudes are in the units of the signal, and a gain of 1 is the mean gain that the signal sees.

mod basis;
mod channel;
mod fit;
mod model;
mod predistorter;
mod swap;

pub use self::{
    basis::Term,
    channel::Path,
    model::{Learner, Model, Options},
    predistorter::{Predistorter, Table, predistort},
};

#[cfg(feature = "blocks")]
pub(crate) use self::swap::{FADE, Swapping};
