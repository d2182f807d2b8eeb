/** Lines over time, with a table of the current, mean and peak values below. */
import { useEffect, useMemo, useRef, useState } from "react";
import uPlot from "uplot";

import { axisPx, BINARY_STEPS } from "../lib/axis";
import { alone } from "../lib/series";
import { useIsDark } from "../lib/theme";

export interface Series {
  label: string;
  /** The CSS custom property of its colour. */
  colour: string;
  values: (number | null)[];
  /** The peak, if it is known separately: the values may be means. */
  peak?: number;
}

export interface ChartProps {
  title: string;
  times: number[];
  series: Series[];
  /** Formats a value. */
  show: (value: number | null) => string;
  /** The time span of the chart, in milliseconds; 0 for minutes. */
  spanMs?: number;
  /** Whether values are bytes: grid lines are then at whole KiB, MiB and so on. */
  isBytes?: boolean;
}

const HEIGHT_PX = 170;

const property = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** A time, as precise as the time span of the chart requires. */
function clock(seconds: number, spanMs: number): string {
  const at = new Date(seconds * 1000);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  if (spanMs > 100 * DAY_MS) return day;
  if (spanMs > DAY_MS) return `${day.slice(5)} ${at.toTimeString().slice(0, 5)}`;
  return at.toTimeString().slice(0, spanMs >= HOUR_MS ? 5 : 8);
}

function options(props: ChartProps, width: number, at: (index: number | null) => void) {
  const axis = { stroke: property("--muted"), font: `12px ${property("--font")}` };
  const lines = { stroke: property("--line"), width: 1 };
  const made: uPlot.Options = {
    width,
    height: HEIGHT_PX,
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { size: 6 } },
    hooks: { setCursor: [(plot) => at(plot.cursor.idx ?? null)] },
    scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      {
        ...axis,
        grid: { show: false },
        ticks: lines,
        space: 90,
        values: (_plot, times) => times.map((one) => clock(one, props.spanMs ?? 0)),
      },
      {
        ...axis,
        grid: lines,
        ticks: { show: false },
        size: (_plot, labels) => axisPx(labels),
        space: 36,
        ...(props.isBytes && { incrs: BINARY_STEPS }),
        values: (_plot, values) => values.map((value) => props.show(value)),
      },
    ],
    series: [
      {},
      ...props.series.map((one) => ({
        label: one.label,
        stroke: property(one.colour),
        width: 2,
        // A line needs two points: an isolated one is shown as a dot.
        points: {
          show: false,
          size: 6,
          fill: property(one.colour),
          filter: (plot: uPlot, at: number) => alone(plot.data[at] ?? []),
        },
      })),
    ],
  };
  return made;
}

export function Chart(props: ChartProps) {
  const { title, times, series, show, spanMs = 0 } = props;
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const dark = useIsDark();
  const [at, setAt] = useState<number | null>(null);
  const data = useMemo<uPlot.AlignedData>(
    () => [times, ...series.map((one) => one.values)],
    [times, series],
  );
  const latest = useRef({ props, data });
  useEffect(() => {
    latest.current = { props, data };
    plot.current?.setData(data);
  });

  useEffect(() => {
    const box = place.current;
    if (box === null) return;
    const now = latest.current;
    const made = new uPlot(options(now.props, box.clientWidth, setAt), now.data, box);
    plot.current = made;
    const watcher = new ResizeObserver(() => {
      if (box.clientWidth > 0) made.setSize({ width: box.clientWidth, height: HEIGHT_PX });
    });
    watcher.observe(box);
    return () => {
      watcher.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [dark]);

  const index = at ?? times.length - 1;
  const moment = at === null ? "Now" : clock(times[at] ?? 0, spanMs);
  const last = series.map((one) => `${one.label} ${show(one.values.at(-1) ?? null)}`);
  const told = `${title} over time. Now: ${last.join(", ")}`;
  return (
    <section className="card chart">
      <h2>{title}</h2>
      <div ref={place} role="img" aria-label={told} />
      {times.length === 0 && <p className="muted">No samples yet.</p>}
      <table className="legend">
        <caption className="unseen">{title}</caption>
        <thead>
          <tr>
            <th scope="col">
              <span className="unseen">What</span>
            </th>
            <th scope="col">{moment}</th>
            <th scope="col">Mean</th>
            <th scope="col">Peak</th>
          </tr>
        </thead>
        <tbody>
          {series.map((one) => (
            <Row key={one.label} series={one} index={index} show={show} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function Row(props: { series: Series; index: number; show: ChartProps["show"] }) {
  const { series, index, show } = props;
  const known = series.values.filter((value) => value !== null);
  const sum = known.reduce((total, value) => total + value, 0);
  const peak = series.peak ?? (known.length > 0 ? Math.max(...known) : null);
  return (
    <tr>
      <th scope="row">
        <span className={`swatch ${series.colour.slice(2)}`} />
        {series.label}
      </th>
      <td>{show(series.values[index] ?? null)}</td>
      <td>{show(known.length > 0 ? sum / known.length : null)}</td>
      <td>{show(peak)}</td>
    </tr>
  );
}
