/** Equivalent command lines, which can be copied. */
import { CopyButton } from "./copy";

export function Command({ lines }: { lines: string[] }) {
  const text = lines.join("\n");
  if (lines.length === 0) {
    return <p className="command muted">There is no equivalent command yet.</p>;
  }
  return (
    <div className="command">
      <div className="command-head">
        <span>Equivalent command</span>
        <CopyButton text={text} />
      </div>
      <pre tabIndex={0} aria-label="Equivalent command">
        <code>{text}</code>
      </pre>
    </div>
  );
}
