//! Compiles the kernel programs in `/bpf`, if the feature `bpf` is set and clang is installed, and then
//! sets the cfg `bpf_programs`.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

const SOURCES: &str = "../../bpf";
/// The programs; each becomes an object file of its name.
const PROGRAMS: [&str; 6] = [
    "bypass",
    "cgroup",
    "congestion",
    "enforce",
    "pacing",
    "redirect",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rustc-check-cfg=cfg(bpf_programs)");
    println!("cargo::rerun-if-changed={SOURCES}");
    println!("cargo::rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return Ok(());
    }
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    if Command::new(&clang).arg("--version").output().is_err() {
        println!("cargo::warning=no {clang} here: built without the kernel's programs");
        // This file never exists, so the next build looks for clang again.
        println!("cargo::rerun-if-changed=no-clang");
        return Ok(());
    }
    for program in PROGRAMS {
        compile(&clang, program)?;
    }
    println!("cargo::rustc-cfg=bpf_programs");
    println!("cargo::rustc-env=WEIR_CLANG={clang}");
    Ok(())
}

fn compile(clang: &str, program: &str) -> Result<(), Box<dyn Error>> {
    let headers = env::var("DEP_BPF_INCLUDE")?;
    let target = match env::var("CARGO_CFG_TARGET_ENDIAN")?.as_str() {
        "big" => "bpfeb",
        _ => "bpfel",
    };
    let object = PathBuf::from(env::var("OUT_DIR")?).join(format!("{program}.o"));
    let output = Command::new(clang)
        .args(["-target", target, "-mcpu=v3", "-O2", "-g", "-std=gnu11"])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .args(["-I", &headers, "-c", &format!("{program}.bpf.c"), "-o"])
        .arg(object)
        .current_dir(SOURCES)
        .output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{clang} does not compile bpf/{program}.bpf.c:\n{said}").into());
    }
    println!("cargo::rustc-env=WEIR_BPF_HEADERS={headers}");
    Ok(())
}
