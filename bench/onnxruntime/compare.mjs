// Forward passes of ours against ONNX Runtime's: the same files and batches, one thread each, taking turns within one
// run. Ours begin with the bytes of images, ONNX Runtime's with floats that are ready.
//
// usage: node compare.mjs PROGRAM CACHE_FOLDER [MODEL BATCH]...
//
// PROGRAM is onnxruntime_passes. Without models, LeNet-5 in batches of 128 and ResNet-20 in batches of 32. The figures
// are processor time, the best pass of each, so that what else runs on the machine counts as little as possible.
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { cpus } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

const VERSION = "1.17.3";
const ROUNDS = 12;
const SECONDS = 0.4; // of each side in a round

const [program, cache, ...models] = process.argv.slice(2);
if (!cache || models.length % 2 !== 0) {
  console.error("usage: node compare.mjs PROGRAM CACHE_FOLDER [MODEL BATCH]...");
  process.exit(2);
}

// The package's install script only fetches libraries for graphics cards; the rest is in the package.
function loadOnnxRuntime() {
  const folder = resolve(cache, `onnxruntime-node-${VERSION}`);
  if (!existsSync(join(folder, "node_modules", "onnxruntime-node"))) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), '{ "private": true }\n');
    execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", `onnxruntime-node@${VERSION}`],
      { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  }
  return createRequire(join(folder, "package.json"))("onnxruntime-node");
}

async function startOurs(model, batch, how) {
  const child = spawn(program, [model, String(batch), how], { stdio: ["pipe", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => {
    const { value, done } = await lines.next();
    if (done) throw new Error(`${program} ended early`);
    return value;
  };
  const [shape, ran] = (await answer()).split(" ");
  return {
    ran,
    shape: shape.split("x").map(Number),
    best: async () => {
      child.stdin.write(`${SECONDS}\n`);
      return Number(await answer());
    },
    stop: () => child.stdin.end(),
  };
}

async function startTheirs(ort, model, batch, shape) {
  const session = await ort.InferenceSession.create(model, {
    intraOpNumThreads: 1, interOpNumThreads: 1, executionMode: "sequential", graphOptimizationLevel: "all",
  });
  const values = Float32Array.from({ length: batch * shape.reduce((a, b) => a * b) }, Math.random);
  const feed = { [session.inputNames[0]]: new ort.Tensor("float32", values, [batch, ...shape]) };
  const processorSeconds = () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  };
  await session.run(feed);
  return async () => {
    let best = Infinity;
    const start = processorSeconds();
    for (let now = start; now < start + SECONDS;) {
      await session.run(feed);
      const then = now;
      now = processorSeconds();
      best = Math.min(best, now - then);
    }
    return best;
  };
}

async function compare(ort, model, batch) {
  const fused = await startOurs(model, batch, "fused");
  const plain = await startOurs(model, batch, "plain");
  const theirs = await startTheirs(ort, model, batch, fused.shape);
  const best = { fused: Infinity, plain: Infinity, theirs: Infinity };
  const ratios = [];
  for (let round = 0; round < ROUNDS; ++round) {
    const now = { theirs: await theirs(), fused: await fused.best(), plain: await plain.best() };
    for (const who of Object.keys(best)) best[who] = Math.min(best[who], now[who]);
    ratios.push(now.theirs / now.fused);
  }
  fused.stop();
  plain.stop();
  ratios.sort((a, b) => a - b);
  const rate = (seconds) => Math.round(batch / seconds).toLocaleString("en");
  console.log(`${model}, batch ${batch}: ONNX Runtime ${rate(best.theirs)} images/s, ours ${rate(best.fused)} ` +
    `(${fused.ran}), without fused layers ${rate(best.plain)}`);
  console.log(`  ratio ${(best.theirs / best.fused).toFixed(2)} of the best passes, ` +
    `${ratios[Math.floor(ratios.length / 2)].toFixed(2)} in the median round (${ratios[0].toFixed(2)} to ` +
    `${ratios[ratios.length - 1].toFixed(2)}); without fused layers ${(best.theirs / best.plain).toFixed(2)}`);
}

const ort = loadOnnxRuntime();
if (models.length === 0) {
  const folder = resolve(cache, "bench-models");
  execFileSync(program, ["make", folder]);
  models.push(join(folder, "lenet5.onnx"), "128", join(folder, "resnet20.onnx"), "32");
}
console.log(`${cpus()[0].model}, ONNX Runtime ${VERSION}, one thread each`);
for (let i = 0; i < models.length; i += 2) await compare(ort, models[i], Number(models[i + 1]));
