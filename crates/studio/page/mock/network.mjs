// The scenarios of the stand-in server.

function linksBetween(pairs, rate) {
  const links = [];
  const ports = [];
  for (const [from, to, measured] of pairs) {
    for (const [x, y, counts] of [[from, to, measured], [to, from, measured === "both"]]) {
      const port = `${x}->${y}`;
      links.push({ port, from: x, to: y, rate, delay: 1e-5, measured: counts ? ports.length : null });
      if (counts) ports.push({ name: port, rate });
    }
  }
  return { links, ports };
}

function nodesAndLinks(topology) {
  const names = (stem, count) => Array.from({ length: count }, (_, index) => `${stem}${index}`);
  if (topology === "leaf-spine") {
    const leaves = names("leaf", 6);
    const spines = names("spine", 4);
    const hosts = leaves.flatMap((leaf, index) => names("", 16).map((n) => [`host${index * 16 + Number(n)}`, leaf]));
    const pairs = [...hosts.map(([host, leaf]) => [leaf, host, host.endsWith("0")]), ...leaves.flatMap((leaf) => spines.map((spine) => [leaf, spine, "both"]))];
    return { switches: [...leaves, ...spines], hosts: hosts.map(([host]) => host), ...linksBetween(pairs, 1e10) };
  }
  const senders = [...names("dctcp-", 10), ...names("cubic-", 10)];
  if (topology === "star") {
    return { switches: ["switch"], hosts: [...senders, "receiver"],
      ...linksBetween([...senders.map((sender) => [sender, "switch", false]), ["switch", "receiver", true]], 1e9) };
  }
  const receivers = names("receiver-", 2);
  return { switches: ["left", "right"], hosts: [...senders, ...receivers],
    ...linksBetween([...senders.map((sender) => [sender, "left", false]), ["left", "right", true], ...receivers.map((receiver) => ["right", receiver, false])], 1e9) };
}

export function network(topology, groupCount) {
  const { switches, hosts, links, ports } = nodesAndLinks(topology);
  const groups = Array.from({ length: groupCount }, (_, index) => ({
    name: ["dctcp", "cubic"][index] ?? `group-${index}`, algorithm: index % 2 === 0 ? "dctcp" : "cubic", flows: 20,
  }));
  const knobs = ports.slice(0, 24).flatMap(({ name }) => [
    { id: `queue:${name}:marking.threshold`, section: `Queue ${name}`, label: "marking.threshold", unit: "bytes", value: 30000, minimum: 1500, maximum: 1.8e6, logarithmic: true },
    { id: `queue:${name}:drop_probability`, section: `Queue ${name}`, label: "drop_probability", unit: "ratio", value: 0.05, minimum: 0, maximum: 1, logarithmic: false },
  ]);
  knobs.push(
    ...groups.slice(0, 2).map(({ name, algorithm }) => ({ id: `group:${name}:rate`, section: `Group ${name}`, label: algorithm === "dctcp" ? "dctcp.g" : "cubic.beta", unit: "ratio", value: algorithm === "dctcp" ? 0.0625 : 0.7, minimum: 0.001, maximum: 1, logarithmic: algorithm === "dctcp" })),
    { id: "load", section: "Group dctcp", label: "pacing.rate", unit: "bits/s", value: 5e8, minimum: 1e6, maximum: 1e9, logarithmic: true },
    { id: "delay", section: "Links", label: "delay", unit: "seconds", value: 1e-5, minimum: 1e-6, maximum: 1e-2, logarithmic: true },
    ...ports.slice(0, 6).map(({ name }) => ({ id: `fail:${name}`, section: "Links", label: name, action: "fail", undo: "restore" })));
  return {
    name: "buffer-sharing", title: "DCTCP and CUBIC share a switch buffer (invented numbers)",
    source: "Vargas et al., sections 4-6", duration: 3, seed: 1,
    nodes: [...switches.map((name) => ({ name, kind: "switch" })), ...hosts.map((name) => ({ name, kind: "host" }))],
    links, ports, groups, knobs,
  };
}
