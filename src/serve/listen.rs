//! Connections: as many as are bearable, and none that only waits.

use std::{net::TcpListener, sync::Arc, time::Duration};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use tokio::{io::AsyncWriteExt, sync::Semaphore, sync::oneshot};

/// Connections at a time: ten viewers with a few each.
pub(super) const CONNECTIONS: usize = 64;
/// A head that takes longer, or does not come, ends the connection.
pub(super) const HEAD: Duration = Duration::from_secs(5);

const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// Answers until `stopped` is ready or its other end is gone.
pub(super) async fn serve(listener: TcpListener, router: Router, stopped: oneshot::Receiver<()>) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    tokio::pin!(stopped);
    loop {
        let accepted = tokio::select! {
            _ = &mut stopped => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((mut stream, _)) = accepted else {
            // No file descriptors left, for one: the run needs the processor more than this loop.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(place) = room.clone().try_acquire_owned() else {
            // Said at once or not at all: this must not become a place to wait in.
            tokio::spawn(async move { tokio::time::timeout(Duration::from_secs(1), stream.write_all(BUSY)).await });
            continue;
        };
        let service = TowerToHyperService::new(router.clone());
        tokio::spawn(async move {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .max_buf_size(16 * 1024)
                .serve_connection(TokioIo::new(stream), service);
            // A viewer that goes away in the middle is none of our business.
            let _ = connection.await;
            drop(place);
        });
    }
}
