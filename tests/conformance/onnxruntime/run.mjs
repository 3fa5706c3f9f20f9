// Runs every case of a folder with ONNX Runtime: reads feeds.json beside its model, writes results.json.
import { createRequire } from "node:module";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, uint8: Uint8Array, int8: Int8Array, uint16: Uint16Array,
  int16: Int16Array, int32: Int32Array, int64: BigInt64Array, bool: Uint8Array,
};

const [runtime, root] = process.argv.slice(2);
const ort = createRequire(join(resolve(runtime), "package.json"))("onnxruntime-node");
for (const name of readdirSync(join(root, "node")).sort()) {
  const folder = join(root, "node", name);
  try {
    // Without its own rewriting of graphs, so that the operators in the file are those that run.
    const session = await ort.InferenceSession.create(join(folder, "model.onnx"),
      { graphOptimizationLevel: "disabled", logSeverityLevel: 4 });
    const { inputs, outputs } = JSON.parse(readFileSync(join(folder, "feeds.json")));
    const feeds = {};
    for (const [key, { type, dims, data }] of Object.entries(inputs)) {
      const bytes = new Uint8Array(Buffer.from(data, "base64"));
      feeds[key] = new ort.Tensor(type, new ARRAYS[type](bytes.buffer), dims);
    }
    const results = await session.run(feeds);
    writeFileSync(join(folder, "results.json"), JSON.stringify(outputs.map((key) => {
      const { type, dims, data } = results[key];
      return { name: key, type, dims, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64") };
    })));
  } catch (error) {
    console.error(`${name}: ${error}`);
    process.exitCode = 1;
  }
}
