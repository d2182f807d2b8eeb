/** Destroying, recovering and eradicating volumes, snapshots, groups and pods. */
import { useState } from "react";

import { type Query, request, rest } from "../lib/api";
import { CheckField } from "../parts/fields";
import { Notice } from "../parts/notice";
import { Task } from "../parts/task";

/** Objects of one kind, with the name of their list in the interface. */
export interface Ending {
  /** The list of REST 2.x, such as `volumes`. */
  resource: string;
  /** The singular of the kind. */
  kind: string;
  names: string[];
  /** Further parameters of the request. */
  query?: Query;
  /** The equivalent command lines. */
  cli: string[];
  close: () => void;
}

const listed = (names: string[]) =>
  names.length <= 3 ? names.join(", ") : `${names.slice(0, 3).join(", ")} and more`;

function titled(verb: string, { names, kind }: Ending): string {
  return names.length === 1 ? `${verb} ${names[0]}` : `${verb} ${names.length} ${kind}s`;
}

export function Destroy(ending: Ending & { along?: string }) {
  const { resource, names, query, along, cli, close } = ending;
  const run = async () => {
    await request("PATCH", rest(resource, { ...query, names }), { destroyed: true });
    return `Destroyed: ${listed(names)}. It can be recovered for a time.`;
  };
  return (
    <Task
      title={titled("Destroy", ending)}
      submit="Destroy"
      danger
      cli={cli}
      run={run}
      close={close}
    >
      <p>
        {listed(names)}
        {along === undefined ? "" : `, ${along},`} can be recovered until the eradication delay is
        over.
      </p>
    </Task>
  );
}

export function Recover(ending: Ending) {
  const { resource, names, cli, close } = ending;
  const run = async () => {
    await request("PATCH", rest(resource, { names }), { destroyed: false });
    return `Recovered: ${listed(names)}.`;
  };
  return (
    <Task title={titled("Recover", ending)} submit="Recover" cli={cli} run={run} close={close}>
      <p>{listed(names)} will be as before.</p>
    </Task>
  );
}

export function Eradicate(ending: Ending & { along?: string }) {
  const { resource, names, query, along, cli, close } = ending;
  const [sure, setSure] = useState(false);
  const run = async () => {
    await request("DELETE", rest(resource, { ...query, names }));
    return `Eradicated: ${listed(names)}.`;
  };
  return (
    <Task
      title={titled("Eradicate", ending)}
      submit="Eradicate"
      danger
      cli={cli}
      ready={sure}
      run={run}
      close={close}
    >
      <Notice kind="warning">
        {listed(names)}
        {along === undefined ? "" : `, ${along}`}: nothing brings the data back after this.
      </Notice>
      <CheckField label="Eradicate, for ever" value={sure} set={setSure} />
    </Task>
  );
}
