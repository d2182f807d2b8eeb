/** The settings of the array, in sections. */
import { Redirect } from "wouter";

import { own } from "../lib/api";
import { OFFLOADS } from "../lib/cli";
import { duration, time } from "../lib/format";
import { useGet } from "../lib/query";
import { mayAdminister, useSession } from "../lib/session";
import type { ArraySettings, Status } from "../lib/types";
import { Actions } from "../parts/actions";
import { Loaded, Notice } from "../parts/notice";
import { Card, Facts, Page } from "../parts/page";
import {
  EditChapRequired,
  EditDelay,
  EditOffloads,
  EditThresholds,
  OFFLOAD_KEYS,
  OFFLOAD_NAMES,
  RenameArray,
} from "../tasks/settings";
import { to } from "../routes";
import { AccessCards } from "./access";
import { DirectoryCard } from "./directory";
import { NetworkCard } from "./network";
import { NotificationCards } from "./notifications";
import { UsersCard } from "./users";

export function Settings({ section }: { section: string | undefined }) {
  if (section === undefined) return <Redirect to={to("settings", "array")} replace />;
  return (
    <Page title="Settings">
      <Section section={section} />
    </Page>
  );
}

function Section({ section }: { section: string }) {
  const settings = useGet<ArraySettings>(own("settings"));
  switch (section) {
    case "users":
      return <UsersCard />;
    case "notifications":
      return <NotificationCards />;
    case "directory":
      return <DirectoryCard />;
    case "about":
      return <About />;
    case "array":
    case "offloads":
    case "network":
    case "access":
      return (
        <Loaded query={settings} what="settings">
          {(found) => {
            const Shown = CARDS[section];
            return <Shown settings={found} />;
          }}
        </Loaded>
      );
    default:
      return <Notice>There is no such section.</Notice>;
  }
}

const CARDS = {
  array: ArrayCard,
  offloads: OffloadCard,
  network: NetworkCard,
  access: AccessCards,
} as const;

function ArrayCard({ settings }: { settings: ArraySettings }) {
  const { role } = useSession();
  const thresholds = settings.space_thresholds.map((one) => `${one}%`).join(", ");
  return (
    <Card
      title="Array"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Array"
            actions={[
              {
                label: "Name",
                task: (close) => <RenameArray settings={settings} close={close} />,
              },
              {
                label: "Eradication delay",
                task: (close) => <EditDelay settings={settings} close={close} />,
              },
              {
                label: "Space thresholds",
                task: (close) => <EditThresholds settings={settings} close={close} />,
              },
              {
                label: "CHAP",
                task: (close) => <EditChapRequired settings={settings} close={close} />,
              },
            ]}
          />
        )
      }
    >
      <Facts
        facts={[
          ["Name", settings.name],
          ["Eradication delay", duration(settings.eradication_delay_s)],
          ["Space thresholds", thresholds || "None"],
          ["Hosts without CHAP", settings.chap_required ? "Rejected at login" : "Allowed"],
          ["Company ID in NAA identifiers", <code key="id">{settings.company_id}</code>],
        ]}
      />
    </Card>
  );
}

function OffloadCard({ settings }: { settings: ArraySettings }) {
  const { role } = useSession();
  const state = (on: boolean) => <span className={on ? "good" : "muted"}>{on ? "On" : "Off"}</span>;
  return (
    <Card
      title="Offloads of all volumes"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Offloads"
            actions={[
              {
                label: "Change offloads",
                task: (close) => <EditOffloads offloads={settings.offloads} close={close} />,
              },
            ]}
          />
        )
      }
    >
      <Facts
        facts={OFFLOAD_KEYS.map(
          (key) =>
            [
              `${OFFLOAD_NAMES[key][0]} (${OFFLOADS[key]})`,
              state(settings.offloads[key]),
            ] as const,
        )}
      />
    </Card>
  );
}

function About() {
  const status = useGet<Status>(own("status"));
  return (
    <Card title="About">
      <Loaded query={status} what="the status">
        {(found) => (
          <Facts
            facts={[
              ["Version", found.version],
              ["iSCSI name", <code key="target">{found.target_name}</code>],
              ["Portals", found.portals.join(", ")],
              [
                "Writes are durable",
                found.durability === "commit" ? "When acknowledged" : "After a flush",
              ],
              ["Started", time(found.started_ms)],
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}
