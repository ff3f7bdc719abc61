//! Connections of a driver that does not notice that they have ended.
//!
//! SoapyRemote, whose server has died, reads the end of its TCP stream for ever inside one call. A thread that never comes back never lets go of its device, and then the device cannot be opened again.
//! So its ended connections are taken from it, and its calls run into a timeout or fail, as those of other drivers do.

#![cfg_attr(target_os = "linux", allow(unsafe_code))]

use std::collections::BTreeSet;
#[cfg(target_os = "linux")]
use std::{
    os::{fd::AsRawFd, unix::net::UnixStream},
    time::Duration,
};

/// How long a call with what is there instead may take.
#[cfg(target_os = "linux")]
const PATIENCE: Duration = Duration::from_millis(10);

/// Sockets of this process: descriptor, and what the system calls it. None where the system does not list them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sockets(BTreeSet<(i32, String)>);

#[cfg(not(target_os = "linux"))]
impl Sockets {
    pub(crate) fn now() -> Self {
        Self::default()
    }

    pub(crate) fn since(&self) -> Self {
        Self::default()
    }

    pub(crate) fn unplug(&self) -> usize {
        0
    }
}

#[cfg(target_os = "linux")]
impl Sockets {
    /// All that there are.
    pub(crate) fn now() -> Self {
        let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
        let socket = |entry: std::fs::DirEntry| {
            let name = std::fs::read_link(entry.path()).ok()?.into_os_string().into_string().ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, name)).filter(|(_, name)| name.starts_with("socket:["))
        };
        Self(entries.filter_map(socket).collect())
    }

    /// Those that have come since these, and are TCP connections.
    pub(crate) fn since(&self) -> Self {
        let connected = connected();
        Self(Self::now().0.difference(&self.0).filter(|(_, name)| connected.contains(name)).cloned().collect())
    }

    /// Takes those away that are not connected any more, and gives how many. In their place there is one whose peer says nothing: nobody is told that there is something to read, and whoever
    /// reads all the same fails.
    pub(crate) fn unplug(&self) -> usize {
        let connected = connected();
        let all = Self::now().0;
        let ended: Vec<i32> = all.intersection(&self.0).filter(|(_, name)| !connected.contains(name)).map(|socket| socket.0).collect();
        let pair = || {
            let (silent, peer) = UnixStream::pair()?;
            silent.set_read_timeout(Some(PATIENCE))?;
            silent.set_write_timeout(Some(PATIENCE))?;
            std::io::Result::Ok((silent, peer))
        };
        let Some((silent, peer)) = (!ended.is_empty()).then(|| pair().ok()).flatten() else { return 0 };
        // Without it this connection would have ended too.
        std::mem::forget(peer);
        // SAFETY: both descriptors are open. The number stays taken, so that whoever closes it later closes this and nothing else; the socket was the driver's, opened by it and ended by its
        // peer, so that nobody can want anything of it.
        let replace = |fd: &&i32| unsafe { libc::dup2(silent.as_raw_fd(), **fd) >= 0 };
        ended.iter().filter(replace).count()
    }
}

/// The names of all TCP sockets that are connected.
#[cfg(target_os = "linux")]
fn connected() -> BTreeSet<String> {
    const ESTABLISHED: &str = "01";
    let tables = ["/proc/self/net/tcp", "/proc/self/net/tcp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let name = |line: &str| {
        let mut fields = line.split_ascii_whitespace().skip(3);
        let state = fields.next()?;
        (state == ESTABLISHED).then_some(format!("socket:[{}]", fields.nth(5)?))
    };
    tables.iter().flat_map(|table| table.lines().skip(1).filter_map(name)).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn an_ended_connection_is_taken_away_and_one_that_holds_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let before = Sockets::now();
        let connect = || (TcpStream::connect(listener.local_addr().unwrap()).unwrap(), listener.accept().unwrap().0);
        let ((mut ended, peer), (mut held, mut other)) = (connect(), connect());
        // Other tests of this process open sockets too: only these are ours.
        let mut sockets = before.since();
        sockets.0.retain(|(fd, _)| [ended.as_raw_fd(), held.as_raw_fd()].contains(fd));
        assert_eq!((sockets.0.len(), sockets.unplug()), (2, 0));
        drop(peer);
        assert_eq!(ended.read(&mut [0]).unwrap(), 0);
        assert_eq!(sockets.unplug(), 1);
        ended.read(&mut [0]).unwrap_err();
        other.write_all(&[7]).unwrap();
        let mut byte = [0];
        held.read_exact(&mut byte).unwrap();
        assert_eq!((byte, sockets.unplug()), ([7], 0));
    }
}
