/** Texts to take elsewhere: by the clipboard, or as a file. */
import { useId, useState } from "react";

/** A button that copies a text; browsers offer the clipboard only to secure pages. */
export function CopyButton({ text }: { text: string }) {
  const [copied, setCopied] = useState("");
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(text);
  };
  if (!("clipboard" in navigator)) return null;
  return (
    <button type="button" className="quiet" onClick={() => void copy()}>
      {copied === text ? "Copied" : "Copy"}
    </button>
  );
}

/** A text box that is only read, with buttons to copy, save and hide it. */
export function TextToTake(props: {
  label: string;
  text: string;
  /** The name of the file. */
  file: string;
  hide: () => void;
}) {
  const { label, text, file, hide } = props;
  const id = useId();
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      <textarea id={id} rows={10} readOnly spellCheck={false} value={text} />
      <div className="toolbar">
        <CopyButton text={text} />
        <a download={file} href={`data:application/octet-stream,${encodeURIComponent(text)}`}>
          Download
        </a>
        <button type="button" className="quiet" onClick={hide}>
          Hide
        </button>
      </div>
    </div>
  );
}
