// What the build leaves to do: the licences of what the page contains, and files that are
// compressed once instead of at every request.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, URL } from "node:url";
import { gzipSync } from "node:zlib";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
const json = (path) => JSON.parse(readFileSync(path, "utf8"));

// The packages that are part of the page: those that it needs to run, and what they need.
function packages() {
  const found = new Set();
  const visit = (name) => {
    const manifest = join(root, "node_modules", name, "package.json");
    if (found.has(name) || !existsSync(manifest)) return;
    found.add(name);
    Object.keys(json(manifest).dependencies ?? {}).forEach(visit);
  };
  Object.keys(json(join(root, "package.json")).dependencies).forEach(visit);
  return [...found].sort();
}

function licence(name) {
  const home = join(root, "node_modules", name);
  const { version, license } = json(join(home, "package.json"));
  const file = readdirSync(home).find((one) => /^licen[cs]e/i.test(one));
  const head = `${name} ${version} (${license})\n`;
  // Some name their licence in the manifest only.
  if (file === undefined) return head;
  return `${head}\n${readFileSync(join(home, file), "utf8").trim()}\n`;
}

const rule = `\n${"-".repeat(80)}\n\n`;
writeFileSync(join(dist, "licenses.txt"), packages().map(licence).join(rule));

for (const entry of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  const path = join(entry.parentPath, entry.name);
  if (!entry.isFile() || !/\.(css|html|js|svg|txt)$/.test(entry.name)) continue;
  const plain = readFileSync(path);
  const packed = gzipSync(plain, { level: 9 });
  if (packed.length < plain.length) writeFileSync(`${path}.gz`, packed);
}
