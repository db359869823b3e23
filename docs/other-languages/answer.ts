// Starts a session of the janitor and answers its question: TypeScript and @temporalio/client.
//
//     npm install && npx tsx answer.ts FOLDER SESSION_ID

import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { ApplicationFailure, Client, Connection, WorkflowUpdateFailedError } from "@temporalio/client";

type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
type Call = { index: number; tool: string; input: { [key: string]: Json } };
type Question = { id: string; name: string; reason: Json; calls: Call[]; digest: string; deadline: string };
type Answer = {
  interruptResponse: { interruptId: string; response: Json };
  digest?: string;
  responder?: { id: string };
  comment?: string;
};
type Accepted = { accepted: { id: string; name: string; status: string }[]; open: string[] };
type Result = { stop_reason: string; cycles: number };

const [folder, sessionId] = process.argv.slice(2);
const connection = await Connection.connect({ address: process.env.TEMPORAL_ADDRESS ?? "localhost:7233" });
const client = new Client({ connection, namespace: process.env.TEMPORAL_NAMESPACE ?? "default" });

const session = await client.workflow.start("AgentSession", {
  workflowId: sessionId,
  taskQueue: process.env.COUNTERSIGN_TASK_QUEUE ?? "countersign",
  workflowIdReusePolicy: "REJECT_DUPLICATE",
  args: [{ protocol: 1, agent: "janitor", prompt: `Delete files older than 5 days in ${folder}` }],
});
console.log(`started ${sessionId}`);

let questions: Question[] = [];
while (questions.length === 0) {
  await setTimeout(200);
  questions = await session.query<Question[]>("interrupts");
}
const [question] = questions;
console.log(`asked: ${question.name}`, JSON.stringify(question.calls.map(({ tool, input }) => ({ tool, input }))));

// What waits, over all sessions: needs no worker.
const query = 'WorkflowType = "AgentSession" AND ExecutionStatus = "Running" AND CountersignPending > 0';
for (let listed = false; !listed; await setTimeout(200)) {
  for await (const { workflowId, memo } of client.workflow.list({ query })) {
    listed ||= workflowId === sessionId && Array.isArray(memo?.countersign_questions);
  }
}
console.log(`listed ${sessionId}`);

// One update id per decision, the same for every re-send.
async function answer(given: Answer, updateId: string): Promise<string> {
  try {
    return JSON.stringify(await session.executeUpdate<Accepted, [Answer]>("answer", { args: [given], updateId }));
  } catch (error) {
    if (error instanceof WorkflowUpdateFailedError && error.cause instanceof ApplicationFailure) {
      return `${error.cause.type}: ${error.cause.message}`; // a code of the wire contract, and the reason
    }
    throw error;
  }
}

const yes: Answer = {
  interruptResponse: { interruptId: question.id, response: "y" },
  digest: question.digest,
  responder: { id: "ana" },
  comment: "sent from TypeScript",
};
const click = randomUUID();
console.log("refused:", await answer({ ...yes, digest: "not-what-I-saw" }, randomUUID()));
console.log("accepted:", await answer(yes, click));
console.log("again:", await answer(yes, click));

const result = (await session.result()) as Result;
console.log(`result: ${result.stop_reason} after ${result.cycles} cycles`);
await connection.close();
