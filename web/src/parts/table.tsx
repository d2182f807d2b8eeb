/** Tables with header cells, selectable rows, and columns that are hidden in small windows. */
import type { ReactNode } from "react";

import type { Selection } from "../lib/selection";
import { Total } from "./list";

export interface Column<T> {
  head: string;
  cell: (row: T) => ReactNode;
  /** The field that the list can be sorted by. */
  sort?: string;
  number?: boolean;
  /** Hidden in small windows. */
  minor?: boolean;
}

export interface TableProps<T> {
  caption: string;
  rows: T[];
  columns: Column<T>[];
  name: (row: T) => string;
  /** The text shown if there are no rows. */
  empty: string;
  selection?: Selection;
  /** The field that it is sorted by, followed by `-` for descending order. */
  sort?: string;
  onSort?: (sort: string) => void;
  /** Whether these are all rows: then their number is shown. A paged list shows its own total. */
  areAll?: boolean;
}

export function Table<T>(props: TableProps<T>) {
  const { caption, rows, columns, name, empty, selection } = props;
  if (rows.length === 0) return <p className="muted empty">{empty}</p>;
  const names = rows.map(name);
  const areChosen = names.every((one) => selection?.isChosen(one));
  const table = (
    <div className="table" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption className="unseen">{caption}</caption>
        <thead>
          <tr>
            {selection && (
              <th scope="col" className="choice">
                <input
                  type="checkbox"
                  aria-label="Select all"
                  checked={areChosen}
                  onChange={() => selection.choose(areChosen ? [] : names)}
                />
              </th>
            )}
            {columns.map((column) => (
              <Head key={column.head} column={column} {...props} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={name(row)} className={selection?.isChosen(name(row)) ? "chosen" : undefined}>
              {selection && (
                <td className="choice">
                  <input
                    type="checkbox"
                    aria-label={`Select ${name(row)}`}
                    checked={selection.isChosen(name(row))}
                    onChange={() => selection.toggle(name(row))}
                  />
                </td>
              )}
              {columns.map((column, at) => cell(column, row, at === 0))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
  return (
    <>
      {table}
      {props.areAll && <Total of={rows.length} />}
    </>
  );
}

function classOf<T>(column: Column<T>): string | undefined {
  const classes = [column.number ? "number" : "", column.minor ? "minor" : ""];
  return classes.join(" ").trim() || undefined;
}

function cell<T>(column: Column<T>, row: T, isFirst: boolean): ReactNode {
  const shown = column.cell(row);
  return isFirst ? (
    <th key={column.head} scope="row" className={classOf(column)}>
      {shown}
    </th>
  ) : (
    <td key={column.head} className={classOf(column)}>
      {shown}
    </td>
  );
}

function Head<T>(props: TableProps<T> & { column: Column<T> }) {
  const { column, sort = "", onSort } = props;
  const field = column.sort;
  if (field === undefined || onSort === undefined) {
    return (
      <th scope="col" className={classOf(column)}>
        {column.head}
      </th>
    );
  }
  const isUp = sort === field;
  const isDown = sort === `${field}-`;
  const order = isUp ? "ascending" : isDown ? "descending" : "none";
  return (
    <th scope="col" className={classOf(column)} aria-sort={order}>
      <button type="button" onClick={() => onSort(isDown || !isUp ? field : `${field}-`)}>
        {column.head}
        <span aria-hidden="true">{isUp ? " ↑" : isDown ? " ↓" : ""}</span>
      </button>
    </th>
  );
}
