/** The lists that dialogs offer to choose from. */
import type { Source } from "./choices";
import { duration, plural } from "./format";
import { bytes } from "./size";

/** The prefixes that distinguish hosts from host groups. */
export const HOST = "host/";
export const HOST_GROUP = "group/";

export const VOLUMES: Source = {
  resource: "volumes",
  query: { destroyed: false },
  hint: ({ provisioned }) => bytes(provisioned),
};

export const SNAPSHOTS: Source = {
  resource: "volume-snapshots",
  query: { destroyed: false },
  hint: () => "snapshot",
};

/** Volumes, of which those of a protection group are members already. */
export const volumesFor = (group: string): Source => ({
  ...VOLUMES,
  members: {
    resource: "protection-groups/volumes",
    query: { group_names: group },
    field: "member.name",
    text: "in the group already",
  },
});

/** Volumes, of which those of a host or a host group are connected already. */
export const volumesOf = (name: string, isGroup: boolean): Source => ({
  ...VOLUMES,
  members: {
    resource: "connections",
    query: isGroup ? { host_group_names: name } : { host_names: name },
    field: "volume.name",
    text: "connected already",
  },
});

/** Volumes, of which those of a pod are in it already. */
export const volumesOutside = (pod: string): Source => ({
  ...VOLUMES,
  taken: (row) => (row.pod?.name === pod ? "in the pod already" : undefined),
});

/** The volumes that are connected to a host; those of its host group are not its own. */
export const connectedTo = (host: string): Source => ({
  resource: "connections",
  query: { host_names: host },
  field: "volume.name",
  taken: (row) => through(row.host_group?.name),
});

const through = (group: string | null | undefined) =>
  group === undefined || group === null ? undefined : `through host group ${group}`;

/** The destroyed objects of a list. */
export const destroyedOf = (resource: string): Source => ({
  resource,
  query: { destroyed: true },
  hint: ({ time_remaining: left }) => `${duration((left ?? 0) / 1000)} left`,
});

/** Hosts without a host group: a host is in one at most. */
export const FREE_HOSTS: Source = {
  resource: "hosts",
  taken: (row) => inGroup(row.host_group?.name),
};

const inGroup = (group: string | null | undefined) =>
  group === undefined || group === null ? undefined : `in host group ${group}`;

/** Host groups and hosts that volumes can be connected to. */
export const TARGETS: Source[] = [
  {
    resource: "host-groups",
    prefix: HOST_GROUP,
    hint: ({ host_count: hosts = 0 }) => `host group, ${plural(hosts, "host")}`,
  },
  { resource: "hosts", prefix: HOST, hint: (row) => inGroup(row.host_group?.name) },
];

/** The names of the chosen objects of one kind. */
export const chosenOf = (chosen: string[], prefix: string): string[] =>
  chosen.filter((one) => one.startsWith(prefix)).map((one) => one.slice(prefix.length));
