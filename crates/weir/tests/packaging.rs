//! What a package installs beside the command: manual pages, completions, and the files in `deploy/`.
#![allow(clippy::unwrap_used, reason = "a test that fails may panic")]
#![allow(clippy::print_stdout, reason = "it says what it skips")]
#![allow(dead_code, reason = "the support is shared with other tests")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::run;

const UNITS: [&str; 6] = [
    "weir-controller",
    "weir-enforce",
    "weir-sed-agent",
    "weir-sed-controller",
    "weir-tunnel-client",
    "weir-tunnel-server",
];

fn deploy(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(file)
}

fn read(file: &str) -> String {
    fs::read_to_string(deploy(file)).unwrap()
}

/// Returns whether a program is here; says what is skipped if it is not.
fn has(program: &str, what: &str) -> bool {
    let found = Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status()
        .unwrap()
        .success();
    if !found {
        println!("SKIPPED: {what}: no {program}");
    }
    found
}

/// Runs a program on a text; returns all that it printed.
fn fed(program: &str, arguments: &[&str], input: &str) -> (bool, String) {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    (output.status.success(), said)
}

/// Adds the name of a command's page, and those of its subcommands, as `--help` lists them.
fn add_commands(path: &[&str], names: &mut BTreeSet<String>) {
    names.insert(format!("{}.1", [&["weir"], path].concat().join("-")));
    // Its help is that of the Python package.
    if path == ["tune"] {
        return;
    }
    let help = run(&[path, &["--help"]].concat()).ok().stdout.clone();
    let Some((_, list)) = help.split_once("Commands:\n") else {
        return;
    };
    let lines = list.lines().take_while(|line| !line.is_empty());
    // A description may go on in the next line, further to the right.
    let lines = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let commands = lines.filter_map(|line| line.split_whitespace().next());
    for command in commands.filter(|command| *command != "help") {
        add_commands(&[path, &[command]].concat(), names);
    }
}

#[test]
fn every_command_has_a_manual_page() {
    let directory = tempfile::tempdir().unwrap();
    run(&["manual", directory.path().to_str().unwrap()]).ok();
    let entries = fs::read_dir(directory.path()).unwrap();
    let written: BTreeSet<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let mut expected = BTreeSet::new();
    add_commands(&[], &mut expected);
    assert!(expected.contains("weir-sed-agent.1"), "{expected:?}");
    assert_eq!(written, expected);
    let agent = fs::read_to_string(directory.path().join("weir-sed-agent.1")).unwrap();
    for part in [
        ".SH EXAMPLES\n.nf\nweir sed certificates",
        ".SH NOTES",
        ".SH \"SEE ALSO\"\nweir\\-sed(1)",
    ] {
        assert!(agent.contains(part), "{part:?} in {agent}");
    }
    if has("man", "what groff says of manual pages") {
        for name in &written {
            let page = directory.path().join(name);
            let arguments = [
                "--warnings",
                "-E",
                "UTF-8",
                "-l",
                "-Tutf8",
                "-Z",
                page.to_str().unwrap(),
            ];
            let output = Command::new("man")
                .args(arguments)
                .env("MANWIDTH", "100")
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && said.is_empty(), "{name}: {said}");
        }
    }
    run(&["manual", "/proc/nowhere"]).failed(1, &["/proc/nowhere"]);
}

#[test]
fn shells_read_the_completions() {
    for (shell, arguments) in [("bash", ["-n"]), ("zsh", ["-n"]), ("fish", ["-n"])] {
        let script = run(&["completions", shell]).ok().stdout.clone();
        if has(shell, "its completions") {
            assert_eq!(
                fed(shell, &arguments, &script),
                (true, String::new()),
                "{shell}"
            );
        }
    }
    run(&["completions", "tcsh"]).failed(2, &["tcsh", "bash, fish, zsh"]);
}

