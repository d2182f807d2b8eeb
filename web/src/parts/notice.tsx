/** Lines that say what is wrong, missing, or still on its way. */
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

/** Why something can't be shown. What the array does not have yet is no error. */
export function Failure({ error, what }: { error: unknown; what: string }) {
  if (error instanceof Refused && error.isMissing) {
    return <Notice>This array does not offer {what} yet.</Notice>;
  }
  const text = error instanceof Error ? error.message : String(error);
  return <Notice kind="error">{text}</Notice>;
}

/** What an answer is shown as, once it is there. */
export function Loaded<T>(props: {
  query: UseQueryResult<T>;
  what: string;
  children: (data: T) => ReactNode;
}) {
  const { query, what, children } = props;
  const away = useAway();
  // While the array is away, which the page says at its top, what was last seen stays.
  const isOld = away !== null && query.error instanceof Refused && query.error.status === 0;
  if (isOld && query.data !== undefined) return <>{children(query.data)}</>;
  if (query.error !== null) return <Failure error={query.error} what={what} />;
  if (query.data === undefined) return <p className="muted">Loading…</p>;
  return <>{children(query.data)}</>;
}
