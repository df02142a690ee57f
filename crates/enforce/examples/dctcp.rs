//! Registers Weir's DCTCP with the kernel under a name until standard input ends: `bench/sed.py` uses it
//! for programs that cannot be changed.

use std::io::Read as _;

use weir_enforce::bpf::{Dctcp, Parameters};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args()
        .nth(1)
        .ok_or("a name of at most 15 characters is missing")?;
    let _registered = Dctcp::register(&name, &Parameters::default())?;
    eprintln!("{name}");
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
