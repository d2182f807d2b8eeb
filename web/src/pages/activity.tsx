/**
 * The I/O of hosts over time: of the array, or of a volume, a host, a host group or a port, with
 * the space of those that have any. The I/O of the array is also sampled by the page itself.
 */
import { type ReactNode, useMemo, useState } from "react";

import { bytes } from "../lib/size";
import { latency, rate, ratio } from "../lib/format";
import { type Of, type Span, SPANS, useHistory } from "../lib/history";
import type { ClassRate, Peaks, Sample } from "../lib/rates";
import { useMeasured } from "../lib/sampler";
import { samplesOf, withGaps } from "../lib/series";
import type { CapacitySample, HistorySamples } from "../lib/types";
import { Chart, type Series } from "../parts/chart";
import { ChoiceField } from "../parts/fields";
import { Loaded, Notice } from "../parts/notice";
import { Tabs } from "../parts/tabs";
import { SpaceCharts, SpaceText } from "./space-charts";

/** The last half hour, or further back. */
type View = "now" | Span;
const KEPT: readonly (readonly [Span, string])[] = [
  ["hour", "Hour"],
  ["day", "Day"],
  ["month", "Month"],
  ["year", "Year"],
];
const VIEWS: readonly (readonly [View, string])[] = [
  ["now", "Now"],
  ...KEPT,
];
const ARRAY: Of = {};

const perSecond = (value: number | null) => (value === null ? "–" : `${rate(value)}/s`);
const bytesPerSecond = (value: number | null) => (value === null ? "–" : `${bytes(value)}/s`);
const amount = (value: number | null) => (value === null ? "–" : bytes(value));

/** A line of one class of commands. */
function line(
  samples: Sample[],
  label: string,
  colour: string,
  name: string,
  what: keyof Peaks & keyof ClassRate,
): Series {
  const found = samples.map((sample) => sample.classes[name]);
  // The page's own samples have no peaks: each sample is its own peak.
  const peaks = found.flatMap((one) => one?.peaks?.[what] ?? one?.[what] ?? []);
  return {
    label,
    colour,
    values: found.map((one) => one?.[what] ?? null),
    ...(peaks.length > 0 && { peak: Math.max(...peaks) }),
  };
}

/** The lines of reads and writes. */
const readWrite = (samples: Sample[], what: keyof Peaks) => [
  line(samples, "Read", "--c1", "read", what),
  line(samples, "Write", "--c2", "write", what),
];

/** The p50 and p99 latencies of a class. */
function percentiles(samples: Sample[], label: string, colours: [string, string], name: string) {
  const of = (what: "p50Us" | "p99Us") =>
    samples.map((sample) => sample.classes[name]?.[what] ?? null);
  return [
    { label: `${label} p50`, colour: colours[0], values: of("p50Us") },
    { label: `${label} p99`, colour: colours[1], values: of("p99Us") },
  ];
}

/** The lines of offloads: copy, zero, reclaim. */
const offloads = (samples: Sample[], what: keyof Peaks) => [
  line(samples, "Copy", "--c1", "copy", what),
  line(samples, "Zero", "--c2", "zero", what),
  line(samples, "Reclaim", "--c3", "delete", what),
];

function Charts(props: { samples: Sample[]; spanMs: number; children?: ReactNode }) {
  const { samples, spanMs, children } = props;
  const drawn = useMemo(() => {
    const locks = line(samples, "Lock (ATS)", "--c4", "compare_and_write", "perSecond");
    return {
      times: samples.map((sample) => sample.time),
      iops: readWrite(samples, "perSecond"),
      bandwidth: readWrite(samples, "bytesPerSecond"),
      latency: readWrite(samples, "latencyUs"),
      percentiles: [
        ...percentiles(samples, "Read", ["--c1", "--c3"], "read"),
        ...percentiles(samples, "Write", ["--c2", "--c4"], "write"),
      ],
      offloads: [...offloads(samples, "perSecond"), locks],
      offloaded: offloads(samples, "bytesPerSecond"),
    };
  }, [samples]);
  const { times } = drawn;
  const common = { times, spanMs };
  return (
    <div className="charts">
      <Chart title="IOPS" series={drawn.iops} show={perSecond} {...common} />
      <Chart
        title="Bandwidth"
        series={drawn.bandwidth}
        show={bytesPerSecond}
        isBytes
        {...common}
      />
      <Chart title="Latency" series={drawn.latency} show={latency} {...common} />
      <Chart
        title="Latency percentiles"
        series={drawn.percentiles}
        show={latency}
        {...common}
      />
      <Chart title="VAAI commands" series={drawn.offloads} show={perSecond} {...common} />
      <Chart
        title="VAAI bandwidth"
        series={drawn.offloaded}
        show={bytesPerSecond}
        isBytes
        {...common}
      />
      {children}
    </div>
  );
}

