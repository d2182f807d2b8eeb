/** The snapshots of all volumes in one list. */
import { Page } from "../parts/page";
import { SnapshotList } from "./snapshot-list";

export function Snapshots() {
  return (
    <Page title="Snapshots">
      <p className="muted">
        Snapshots of all volumes, including those of protection groups. Create new ones on the page
        of a volume or a group.
      </p>
      <SnapshotList />
    </Page>
  );
}
