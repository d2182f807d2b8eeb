/**
 * The chosen rows of a table, by name. Rows that no longer exist are not included. Each change
 * clears the choice, so that the next one is not applied to rows chosen for another purpose.
 */
import { useState } from "react";

import { useDoneCount } from "./done";

export interface Selection {
  chosen: string[];
  isChosen: (name: string) => boolean;
  toggle: (name: string) => void;
  choose: (names: string[]) => void;
}

export function useSelection(shown: string[]): Selection {
  const count = useDoneCount();
  const [choice, setChoice] = useState<{ names: string[]; count: number }>({ names: [], count });
  const chosen = choice.count === count ? choice.names.filter((name) => shown.includes(name)) : [];
  const choose = (names: string[]) => setChoice({ names, count });
  return {
    chosen,
    choose,
    isChosen: (name) => chosen.includes(name),
    toggle: (name) => {
      choose(chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name]);
    },
  };
}
