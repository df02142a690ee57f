use std::time::Instant;
use weir_scenario::Scenario;
use weir_sim::Simulation;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let settings: Vec<_> = args[2..].iter().map(|s| s.parse().unwrap()).collect();
    let loaded = Scenario::load(args[1].as_ref(), &settings).unwrap_or_else(|e| panic!("{e}"));
    let mut sim = Simulation::new(loaded.scenario).unwrap();
    let start = Instant::now();
    let end = sim.end();
    sim.advance(end, &mut ()).unwrap();
    let cpu = start.elapsed();
    let run = sim.finish(&mut ()).unwrap();
    println!("{}", weir_results::Summary::new("", "", run.clone()).to_json().unwrap());
    let packets: u64 = run.ports.values().map(|p| p.packets).sum();
    eprintln!("{:.2} s, {:.2} M packets/s", cpu.as_secs_f64(), packets as f64 / cpu.as_secs_f64() / 1e6);
}
