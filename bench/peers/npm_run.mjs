// npm `run`: QuickJS in a worker, 100 host functions.
import { createRunner } from 'run';

const tools = {};
for (let n = 0; n < 100; n += 1) tools[`tool_${n}`] = async () => ({ ok: true });
const runner = createRunner({ limits: { maxBridgeRequests: 1000 } });
const cell = async (source) => {
  const result = await runner.run({ source, hostFunctions: { tools } });
  if (result.status !== 'completed') throw new Error(JSON.stringify(result));
  return result.value;
};
const timed = async (source, runs) => {
  for (let i = 0; i < 3; i += 1) await cell(source);
  const took = [];
  for (let i = 0; i < runs; i += 1) {
    const start = performance.now();
    await cell(source);
    took.push(performance.now() - start);
  }
  took.sort((a, b) => a - b);
  return Number(took[Math.floor(runs / 2)].toFixed(2));
};
const SEQUENTIAL = 'for (let i = 0; i < 100; i++) await tools.tool_0({i}); return 100';
const PARALLEL =
  'return (await Promise.all(Array.from({length: 100}, (_, i) => tools.tool_0({i})))).length';
console.log(
  JSON.stringify({
    peer: 'npm run',
    cell_ms: await timed('return 1 + 2', 40),
    sequential_100_ms: await timed(SEQUENTIAL, 8),
    parallel_100_ms: await timed(PARALLEL, 8),
  }),
);
process.exit(0);
