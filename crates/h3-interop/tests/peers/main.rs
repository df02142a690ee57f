//! Runs every case of the programs in `peers/`, in both directions, and all hostile ones.
//! `cargo test -p weir-h3-interop go::` runs those with quic-go.

mod hostile;

use std::time::Duration;

use libtest_mimic::{Arguments, Completion, Trial};
use weir_h3_interop::{
    CertificateFiles, Failed, ForeignServer, Program, Requester, RequesterKind, WeirServer,
    client_cases, client_endpoint, run_case, run_client,
};

/// Timeout of a case in which our client is tested; only a hanging one reaches it.
const PATIENCE: Duration = Duration::from_secs(60);

/// How many tests run at once, where the command line does not say so: most of them wait.
const THREADS: usize = 8;

fn main() -> std::process::ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(THREADS);
    let mut trials = Vec::new();
    for program in Program::ALL {
        match program.missing() {
            Some(reason) => trials.push(skipped(program, reason)),
            None => match cases(program, &arguments) {
                Ok(cases) => trials.extend(cases),
                Err(failed) => trials.push(Trial::test(program.to_string(), move || {
                    Err(failed.to_string().into())
                })),
            },
        }
    }
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn skipped(program: Program, reason: &'static str) -> Trial {
    eprintln!("SKIPPED: HTTP/3 with {program}: {reason}");
    Trial::ignorable_test(program.to_string(), move || {
        Ok(Completion::ignored_with(reason))
    })
}

fn cases(program: Program, arguments: &Arguments) -> Result<Vec<Trial>, Failed> {
    let mut trials = Vec::new();
    for case in client_cases(program)? {
        trials.push(trial(format!("{program}::server::{case}"), {
            let case = case.clone();
            move || our_server(program, &case)
        }));
        for kind in RequesterKind::ALL {
            let case = case.clone();
            trials.push(trial(format!("{program}::{kind}::{case}"), move || {
                our_client(program, kind, &case)
            }));
        }
    }
    if program == Program::Aioquic {
        trials.extend(hostile::trials(arguments)?);
    }
    Ok(trials)
}

fn trial(name: String, test: impl FnOnce() -> Result<(), Failed> + Send + 'static) -> Trial {
    Trial::test(name, move || {
        test().map_err(|failed| failed.to_string().into())
    })
}

fn runtime() -> Result<tokio::runtime::Runtime, Failed> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    runtime.map_err(|error| Failed(error.to_string()))
}

/// Their client asks our server.
fn our_server(program: Program, case: &str) -> Result<(), Failed> {
    let files = CertificateFiles::new()?;
    let runtime = runtime()?;
    let server = {
        let _entered = runtime.enter();
        WeirServer::start(&files)?
    };
    run_client(program, server.address(), &files, case)
}

/// Our client asks their server.
fn our_client(program: Program, kind: RequesterKind, case: &str) -> Result<(), Failed> {
    let files = CertificateFiles::new()?;
    let server = ForeignServer::start(program, &files)?;
    runtime()?.block_on(async {
        let endpoint = client_endpoint(&files)?;
        let asking = async {
            let requester = Requester::connect(kind, &endpoint, server.address()).await?;
            run_case(&requester, case).await
        };
        let asked = tokio::time::timeout(PATIENCE, asking).await;
        asked.unwrap_or_else(|_| Err(Failed("it hangs".to_owned())))
    })
}
