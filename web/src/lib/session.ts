/** Who is logged in, and what that role may change: the array decides, the page only hides. */
import { createContext, useContext } from "react";

import type { Role, Session } from "./types";

export const SessionContext = createContext<Session>({ user: "", role: "readonly" });

export const useSession = () => useContext(SessionContext);

/** Whether a role may change volumes, hosts and what is made of them. */
export const mayStore = (role: Role) => role !== "readonly";

/** Whether a role may change settings, the pool and users. */
export const mayAdminister = (role: Role) => role === "array_admin";
