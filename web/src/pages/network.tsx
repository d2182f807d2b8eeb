/** Whom the array asks on its management network. */
import { useSession, mayAdminister } from "../lib/session";
import type { ArraySettings } from "../lib/types";
import { Actions } from "../parts/actions";
import { Card, Facts } from "../parts/page";
import { EditDns } from "../tasks/network";

export function NetworkCard({ settings }: { settings: ArraySettings }) {
  const { role } = useSession();
  return (
    <Card
      title="Network"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Network"
            actions={[
              {
                label: "Name servers",
                task: (close) => <EditDns settings={settings} close={close} />,
              },
            ]}
          />
        )
      }
    >
      <Facts
        facts={[
          ["Name servers", settings.name_servers.join(", ") || "None: the system looks names up"],
          ["Domain of names without a dot", settings.domain || "None"],
        ]}
      />
    </Card>
  );
}
