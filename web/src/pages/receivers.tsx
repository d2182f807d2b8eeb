/** Lists of the recipients of alerts. */
import { useSelection } from "../lib/selection";
import { mayAdminister, useSession } from "../lib/session";
import type { Named } from "../lib/types";
import { type Action, Actions } from "../parts/actions";
import { type Column, Table } from "../parts/table";
import { type ReceiverList, RemoveReceivers, TestReceivers } from "../tasks/notifications";

interface ReceiversProps<T extends Named> {
  resource: ReceiverList;
  caption: string;
  rows: T[];
  columns: Column<T>[];
  empty: string;
  /** The labels of the actions that all kinds have. */
  test: string;
  remove: string;
  /** Further actions on the chosen recipients. */
  actions: (chosen: T[], names: string[]) => Action[];
}

/** A list of recipients, with actions on them. */
export function Receivers<T extends Named>(props: ReceiversProps<T>) {
  const { resource, caption, rows, columns, empty, test, remove, actions } = props;
  const { role } = useSession();
  const may = mayAdminister(role);
  const selection = useSelection(rows.map((one) => one.name));
  const chosen = rows.filter((one) => selection.isChosen(one.name));
  const names = chosen.map((one) => one.name);
  const on = chosen.length > 0;
  return (
    <>
      {may && (
        <Actions
          label={caption}
          actions={[
            ...actions(chosen, names),
            {
              label: test,
              on,
              task: (close) => <TestReceivers resource={resource} names={names} close={close} />,
            },
            {
              label: remove,
              on,
              task: (close) => <RemoveReceivers resource={resource} names={names} close={close} />,
            },
          ]}
        />
      )}
      <Table
        caption={caption}
        areAll
        rows={rows}
        columns={columns}
        name={(row) => row.name}
        empty={empty}
        {...(may ? { selection } : {})}
      />
    </>
  );
}
