/** The session, and what its role may change: the page hides the rest, but the array decides. */
import { createContext, useContext } from "react";

import type { Role, Session } from "./types";

export const SessionContext = createContext<Session>({ user: "", role: "readonly" });

export const useSession = () => useContext(SessionContext);

/** Whether a role may change volumes, hosts, snapshots, groups and connections. */
export const mayStore = (role: Role) => role !== "readonly";

/** Whether a role may change settings, the pool and users. */
export const mayAdminister = (role: Role) => role === "array_admin";
