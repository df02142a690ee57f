// Writes a scenario with many groups and ports.
//   node test/many.mjs GROUPS PORTS
const [groups, ports] = process.argv.slice(2).map(Number);
const lines = [
  'title = "Many groups and ports"', 'source = "a test of reports"', 'duration = "12ms"', "",
  "[star]", 'rate = "10Gbps"', 'delay = "10us"', 'queue = { kind = "step", ecn_threshold = "100KB", buffer = "1MB" }',
  "[star.hosts.source]", "count = 64", "[star.hosts.leaf]", `count = ${ports}`, "",
  "[measurements]", 'sample_interval = "1ms"', 'ports = "switch->leaf*"',
];
for (let group = 0; group < groups; group++) {
  const name = `g${String(group).padStart(4, "0")}`;
  lines.push("", `[groups.${name}]`, `from = "source${1 + (group % 64)}"`, `to = "leaf${1 + (group % ports)}"`,
    'congestion = "dctcp"', `workload = { kind = "cbr", rate = "${1 + (group % 200)}Mbps" }`);
}
console.log(lines.join("\n"));
