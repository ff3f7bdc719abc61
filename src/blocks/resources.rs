//! What the runtime takes for granted, tried before it is needed: it panics where it cannot have it.
//!
//! Each buffer between two blocks is a file in the folder for temporary files, mapped twice. Where the disk is full, the first sample that is written there kills the process.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use futuresdr::runtime::config;
use vmcircbuffer::double_mapped_buffer::DoubleMappedBuffer;

use super::BUFFER;
use crate::{Error, Result};

/// Bytes of a buffer.
const BYTES: usize = BUFFER * size_of::<num_complex::Complex32>();

/// Threads that the runtime starts beside those that are asked for, and files that it opens, rather more.
const BESIDE: usize = 6;

/// The most buffers of a run that were found to have room: many short runs of a process need not all write megabytes to find it out again.
static FOUND: AtomicUsize = AtomicUsize::new(0);

/// Whether the buffer of one more stream can be made: to be asked before two blocks are connected, where a limit of the system is to be an error and not a panic.
pub fn check_buffer() -> Result<()> {
    // The file is twice as large until it is mapped.
    let file = |folder: &Path| tempfile::tempfile_in(folder)?.set_len(2 * BYTES as u64);
    let folder = std::env::temp_dir();
    file(&folder).map_err(|e| no_buffer(&folder, &e.to_string()))?;
    DoubleMappedBuffer::<u8>::new(BYTES).map(drop).map_err(|_| no_buffer(&folder, "no memory is left for it (ulimit -v)"))
}

/// Whether the buffers of so many streams can be filled, and so many threads started: to be asked before a flowgraph is.
pub fn check_start(buffers: usize, threads: usize) -> Result<()> {
    if FOUND.load(Ordering::Relaxed) >= buffers {
        return Ok(());
    }
    let (folder, content) = (std::env::temp_dir(), vec![0; BYTES]);
    let fill = |_| tempfile::tempfile_in(&folder).and_then(|mut file| file.write_all(&content).map(|()| file));
    let filled = (0..buffers.max(BESIDE)).map(fill).collect::<std::io::Result<Vec<_>>>();
    filled.map_err(|e| no_buffer(&folder, &e.to_string()))?;

    // All of them at once: they wait until the last one is there. Each takes some memory, as the allocator reserves a lot of it for a thread that does.
    let (gate, (here, ready)) = (Arc::new(Mutex::new(())), channel());
    let closed = gate.lock();
    let stack = config::config().stack_size;
    let start = |i| {
        let (gate, here) = (gate.clone(), here.clone());
        let builder = if i < threads { Builder::new().stack_size(stack) } else { Builder::new() };
        let thread = builder.spawn(move || drop((here.send(vec![0u8; 4096]), gate.lock())));
        thread.inspect(|_| drop(ready.recv()))
    };
    let started: std::io::Result<Vec<JoinHandle<()>>> = (0..threads + BESIDE).map(start).collect();
    drop(closed);
    let failed = |e| Error::Device(format!("{} threads cannot be started: {e}; raise the limit (ulimit -u, -v)", threads + BESIDE));
    started.map_err(failed)?.into_iter().for_each(|thread| drop(thread.join()));
    FOUND.fetch_max(buffers, Ordering::Relaxed);
    Ok(())
}

fn no_buffer(folder: &Path, why: &str) -> Error {
    let (mb, folder) = ((2 * BYTES) >> 20, folder.display());
    Error::Device(format!(
        "a buffer between two blocks, a file of {mb} MB in {folder}, cannot be made: {why}; raise the limit (ulimit), or name a folder with room in TMPDIR"
    ))
}
