/** Equivalent command lines, which can be copied. */
import { useState } from "react";

export function Command({ lines }: { lines: string[] }) {
  const [copied, setCopied] = useState("");
  const text = lines.join("\n");
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(text);
  };
  if (lines.length === 0) {
    return <p className="command muted">There is no equivalent command yet.</p>;
  }
  return (
    <div className="command">
      <div className="command-head">
        <span>Equivalent command</span>
        {"clipboard" in navigator && (
          <button type="button" className="quiet" onClick={() => void copy()}>
            {copied === text ? "Copied" : "Copy"}
          </button>
        )}
      </div>
      <pre tabIndex={0} aria-label="Equivalent command">
        <code>{text}</code>
      </pre>
    </div>
  );
}
