/** Messages about errors, missing features, and data that is still loading. */
import type { UseQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";

import { Refused } from "../lib/api";
import { useAway } from "../lib/reach";

export function Notice(props: { kind?: "error" | "info" | "warning"; children: ReactNode }) {
  const { kind = "info", children } = props;
  return (
    <p className={`notice ${kind}`} role={kind === "error" ? "alert" : undefined}>
      {children}
    </p>
  );
}

/** Why something can't be shown. A feature that the array lacks is not an error. */
export function Failure({ error, what }: { error: unknown; what: string }) {
  if (error instanceof Refused && error.isMissing) {
    return <Notice>This array does not support {what}.</Notice>;
  }
  const text = error instanceof Error ? error.message : String(error);
  return <Notice kind="error">{text}</Notice>;
}

/** Shows a response once it has arrived. */
export function Loaded<T>(props: {
  query: UseQueryResult<T>;
  what: string;
  children: (data: T) => ReactNode;
}) {
  const { query, what, children } = props;
  const away = useAway();
  // While the array is unreachable, as the top of the page says, the last data stays.
  const isOld = away !== null && query.error instanceof Refused && query.error.status === 0;
  if (isOld && query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error !== null) return <Failure error={query.error} what={what} />;
  if (query.data === undefined) return <p className="muted">Loading…</p>;
  return <>{children(query.data)}</>;
}
