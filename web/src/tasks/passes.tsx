/** Background work: scrubbing, and the pass of reduction. */
import { own, request } from "../lib/api";
import * as cli from "../lib/cli";
import { Task } from "../parts/task";

const PASSES = {
  scrub: {
    what: "scrubbing",
    text: "Reads all stored data and verifies its checksums. Slows down while hosts are busy.",
  },
  optimize: {
    what: "background reduction",
    text: "Finds duplicate data, and recompresses data that was compressed quickly when written.",
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
    return running ? `Stopped ${what}.` : `Started ${what}.`;
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
