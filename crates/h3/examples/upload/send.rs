//! The client.

use std::path::PathBuf;

use clap::Args;
use http::Request;
use http::header::CONTENT_LENGTH;
use http_body_util::BodyExt;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::fs::File;
use tokio::io::AsyncRead;
use tokio::signal::unix::{SignalKind, signal};
use weir_h3::Client;
use weir_net::Duration;

use super::Failure;
use super::certificate::{SERVER_NAME, Server};
use super::outgoing::Outgoing;

#[derive(Args)]
pub(crate) struct Options {
    /// The file; `-` for the standard input
    file: PathBuf,
    /// The name that the server keeps it under, instead of its own
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    server: Server,
}

/// What is sent.
struct Source {
    name: String,
    reader: Box<dyn AsyncRead + Send + Unpin>,
    size: Option<u64>,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let source = open(&options).await?;
    let (endpoint, connection) = options.server.connect().await?;
    let client = Client::new(connection).await?;
    let sent = tokio::select! {
        sent = send(&client, source) => sent,
        _ = terminated.recv() => Err("given up".into()),
        _ = interrupted.recv() => Err("given up".into()),
    };
    drop(client);
    // Tells the server, which removes what it has of an upload that was given up.
    let _ = endpoint.shutdown(Duration::from_secs(1)).await;
    println!("{}", sent?);
    Ok(())
}

async fn open(options: &Options) -> Result<Source, Failure> {
    let name = options.name.clone();
    if options.file.as_os_str() == "-" {
        return Ok(Source {
            name: name.unwrap_or_else(|| "stdin".to_owned()),
            reader: Box::new(tokio::io::stdin()),
            size: None,
        });
    }
    let own = options.file.file_name().and_then(|name| name.to_str());
    let file = File::open(&options.file).await;
    let file = file.map_err(|error| format!("{}: {error}", options.file.display()))?;
    let metadata = file.metadata().await?;
    Ok(Source {
        name: name.or(own.map(str::to_owned)).ok_or("give it a --name")?,
        reader: Box::new(file),
        size: metadata.is_file().then_some(metadata.len()),
    })
}

/// Sends all of a source; returns what the server says.
async fn send(client: &Client, source: Source) -> Result<String, Failure> {
    let progress = progress(source.size)?;
    let mut request = Request::put(format!("https://{SERVER_NAME}/{}", escape(&source.name)));
    if let Some(size) = source.size {
        request = request.header(CONTENT_LENGTH, size);
    }
    let body = Outgoing::new(source.reader, progress.clone());
    let response = client.send(request.body(body)?).await?;
    let (status, body) = (response.status(), response.into_body());
    let text = body.collect().await?.to_bytes();
    progress.finish_and_clear();
    let text = String::from_utf8_lossy(&text).trim().to_owned();
    if status.is_success() {
        Ok(text)
    } else {
        Err(format!("{status}: {text}").into())
    }
}

/// A line at the terminal, if there is one.
fn progress(size: Option<u64>) -> Result<ProgressBar, Failure> {
    let (progress, template) = match size {
        Some(size) => (
            ProgressBar::new(size),
            "{bytes} of {total_bytes} {wide_bar} {bytes_per_sec}, {eta}",
        ),
        None => (
            ProgressBar::no_length(),
            "{bytes}, {bytes_per_sec}, {elapsed}",
        ),
    };
    Ok(progress.with_style(ProgressStyle::with_template(template)?))
}

/// A name as a part of a URI (RFC 3986, section 2.1).
fn escape(name: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    name.bytes().map(escape).collect()
}
