/** The snapshots of all volumes in one list. */
import { Page } from "../parts/page";
import { SnapshotList } from "./snapshot-list";

export function Snapshots() {
  return (
    <Page title="Snapshots">
      <p className="muted">
        Of all volumes, those that protection groups have made among them. New ones are made of
        volumes or groups, on their pages.
      </p>
      <SnapshotList />
    </Page>
  );
}
