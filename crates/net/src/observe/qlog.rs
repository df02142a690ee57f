//! A qlog file per connection, written by a thread of the endpoint.
//!
//! Connections put batches of records into a bounded queue and never wait for it: batches that find
//! no room, or no disk space, are dropped and counted.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use weir_qlog::{Batch, Recorder, Sink, file_name};
use weir_quic::observe::{Observer, Subject};
use weir_units::Duration;

use crate::lost_events::LostEvents;

/// Batches that may wait for the disk, each of some 16 KB.
const QUEUE: usize = 256;
/// How long closing an endpoint waits for the disk.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// Writes the files of one endpoint.
pub(super) struct QlogWriter {
    directory: PathBuf,
    epoch: Duration,
    queue: Option<SyncSender<Message>>,
    lost: Arc<LostEvents>,
    /// Disconnected when the thread has ended.
    ended: Mutex<Receiver<()>>,
}

struct Message {
    file: Arc<LogFile>,
    batch: Batch,
}

/// A file, created with the first records.
struct LogFile {
    path: PathBuf,
    opened: Mutex<Option<File>>,
}

impl QlogWriter {
    /// Starts the writer for a directory, which is created where there is none.
    ///
    /// # Errors
    /// Where no file can be created there, or no thread.
    pub(super) fn open(directory: &Path, epoch: Duration) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let probe = directory.join(format!(".weir-{}-{epoch}", std::process::id()));
        File::create(&probe)?;
        fs::remove_file(&probe)?;
        let (queue, messages) = sync_channel(QUEUE);
        let (ending, ended) = channel();
        let lost = Arc::new(LostEvents::default());
        let counter = lost.clone();
        thread::Builder::new()
            .name("weir-qlog".to_owned())
            .spawn(move || {
                write_all(&messages, &counter);
                drop::<std::sync::mpsc::Sender<()>>(ending);
            })?;
        Ok(Self {
            directory: directory.to_owned(),
            epoch,
            queue: Some(queue),
            lost,
            ended: Mutex::new(ended),
        })
    }

    pub(super) fn lost_events(&self) -> Arc<LostEvents> {
        self.lost.clone()
    }

    pub(super) fn observer(&self, subject: &Subject) -> Box<dyn Observer> {
        let sink = QlogObserver {
            file: Arc::new(LogFile {
                path: self.directory.join(file_name(subject)),
                opened: Mutex::default(),
            }),
            queue: self.queue.clone(),
            lost: self.lost.clone(),
        };
        Box::new(Recorder::new(subject, self.epoch, sink))
    }
}

impl Drop for QlogWriter {
    /// Waits until the files are complete. No connection is left then.
    fn drop(&mut self) {
        self.queue = None;
        // The thread's end disconnects the channel.
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(PATIENCE);
    }
}

/// Passes a connection's records to its file.
struct QlogObserver {
    file: Arc<LogFile>,
    queue: Option<SyncSender<Message>>,
    lost: Arc<LostEvents>,
}

impl Sink for QlogObserver {
    fn write(&mut self, batch: Batch) {
        let Some(queue) = &self.queue else { return };
        let events = batch.events;
        let file = self.file.clone();
        if queue.try_send(Message { file, batch }).is_err() {
            self.lost.add(events, "the disk is too slow");
        }
    }
}

/// Writes batches until all senders are gone.
fn write_all(messages: &Receiver<Message>, lost: &LostEvents) {
    for Message { file, batch } in messages {
        if let Err(error) = file.write(&batch.records) {
            lost.add(batch.events, &format!("{}: {error}", file.path.display()));
        }
    }
}

impl LogFile {
    /// Writes records. A record that is cut off does not hide the next (RFC 7464, section 2.3).
    fn write(&self, records: &[u8]) -> io::Result<()> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *opened {
            Some(file) => file,
            none => none.insert(
                OpenOptions::new()
                    .create(true)
                    .append(true)
                    .open(&self.path)?,
            ),
        };
        file.write_all(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str) -> Arc<LogFile> {
        Arc::new(LogFile {
            path: path.into(),
            opened: Mutex::default(),
        })
    }

    fn batch(events: u64) -> Batch {
        Batch {
            records: b"\x1e{}\n".to_vec(),
            events,
        }
    }

    #[test]
    fn a_full_queue_drops_events_without_blocking() {
        let (queue, messages) = sync_channel(2);
        let lost = Arc::new(LostEvents::default());
        let mut sink = QlogObserver {
            file: file("/dev/null"),
            queue: Some(queue),
            lost: lost.clone(),
        };
        (1..=5).for_each(|events| sink.write(batch(events)));
        assert_eq!(lost.count(), 3 + 4 + 5);
        assert_eq!(messages.try_iter().count(), 2);
        sink.write(batch(6));
        assert_eq!(lost.count(), 12, "there is room again");
    }

    #[test]
    fn a_full_disk_loses_events() {
        let (queue, messages) = sync_channel(4);
        let lost = LostEvents::default();
        for file in [file("/dev/full"), file("/no/such/directory/x.sqlog")] {
            let batch = batch(7);
            queue.send(Message { file, batch }).unwrap();
        }
        drop(queue);
        write_all(&messages, &lost);
        assert_eq!(lost.count(), 14);
    }
}
