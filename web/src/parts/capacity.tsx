/** A bar of the parts of a whole, and the same figures as a table. */
import { percent } from "../lib/format";
import { bytes } from "../lib/size";

export interface Part {
  label: string;
  /** The CSS class of its colour. */
  colour: string;
  bytes: number;
}

export function Capacity({ caption, parts, whole }: {
  caption: string;
  parts: Part[];
  whole: number;
}) {
  const widths = parts.map((part) => (whole > 0 ? (1000 * part.bytes) / whole : 0));
  const start = (at: number) => widths.slice(0, at).reduce((sum, width) => sum + width, 0);
  return (
    <div className="capacity">
      <svg viewBox="0 0 1000 24" preserveAspectRatio="none" aria-hidden="true">
        <rect className="track" width="1000" height="24" />
        {parts.map((part, at) => (
          <rect
            key={part.label}
            className={part.colour}
            x={start(at)}
            width={widths[at]}
            height="24"
          />
        ))}
      </svg>
      <table className="legend">
        <caption className="unseen">{caption}</caption>
        <thead className="unseen">
          <tr>
            <th scope="col">Kind</th>
            <th scope="col">Bytes</th>
            <th scope="col">Share</th>
          </tr>
        </thead>
        <tbody>
          {parts.map((part) => (
            <tr key={part.label}>
              <th scope="row">
                <span className={`swatch ${part.colour}`} />
                {part.label}
              </th>
              <td>{bytes(part.bytes)}</td>
              <td>{percent(part.bytes, whole)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
