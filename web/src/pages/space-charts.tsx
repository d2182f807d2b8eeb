/** Charts of the space of a volume, a host or a host group over time. */
import { useMemo } from "react";

import { ratio } from "../lib/format";
import { type Of, type Span, SPANS } from "../lib/history";
import { withGaps } from "../lib/series";
import { bytes } from "../lib/size";
import {
  spaceList,
  spaceResolution,
  type SpaceSample,
  useSpaceHistory,
} from "../lib/space-history";
import { Chart, type Series } from "../parts/chart";
import { Loaded } from "../parts/notice";

const amount = (value: number | null) => (value === null ? "–" : bytes(value));

type Figure =
  | "total_provisioned"
  | "virtual"
  | "unique"
  | "snapshots"
  | "data_reduction"
  | "total_reduction";

function Charts({ samples, span }: { samples: SpaceSample[]; span: Span }) {
  const drawn = useMemo(() => {
    const all = withGaps<SpaceSample>(samples, spaceResolution(span), (time) => ({ time }));
    const of = (label: string, colour: string, figure: Figure): Series => ({
      label,
      colour,
      values: all.map(({ space }) => space?.[figure] ?? null),
    });
    return {
      times: all.map(({ time }) => time),
      size: [
        of("Provisioned", "--c1", "total_provisioned"),
        of("Written", "--c2", "virtual"),
      ],
      stored: [of("Unique", "--c1", "unique"), of("Snapshots", "--c2", "snapshots")],
      reduction: [
        of("Data reduction", "--c1", "data_reduction"),
        of("Total reduction", "--c2", "total_reduction"),
      ],
    };
  }, [samples, span]);
  const common = { times: drawn.times, spanMs: SPANS[span].lengthMs };
  return (
    <>
      <Chart title="Size over time" series={drawn.size} show={amount} isBytes {...common} />
      <Chart title="Stored over time" series={drawn.stored} show={amount} isBytes {...common} />
      <Chart title="Reduction" series={drawn.reduction} show={ratio} {...common} />
    </>
  );
}

function OfList({ list, span }: { list: readonly [string, string]; span: Span }) {
  const query = useSpaceHistory(span, list);
  return (
    <Loaded query={query} what="space over time">
      {(samples) => <Charts samples={samples} span={span} />}
    </Loaded>
  );
}

/** The charts of an object that has them. */
export function SpaceCharts({ of, span }: { of: Of; span: Span }) {
  const list = spaceList(of);
  return list === undefined ? null : <OfList list={list} span={span} />;
}

/** What these charts show. */
export function SpaceText({ of }: { of: Of }) {
  if (spaceList(of) === undefined) return null;
  return (
    <p className="muted">
      Space is that of the last accounting pass in each sample
      {of.volume === undefined && ", of the volumes that are connected now"}.
      {of.volume === undefined &&
        " What is unique to several volumes is unknown if one of them shares data."}
    </p>
  );
}
