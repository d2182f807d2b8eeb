/** Destroying, recovering and eradicating volumes, snapshots, groups and pods. */
import { useState } from "react";

import { type Query, request, rest } from "../lib/api";
import { destroyedOf } from "../lib/sources";
import type { Action } from "../parts/actions";
import { Chooser } from "../parts/chooser";
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

/** The number of names that are listed. */
const LISTED = 3;

function listed(names: string[]): string {
  const more = names.length - LISTED;
  return more <= 0 ? names.join(", ") : `${names.slice(0, LISTED).join(", ")} and ${more} more`;
}

function titled(verb: string, { names, kind }: Ending): string {
  return names.length === 1 ? `${verb} ${names[0]}` : `${verb} ${names.length} ${kind}s`;
}

export function Destroy(ending: Ending & { along?: string }) {
  const { resource, names, query, along, cli, close } = ending;
  const run = async () => {
    await request("PATCH", rest(resource, { ...query, names }), { destroyed: true });
    const until = "Recovery is possible until the eradication delay has passed.";
    return `Destroyed ${listed(names)}. ${until}`;
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
        {along === undefined ? "" : `, ${along},`} can be recovered until the eradication delay
        has passed.
      </p>
    </Task>
  );
}

export function Recover(ending: Ending) {
  const { resource, names, cli, close } = ending;
  const run = async () => {
    await request("PATCH", rest(resource, { names }), { destroyed: false });
    return `Recovered ${listed(names)}.`;
  };
  return (
    <Task title={titled("Recover", ending)} submit="Recover" cli={cli} run={run} close={close}>
      <p>{listed(names)} will be available again.</p>
    </Task>
  );
}

/** The action that recovers objects of a list, which are chosen in its dialog. */
export function recoverSome(
  resource: string,
  kinds: string,
  lines: (names: string[]) => string[],
): Action {
  return {
    label: `Recover ${kinds}`,
    task: (close) => (
      <RecoverSome resource={resource} kinds={kinds} lines={lines} close={close} />
    ),
  };
}

function RecoverSome(props: {
  resource: string;
  /** The plural of the kind, as the title names it. */
  kinds: string;
  lines: (names: string[]) => string[];
  close: () => void;
}) {
  const { resource, kinds, lines, close } = props;
  const [names, setNames] = useState<string[]>([]);
  const run = async () => {
    await request("PATCH", rest(resource, { names }), { destroyed: false });
    return `Recovered ${listed(names)}.`;
  };
  return (
    <Task
      title={`Recover ${kinds}`}
      submit="Recover"
      cli={names.length > 0 ? lines(names) : lines(["NAME"])}
      ready={names.length > 0}
      run={run}
      close={close}
    >
      <Chooser
        label={`Destroyed ${kinds}`}
        sources={[destroyedOf(resource)]}
        chosen={names}
        set={setNames}
        none={`No destroyed ${kinds}.`}
      />
    </Task>
  );
}

export function Eradicate(ending: Ending & { along?: string }) {
  const { resource, names, query, along, cli, close } = ending;
  const [sure, setSure] = useState(false);
  const run = async () => {
    await request("DELETE", rest(resource, { ...query, names }));
    return `Eradicated ${listed(names)}.`;
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
        Eradicating {listed(names)}
        {along === undefined ? "" : ` ${along}`} can’t be undone: the data is lost.
      </Notice>
      <CheckField label="Eradicate permanently" value={sure} set={setSure} />
    </Task>
  );
}
