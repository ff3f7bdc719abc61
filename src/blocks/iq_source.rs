//! Recordings as streams.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futuresdr::runtime::dev::prelude::*;

use super::{Fault, gap};
use crate::iq::Recording;

/// Plays a recording: SigMF, raw or WAV, the channel that is selected, from where it stands to its end.
///
/// # Stream Inputs
///
/// No stream inputs.
///
/// # Stream Outputs
///
/// `output`. The first sample behind a gap has a `gap` tag.
///
/// # Message Inputs
///
/// No message inputs.
///
/// # Message Outputs
///
/// No message outputs.
///
/// # Usage
/// ```no_run
/// use futuresdr::{blocks::NullSink, prelude::*};
/// use kaflow::{blocks::IqSource, iq::Recording};
///
/// # fn main() -> Result<()> {
/// let source = IqSource::new(Recording::open("capture.sigmf-meta", None)?); // a missing file is an error here, not a hanging flowgraph
/// let fault = source.fault.clone();
/// let sink = NullSink::<Complex32>::new();
/// let mut fg = Flowgraph::new();
/// connect!(fg, source > sink);
/// Runtime::new().run(fg).map_err(|e| fault.explain(e))?;
/// # Ok(()) }
/// ```
#[derive(Block)]
pub struct IqSource<O = DefaultCpuWriter<Complex32>>
where
    O: CpuBufferWriter<Item = Complex32>,
{
    #[output]
    output: O,
    recording: Recording,
    stop: Arc<AtomicBool>,
    /// Says why the block failed, if it did.
    pub fault: Fault,
}

impl IqSource {
    /// Plays `recording`.
    pub fn new(recording: Recording) -> Self {
        Self::with_buffers(recording)
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> IqSource<O> {
    /// As [`new`](IqSource::new), with buffers of another kind than the default.
    pub(crate) fn with_buffers(recording: Recording) -> Self {
        let mut output = O::default();
        output.set_min_buffer_size_in_items(super::BUFFER);
        Self { output, recording, stop: Arc::default(), fault: Fault::default() }
    }

    /// Ends the stream early, but cleanly, once `stop` is true.
    pub fn stop_when(mut self, stop: Arc<AtomicBool>) -> Self {
        self.stop = stop;
        self
    }
}

impl<O: CpuBufferWriter<Item = Complex32>> Kernel for IqSource<O> {
    async fn work(&mut self, io: &mut WorkIo, _mo: &mut MessageOutputs, _meta: &mut BlockMeta) -> Result<()> {
        let (output, mut tags) = self.output.slice_with_tags();
        if output.is_empty() {
            return Ok(());
        }
        let before = self.recording.gap();
        let n = if self.stop.load(Ordering::Relaxed) { 0 } else { self.recording.read(output).map_err(|e| self.fault.raise(e))? };
        if n == 0 {
            io.finished = true;
            return Ok(());
        }
        if let Some(before) = before {
            tags.add_tag(0, gap(before.length as usize));
        }
        io.call_again = n < output.len();
        self.output.produce(n);
        Ok(())
    }
}
