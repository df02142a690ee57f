// Writes sources.sha256 beside the built files of the studio (dist/) and of reports (../../results/page-dist/): which
// sources they came from, so that a test can tell when they are stale.
//
// The hash is the SHA-256, as lower-case hexadecimal, over these files in ascending order of their
// paths' bytes: index.html, package-lock.json, package.json, tsconfig.json, vite.config.ts,
// vite.report.config.ts and every file below src/. Each file adds to the hash: its path relative to this folder's parent (`page/`)
// with "/" as separator, one newline (0x0A), and then its bytes as they are. Nothing separates a
// file's bytes from the next path. The written file is the hash and one newline.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const page = join(dirname(fileURLToPath(import.meta.url)), "..");
const below = (folder) =>
  readdirSync(join(page, folder), { withFileTypes: true }).flatMap((entry) =>
    entry.isDirectory() ? below(`${folder}/${entry.name}`) : [`${folder}/${entry.name}`]);
const files = ["index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts", "vite.report.config.ts", ...below("src")];
files.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
const hash = createHash("sha256");
for (const file of files) hash.update(`${file}\n`).update(readFileSync(join(page, file)));
const digest = hash.digest("hex");
for (const folder of ["dist", "../../results/page-dist"]) {
  writeFileSync(join(page, folder, "sources.sha256"), `${digest}\n`);
}