#[test]
fn bash_completes_commands_and_options() {
    if !has("bash", "completion") {
        return;
    }
    let script = run(&["completions", "bash"]).ok().stdout.clone();
    let completed = |words: &[&str]| {
        let (last, before) = (words[words.len() - 1], words[words.len() - 2]);
        let asked = format!(
            "{script}\nCOMP_WORDS=({}) COMP_CWORD={}\n_weir weir '{last}' '{before}'\necho \"${{COMPREPLY[*]}}\"",
            words.join(" "),
            words.len() - 1
        );
        let (success, said) = fed("bash", &[], &asked);
        assert!(success, "{said}");
        said.trim().to_owned()
    };
    assert_eq!(completed(&["weir", "enf"]), "enforce");
    assert_eq!(completed(&["weir", "sed", "con"]), "controller");
    assert_eq!(
        completed(&["weir", "sed", "controller", "--all"]),
        "--allocation"
    );
    assert_eq!(completed(&["weir", "enforce", "--hook", "ts"]), "");
    assert_eq!(completed(&["weir", "enforce", "--hook", "cl"]), "clsact");
    assert_eq!(completed(&["weir", "lab-h"]), "");
}

/// Returns the words of a quoted assignment in a file of defaults.
fn options(file: &str) -> Vec<String> {
    let text = read(file);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("OPTIONS=\""))
        .unwrap();
    let line = line.strip_suffix('"').unwrap();
    line.split_whitespace().map(str::to_owned).collect()
}

/// Checks that a command takes these arguments. `--help` ends it after they were read.
fn takes(arguments: &[String]) {
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    run(&[&arguments[..], &["--help"]].concat()).ok();
}

#[test]
fn units_call_the_command_with_options_that_it_has() {
    for unit in UNITS {
        let text = read(&format!("systemd/{unit}.service"));
        let start = text
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/weir "))
            .unwrap();
        let mut arguments: Vec<_> = start.split_whitespace().map(str::to_owned).collect();
        assert_eq!(arguments.pop().as_deref(), Some("$OPTIONS"));
        arguments.extend(options(&format!("config/{unit}")));
        takes(&arguments);
    }
}

#[test]
fn systemd_reads_the_units() {
    if !has("systemd-analyze", "what systemd says of the units") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for unit in UNITS {
        // It looks for what they execute.
        let text = read(&format!("systemd/{unit}.service")).replace("/usr/bin/weir", "/bin/true");
        let file = directory.path().join(format!("{unit}.service"));
        fs::write(&file, text).unwrap();
        let output = Command::new("systemd-analyze")
            .args(["verify", "--man=no"])
            .arg(&file)
            .output()
            .unwrap();
        // It also reads units of this machine that these name.
        let said = String::from_utf8_lossy(&output.stderr);
        let about = said.lines().filter(|line| line.contains(unit));
        assert_eq!(about.collect::<Vec<_>>(), [""; 0], "{unit}");
    }
}

#[test]
fn the_policies_that_are_shipped_leave_all_flows_alone() {
    let manifest = read("kubernetes/weir-enforce.yaml");
    let (_, block) = manifest.split_once("policy.toml: |\n").unwrap();
    let lines = block.lines().map_while(|line| line.strip_prefix("    "));
    let in_manifest = tempfile::NamedTempFile::new().unwrap();
    fs::write(in_manifest.path(), lines.collect::<Vec<_>>().join("\n")).unwrap();
    for file in [deploy("config/policy.toml").as_path(), in_manifest.path()] {
        let flow = ["192.0.2.1:443", "198.51.100.7:40000"];
        let arguments = [&["policy", "explain", file.to_str().unwrap()], &flow[..]].concat();
        let said = run(&arguments).ok().stdout.clone();
        assert!(said.contains("pass"), "{said}");
    }
}

#[test]
fn the_manifest_calls_the_command_with_options_that_it_has() {
    let manifest = read("kubernetes/weir-enforce.yaml");
    let (_, list) = manifest.split_once("args:\n").unwrap();
    let arguments = list
        .lines()
        .map_while(|line| line.trim().strip_prefix("- "));
    let arguments: Vec<_> = arguments
        .map(|argument| argument.replace("$(HOST_IP)", "192.0.2.1"))
        .collect();
    takes(&arguments);
}