function Now() {
  const { samples, error } = useMeasured();
  return (
    <>
      <Charts samples={samples} spanMs={0} />
      {error !== "" && <Notice kind="error">{error}</Notice>}
      <p className="muted">
        The last half hour. While this page is open, it takes its own samples.
      </p>
    </>
  );
}

/** The capacity of the pool over time. */
function CapacityCharts({ found, spanMs }: { found: HistorySamples; spanMs: number }) {
  const drawn = useMemo(() => {
    const of = (label: string, colour: string, field: keyof CapacitySample): Series => ({
      label,
      colour,
      values: found.samples.map(({ capacity }) => capacity?.[field] ?? null),
    });
    return {
      times: found.samples.map((sample) => sample.time_ms / 1000),
      capacity: [
        of("In use", "--c1", "used_bytes"),
        of("Unique to volumes", "--c2", "unique_bytes"),
        of("Shared", "--c3", "shared_bytes"),
        of("Snapshots", "--c4", "snapshots_bytes"),
      ],
      reduction: [
        of("Data reduction", "--c1", "data_reduction"),
        of("Total reduction", "--c2", "total_reduction"),
      ],
    };
  }, [found]);
  const common = { times: drawn.times, spanMs };
  return (
    <>
      <Chart
        title="Capacity over time"
        series={drawn.capacity}
        show={amount}
        isBytes
        {...common}
      />
      <Chart title="Reduction" series={drawn.reduction} show={ratio} {...common} />
    </>
  );
}

function Kept({ span, of }: { span: Span; of: Of }) {
  const query = useHistory(span, of);
  return (
    <Loaded query={query} what="the history">
      {(found) => <KeptCharts span={span} of={of} found={found} />}
    </Loaded>
  );
}

/** Why there is no line. */
function gapText({ volume, host, host_group: group, port }: Of): string {
  const what = volume ?? host ?? group ?? port;
  if (what === undefined) return "the array was not running";
  return "the array was not running, or recorded busier objects instead";
}

function KeptCharts({ span, of, found }: { span: Span; of: Of; found: HistorySamples }) {
  const { lengthMs, resolutionMs } = SPANS[span];
  const samples = useMemo(
    () => withGaps<Sample>(samplesOf(found), resolutionMs, (time) => ({ time, classes: {} })),
    [found, resolutionMs],
  );
  const isArray = Object.keys(of).length === 0;
  return (
    <>
      <Charts samples={samples} spanMs={lengthMs}>
        {isArray && <CapacityCharts found={found} spanMs={lengthMs} />}
        <SpaceCharts of={of} span={span} />
      </Charts>
      <p className="muted">
        Recorded by the array. Lines show means; peaks are over one second
        {of.host_group !== undefined && ", for a host group over one sample"}. In a gap,{" "}
        {gapText(of)}.
      </p>
      <SpaceText of={of} />
    </>
  );
}

/** The activity of one object, from the history of the array. */
export function ActivityOf({ of }: { of: Of }) {
  const [span, choose] = useState<Span>("hour");
  return (
    <section aria-label="Activity">
      <Tabs label="Time range" tabs={KEPT} chosen={span} choose={choose} />
      <Kept key={span} span={span} of={of} />
    </section>
  );
}

/** The activity of the array, or of one of its ports. */
export function Activity() {
  const [view, choose] = useState<View>("now");
  const { ports } = useMeasured();
  const [port, setPort] = useState("");
  const choices = ports.map(({ id, portal }) => [String(id), `Port ${id}: ${portal}`] as const);
  return (
    <>
      {ports.length > 0 && (
        <ChoiceField
          label="Activity of"
          value={port}
          set={setPort}
          choices={[["", "Whole array"], ...choices]}
        />
      )}
      {port === "" ? (
        <>
          <Tabs label="Time range" tabs={VIEWS} chosen={view} choose={choose} />
          {view === "now" ? <Now /> : <Kept key={view} span={view} of={ARRAY} />}
        </>
      ) : (
        <ActivityOf key={port} of={{ port: Number(port) }} />
      )}
    </>
  );
}
