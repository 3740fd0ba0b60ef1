/** Child agents. Ordinary control flow fans out, gates and collects. */
interface AgentOptions {
  /** What people see of the child. */
  label?: string;
  /** provider/model, instead of the agent's own. */
  model?: string;
  thinking?: "off" | "minimal" | "low" | "medium" | "high";
  /** The agent the child runs as. */
  agentId?: string;
  /** JSON Schema of the value to get back; without it you get the child's text. */
  schema?: object;
  /** The part of the work it belongs to; otherwise that of the last phase(). */
  phase?: string;
}
/** What agents.run rejects with; runId is null when no child was started. */
interface SwarmAgentError extends Error {
  name: "SwarmAgentError";
  runId: string | null;
  status: "failed" | "cancelled" | "forbidden";
}
declare const agents: {
  run(prompt: string, options?: AgentOptions): Promise<any>;
};
/** Tell people which part of the work begins. */
declare function phase(title: string): void;
/** Tell people how the work goes. */
declare function log(message: unknown): void;
