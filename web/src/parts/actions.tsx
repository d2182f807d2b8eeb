/** A toolbar whose buttons open dialogs. The steps are: choose, press, confirm. */
import { type ReactNode, useState } from "react";

export interface Action {
  label: string;
  /** Whether it is possible with the chosen rows. */
  on?: boolean;
  primary?: boolean;
  /** The dialog. */
  task: (close: () => void) => ReactNode;
}

export function Actions({ label, actions, children }: {
  label: string;
  actions: Action[];
  children?: ReactNode;
}) {
  const [open, setOpen] = useState<string | null>(null);
  const close = () => setOpen(null);
  return (
    <>
      <div className="toolbar" role="group" aria-label={label}>
        {children}
        {actions.map((action) => (
          <button
            key={action.label}
            type="button"
            className={action.primary ? "primary" : undefined}
            disabled={action.on === false}
            onClick={() => setOpen(action.label)}
          >
            {action.label}
          </button>
        ))}
      </div>
      {actions.find((action) => action.label === open)?.task(close)}
    </>
  );
}
