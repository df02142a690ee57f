//! The main function of a worker process. It reads its [`Role`] and then [`Command`]s from standard
//! input, and writes one [`Answer`] to each on standard output. It ends when standard input ends,
//! and dies with its parent.

use std::io::Write;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::process::{Signal, set_parent_process_death_signal};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::pipe;
use tokio::task::LocalSet;

use crate::calls::driver::{ClientMemory, ClientOptions, Drivers, Phase, ServerOptions};
use crate::calls::error::Error;
use crate::calls::identity::identity_from_der;
use crate::calls::measure::CommandRunner;
use crate::calls::message::{Answer, Command, Role};
use crate::calls::network::enter;
use crate::calls::placement::pin;
use crate::calls::specification::TransportSpecification;
use crate::processor::processor_time;
use crate::tls::Trust;

type Orders = Lines<BufReader<pipe::Receiver>>;

/// Runs a worker to its end. The process must have been started by a
/// [`Launcher`](crate::calls::Launcher), and must have one thread: it enters its network namespace and
/// its processors before it does anything else.
///
/// # Errors
/// A message from the parent is invalid, or the parent is gone. Errors of measurements are answers.
pub fn run(drivers: &Drivers) -> Result<(), Error> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|errno| Error::io("tying the process to its parent")(errno.into()))?;
    match work(drivers) {
        Ok(()) => Ok(()),
        Err(error) => answer(&Answer::Failed(error.to_string())),
    }
}

fn work(drivers: &Drivers) -> Result<(), Error> {
    let Some(role) = role()? else { return Ok(()) };
    let place = role.place();
    if let Some(namespace) = &place.namespace {
        enter(namespace)?;
    }
    pin(&place.processors)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::io("starting the runtime"))?;
    LocalSet::new().block_on(&runtime, play(drivers, role))
}

/// Reads the role; `None` if the parent is gone. The parent sends nothing more before the answer, so
/// nothing is left in the buffer of standard input.
fn role() -> Result<Option<Role>, Error> {
    let mut line = String::new();
    let length = std::io::stdin()
        .read_line(&mut line)
        .map_err(Error::io("reading standard input"))?;
    match length {
        0 => Ok(None),
        _ => Ok(Some(serde_json::from_str(&line)?)),
    }
}

async fn play(drivers: &Drivers, role: Role) -> Result<(), Error> {
    let orders = orders()?;
    match role {
        Role::Server {
            specification,
            bind,
            certificate,
            key,
            early_data,
            ..
        } => {
            let options = ServerOptions {
                specification,
                bind,
                identity: identity_from_der(certificate, key),
                early_data,
            };
            server(drivers, &options, orders).await
        }
        Role::Client {
            specification,
            server,
            early_data_server,
            trust,
            ..
        } => {
            let meter = meter(drivers, specification, server, early_data_server, trust)?;
            client(meter, orders).await
        }
    }
}

/// Returns the commands to come.
fn orders() -> Result<Orders, Error> {
    let doing = "reading standard input";
    let stdin = std::io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(Error::io(doing))?;
    let stdin = pipe::Receiver::from_owned_fd(stdin).map_err(Error::io(doing))?;
    Ok(BufReader::new(stdin).lines())
}

async fn server(
    drivers: &Drivers,
    options: &ServerOptions,
    mut orders: Orders,
) -> Result<(), Error> {
    let listening = drivers
        .get(&options.specification.driver)?
        .listen(options)?;
    answer(&Answer::Listening {
        address: listening.address,
        fingerprint: options.identity.fingerprint().to_string(),
        notes: listening.notes,
    })?;
    let mut serve = listening.serve;
    loop {
        tokio::select! {
            ended = &mut serve => return ended,
            line = orders.next_line() => {
                let Some(line) = line.map_err(Error::io("reading standard input"))? else {
                    return Ok(());
                };
                answer(&match serde_json::from_str(&line)? {
                    Command::ProcessorTime => Answer::ProcessorTime(processor_time().as_nanos()),
                    other => Answer::Failed(format!("a server cannot {other:?}")),
                })?;
            }
        }
    }
}

fn meter(
    drivers: &Drivers,
    specification: TransportSpecification,
    server: SocketAddr,
    early_data_server: Option<SocketAddr>,
    trust: Trust,
) -> Result<CommandRunner, Error> {
    let driver = drivers.get(&specification.driver)?;
    let full_server = server;
    let mut options = ClientOptions {
        specification,
        server,
        trust,
        memory: ClientMemory::Nothing,
    };
    let full = driver.client(&options)?;
    let resuming = match early_data_server {
        Some(server) if driver.supports(Phase::Resumed) => {
            options.server = server;
            options.memory = ClientMemory::Tickets;
            Some(driver.client(&options)?)
        }
        _ => None,
    };
    let remembering = if driver.supports(Phase::Known) {
        options.server = full_server;
        options.memory = ClientMemory::Secrets;
        Some(driver.client(&options)?)
    } else {
        None
    };
    Ok(CommandRunner::new(full, resuming, remembering))
}

async fn client(mut meter: CommandRunner, mut orders: Orders) -> Result<(), Error> {
    answer(&Answer::Done)?;
    while let Some(line) = orders
        .next_line()
        .await
        .map_err(Error::io("reading standard input"))?
    {
        let done = meter.execute(serde_json::from_str(&line)?).await;
        answer(&done.unwrap_or_else(|error| Answer::Failed(error.to_string())))?;
    }
    Ok(())
}

/// Writes one line. Standard output is a pipe that the parent always reads.
fn answer(answer: &Answer) -> Result<(), Error> {
    let mut line = serde_json::to_string(answer)?;
    line.push('\n');
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(line.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(Error::io("writing to standard output"))
}
