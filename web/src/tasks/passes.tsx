/** Background work: scrubbing, and the pass of reduction. */
import { own, request } from "../lib/api";
import * as cli from "../lib/cli";
import { Task } from "../parts/task";

const PASSES = {
  scrub: {
    what: "scrubbing",
    text: "Every durable byte is read and compared with its checksum, slower while hosts are busy.",
  },
  optimize: {
    what: "the pass of reduction",
    text: "What is stored twice is found, and what was compressed quickly is packed better.",
  },
} as const;

/** Starts or stops a pass. */
export function Pass(props: {
  pass: keyof typeof PASSES;
  running: boolean;
  close: () => void;
}) {
  const { pass, running, close } = props;
  const { what, text } = PASSES[pass];
  const run = async () => {
    await request(running ? "DELETE" : "POST", own(["pool", pass]));
    return running ? `Stopped: ${what}.` : `Started: ${what}.`;
  };
  return (
    <Task
      title={`${running ? "Stop" : "Start"} ${what}`}
      submit={running ? "Stop" : "Start"}
      cli={[cli.pool[pass](running ? "stop" : "start")]}
      run={run}
      close={close}
    >
      <p>{text}</p>
    </Task>
  );
}
