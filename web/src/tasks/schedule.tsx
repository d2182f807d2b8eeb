/** Editing the schedule and the retention of a protection group. */
import { useState } from "react";

import { request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import { durationArgument, parseDuration } from "../lib/format";
import { retentionText } from "../lib/retention";
import {
  type AskedTime,
  askedAt,
  atArgument,
  isOfDays,
  scheduleText,
  timeOfDay,
} from "../lib/schedule";
import type { RestGroup } from "../lib/types";
import { CheckField, TextField } from "../parts/fields";
import { Task } from "../parts/task";

const seconds = (ms: number | null | undefined, otherwise: number) =>
  durationArgument(ms ? Math.round(ms / 1000) : otherwise);

const isNumber = (text: string) => /^\d{1,5}$/.test(text.trim());

/** The texts in the fields of the dialog. */
function useTyped({ snapshot_schedule: schedule, source_retention: kept }: RestGroup) {
  const old = schedule.at;
  const [enabled, setEnabled] = useState(schedule.enabled);
  const [every, setEvery] = useState(seconds(schedule.frequency, 3600));
  const [time, setTime] = useState(typeof old === "number" ? timeOfDay(old) : "");
  const [allFor, setAllFor] = useState(durationArgument(kept.all_for_sec));
  const [perDay, setPerDay] = useState(String(kept.per_day));
  const [days, setDays] = useState(String(kept.days));
  const everyS = parseDuration(every);
  const asked: AskedTime = { everyS, text: time, old };
  return {
    ...{ enabled, setEnabled, every, setEvery, time, setTime, allFor, setAllFor },
    ...{ perDay, setPerDay, days, setDays, everyS, asked },
  };
}

/** The request; undefined if a field is missing or invalid. */
function bodyOf(typed: ReturnType<typeof useTyped>) {
  const { enabled, everyS, perDay, days } = typed;
  const [at, allForS] = [askedAt(typed.asked), parseDuration(typed.allFor)];
  const isFilled = [perDay, days].every(isNumber) && everyS !== undefined && everyS > 0;
  if (!isFilled || allForS === undefined || at === undefined) return undefined;
  return {
    snapshot_schedule: { enabled, frequency: everyS * 1000, at },
    source_retention: { all_for_sec: allForS, per_day: Number(perDay), days: Number(days) },
  };
}

/** The effect of a schedule: when snapshots are taken, and how many are kept. */
function comesTo(body: NonNullable<ReturnType<typeof bodyOf>>): string {
  const { snapshot_schedule: schedule, source_retention: kept } = body;
  const { enabled, frequency } = schedule;
  const taken = enabled ? scheduleText(schedule) : "No scheduled snapshots";
  const policy = { allForS: kept.all_for_sec, perDay: kept.per_day, days: kept.days };
  const everyS = enabled ? frequency / 1000 : null;
  return `${taken}. ${retentionText({ ...policy, everyS })}.`;
}

/** Changes the schedule and the retention of a group. */
export function EditSchedule({ group, close }: { group: RestGroup; close: () => void }) {
  const typed = useTyped(group);
  const { enabled, everyS, asked } = typed;
  const { every, allFor, perDay, days } = typed;
  const body = bodyOf(typed);
  const losesTime = typeof asked.old === "number" && body?.snapshot_schedule.at === null;
  const line = { enabled, every, at: atArgument(asked), allFor, perDay, days };
  const run = async () => {
    await request("PATCH", rest("protection-groups", { names: group.name }), body);
    return body !== undefined && enabled
      ? `The schedule of ${group.name} was changed. ${scheduleText(body.snapshot_schedule)}.`
      : `Scheduled snapshots of ${group.name} are disabled.`;
  };
  return (
    <Task
      title={`Schedule of ${group.name}`}
      submit="Change"
      cli={[cli.group.schedule(group.name, line)]}
      ready={body !== undefined}
      run={run}
      close={close}
    >
      <CheckField label="Take snapshots on a schedule" value={enabled} set={typed.setEnabled} />
      <TextField label="Every" hint="Such as 30m, 6h or 1d." value={every} set={typed.setEvery} />
      {isOfDays(everyS) && (
        <TextField
          label="At (UTC)"
          hint="Such as 02:30. Empty: the time at which the schedule is enabled."
          value={typed.time}
          set={typed.setTime}
          invalid={askedAt(asked) === undefined}
        />
      )}
      <TextField label="Keep all for" hint="Such as 1d." value={allFor} set={typed.setAllFor} />
      <TextField
        label="Then keep per day"
        value={perDay}
        set={typed.setPerDay}
        numeric
      />
      <TextField label="For additional days" value={days} set={typed.setDays} numeric />
      <p aria-live="polite">
        {body ? comesTo(body) : "A summary appears here once all fields are valid."}
        {losesTime && ` Its time of day, ${timeOfDay(asked.old ?? 0)} UTC, is cleared.`}
      </p>
    </Task>
  );
}
