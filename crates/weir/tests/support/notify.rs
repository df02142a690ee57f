//! A service manager's end of sd_notify(3).

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;

/// A socket for `$NOTIFY_SOCKET`.
pub(crate) struct NotifySocket {
    socket: UnixDatagram,
    path: PathBuf,
    _folder: TempDir,
}

impl NotifySocket {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        Self {
            socket,
            path,
            _folder: folder,
        }
    }

    /// Returns the variable for the environment of the service.
    pub(crate) fn variable(&self) -> (&'static str, &str) {
        ("NOTIFY_SOCKET", self.path.to_str().unwrap())
    }

    /// Returns the next message: its lines.
    pub(crate) fn next(&self) -> Vec<String> {
        let mut buffer = [0; 4096];
        let length = self.socket.recv(&mut buffer).unwrap();
        let text = std::str::from_utf8(&buffer[..length]).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// Expects a reload and its end; returns the status after it.
    #[track_caller]
    pub(crate) fn expect_reload(&self) -> String {
        let [reloading, time] = self.next().try_into().unwrap();
        assert_eq!(reloading, "RELOADING=1");
        let time = time.strip_prefix("MONOTONIC_USEC=").unwrap();
        assert!(time.parse::<u64>().unwrap() > 0);
        self.expect("READY=1")
    }

    /// Expects this state; returns the status that comes with it.
    #[track_caller]
    pub(crate) fn expect(&self, state: &str) -> String {
        let [found, status] = self.next().try_into().unwrap();
        assert_eq!(found, state);
        status.strip_prefix("STATUS=").unwrap().to_owned()
    }
}
