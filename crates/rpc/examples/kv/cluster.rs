//! Several servers, as processes, that are restarted one after the other. The example `grpc-kv` has it too.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::{Failure, Place, files};

#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    place: Place,
    /// The time between two restarts
    #[arg(long, default_value = "2s")]
    pause: weir_net::Duration,
    /// Stops restarting after so many rounds; 0 for never
    #[arg(long, default_value_t = 0)]
    rounds: u32,
}

pub(crate) async fn run(options: Options) -> Result<(), Failure> {
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    files::prepare(&options.place.directory)?;
    let mut servers = Vec::new();
    for address in &options.place.addresses {
        servers.push(start(&options.place, *address).await?);
    }
    println!("all run: restarting one every {}", options.pause);
    tokio::select! {
        result = restart(&options, &mut servers) => result?,
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    for mut server in servers {
        stop(&mut server).await?;
    }
    Ok(())
}

/// Restarts one server after the other, in rounds.
async fn restart(options: &Options, servers: &mut [Child]) -> Result<(), Failure> {
    let mut rounds = 0;
    loop {
        for (server, address) in servers.iter_mut().zip(&options.place.addresses) {
            sleep(options.pause.into()).await;
            stop(server).await?;
            *server = start(&options.place, *address).await?;
            println!("{address} was restarted");
        }
        rounds += 1;
        if rounds == options.rounds {
            println!("{rounds} rounds are done");
            std::future::pending::<()>().await;
        }
    }
}

/// Starts a server and waits until it listens.
async fn start(place: &Place, address: SocketAddr) -> Result<Child, Failure> {
    let own = std::env::args_os().skip(1);
    let mut child = Command::new(std::env::current_exe()?)
        .args(own.take_while(|argument| argument != "cluster"))
        .arg("serve")
        .arg("--directory")
        .arg(&place.directory)
        .arg("--at")
        .arg(address.to_string())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let output = child.stdout.take().ok_or("no output")?;
    let mut lines = BufReader::new(output).lines();
    let line = lines.next_line().await?.unwrap_or_default();
    if !line.ends_with("listens") {
        return Err(format!("{address} does not start: {line}").into());
    }
    println!("{address} is process {}", child.id().unwrap_or_default());
    // Whatever it says from now on.
    tokio::spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            println!("{address}: {line}");
        }
    });
    Ok(child)
}

/// Drains a server and waits until it is gone.
async fn stop(server: &mut Child) -> Result<(), Failure> {
    let id = server.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    if let Some(id) = id {
        kill_process(id, Signal::TERM)?;
    }
    let limit = Duration::from_secs(20);
    let status = tokio::time::timeout(limit, server.wait()).await??;
    status
        .success()
        .then_some(())
        .ok_or_else(|| "a server did not drain".into())
}
