/** The directory service whose users may log in. */
import { own } from "../lib/api";
import { useGet } from "../lib/query";
import { mayAdminister, useSession } from "../lib/session";
import type { DirectorySettings } from "../lib/types";
import { Actions } from "../parts/actions";
import { Loaded } from "../parts/notice";
import { Card, Facts } from "../parts/page";
import {
  EditDirectory,
  EditDirectoryRole,
  EnableDirectory,
  TestDirectory,
} from "../tasks/directory";
import { ROLES } from "../tasks/users";

function groupOf(settings: DirectorySettings, role: string): string {
  const found = settings.roles.find((one) => one.role === role);
  if (found === undefined) return "No group";
  return found.group_base === "" ? found.group : `${found.group} in ${found.group_base}`;
}

export function DirectoryCard() {
  const settings = useGet<DirectorySettings>(own("directory"));
  return (
    <Loaded query={settings} what="the directory service">
      {(found) => <Shown settings={found} />}
    </Loaded>
  );
}

function Shown({ settings }: { settings: DirectorySettings }) {
  const { role } = useSession();
  return (
    <Card
      title="Directory service"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Directory service"
            actions={[
              {
                label: settings.enabled ? "Disable" : "Enable",
                task: (close) => <EnableDirectory settings={settings} close={close} />,
              },
              {
                label: "Servers",
                task: (close) => <EditDirectory settings={settings} close={close} />,
              },
              {
                label: "Roles",
                task: (close) => <EditDirectoryRole settings={settings} close={close} />,
              },
              {
                label: "Test",
                on: settings.uris.length > 0,
                task: (close) => <TestDirectory close={close} />,
              },
            ]}
          />
        )
      }
    >
      <Facts
        facts={[
          ["Status", settings.enabled ? "Enabled" : "Disabled"],
          ["Servers", settings.uris.join(", ") || "None"],
          ["Base DN", settings.base_dn || "None"],
          ["Bind user", settings.bind_user || "None"],
          ["CA certificates", settings.ca_certificate === "" ? "Of the system" : "Configured"],
          ["User login attribute", settings.user_login || "uid or sAMAccountName"],
          ["User object class", settings.user_class || "Any"],
          ...ROLES.map(([one, label]) => [label, groupOf(settings, one)] as const),
        ]}
      />
    </Card>
  );
}
