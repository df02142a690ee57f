//! The client.

use clap::Args;
use http::header::RANGE;
use http::{Method, Request};
use http_body_util::{BodyExt, Empty};
use tokio::io::AsyncWriteExt;
use weir_h3::Client;
use weir_net::Duration;

use super::Failure;
use super::certificate::{SERVER_NAME, Server};

#[derive(Args)]
pub(crate) struct Options {
    /// The file's path below the served directory
    name: String,
    /// Gets only these bytes, as in 0-99 (RFC 9110, section 14.1.2)
    #[arg(long)]
    range: Option<String>,
    /// Gets the header only
    #[arg(long)]
    head: bool,
    #[command(flatten)]
    server: Server,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let (endpoint, connection) = options.server.connect().await?;
    let client = Client::new(connection).await?;
    let got = get(&client, &options).await;
    drop(client);
    // Tells the server, which would otherwise wait for an acknowledgment of its last answer.
    endpoint.shutdown(Duration::from_secs(1)).await?;
    got
}

async fn get(client: &Client, options: &Options) -> Result<(), Failure> {
    let path = options.name.trim_start_matches('/');
    let mut request = Request::builder().uri(format!("https://{SERVER_NAME}/{path}"));
    if options.head {
        request = request.method(Method::HEAD);
    }
    if let Some(range) = &options.range {
        request = request.header(RANGE, format!("bytes={range}"));
    }
    let request = request.body(Empty::<bytes::Bytes>::new())?;
    let response = client.send(request).await?;
    let status = response.status();
    eprintln!("{status}");
    for (name, value) in response.headers() {
        eprintln!("{name}: {}", String::from_utf8_lossy(value.as_bytes()));
    }
    let mut body = response.into_body();
    let mut output = tokio::io::stdout();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            output.write_all(&data).await?;
        }
    }
    output.flush().await?;
    status
        .is_success()
        .then_some(())
        .ok_or_else(|| format!("the server has answered {status}").into())
}
