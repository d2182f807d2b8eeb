/** The name servers and time servers of the array. */
import { useState } from "react";

import { own, request } from "../lib/api";
import * as cli from "../lib/cli";
import { words } from "../lib/format";
import type { ArraySettings } from "../lib/types";
import { TextField } from "../parts/fields";
import { Task } from "../parts/task";

export function EditDns({ settings, close }: { settings: ArraySettings; close: () => void }) {
  const [text, setText] = useState(settings.name_servers.join(", "));
  const [domain, setDomain] = useState(settings.domain);
  const servers = words(text);
  const isValid = servers.length <= 3 && (servers.length > 0 || domain.trim() === "");
  const run = async () => {
    const change = { name_servers: servers, domain: domain.trim() };
    await request("PATCH", own("settings"), change);
    return servers.length > 0
      ? `Name servers: ${servers.join(", ")}.`
      : "The name servers of the system are used.";
  };
  return (
    <Task
      title="Name servers"
      submit="Change"
      cli={isValid ? [cli.array.dns(servers, domain.trim())] : []}
      ready={isValid}
      run={run}
      close={close}
    >
      <TextField
        label="Addresses of name servers"
        hint="Up to three, in the order in which they are queried. Empty: those of the system. Takes
          effect at once, for syslog servers, mail and webhooks."
        value={text}
        set={setText}
        invalid={servers.length > 3}
      />
      <TextField
        label="Domain"
        hint="Appended to names without a dot. Empty: none."
        value={domain}
        set={setDomain}
        invalid={!isValid && servers.length === 0}
      />
    </Task>
  );
}

export function EditTimeServers(props: { settings: ArraySettings; close: () => void }) {
  const { settings, close } = props;
  const [text, setText] = useState(settings.ntp_servers.join(", "));
  const servers = words(text);
  const isValid = servers.length <= 4;
  const run = async () => {
    await request("PATCH", own("settings"), { ntp_servers: servers });
    return servers.length > 0
      ? `Time servers: ${servers.join(", ")}.`
      : "No time servers are configured.";
  };
  return (
    <Task
      title="Time servers"
      submit="Change"
      cli={isValid ? [cli.array.timeServers(servers)] : []}
      ready={isValid}
      run={run}
      close={close}
    >
      <TextField
        label="Names or addresses of time servers"
        hint="Up to four. The array measures the offset of its clock, and opens an alert if it is
          too large. The operating system sets the clock."
        value={text}
        set={setText}
        invalid={!isValid}
      />
    </Task>
  );
}
