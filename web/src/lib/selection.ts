/**
 * Which rows of a table are chosen: by their names, only those that are still there, and until
 * something was done, so that nothing is done to what was chosen for something else.
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
