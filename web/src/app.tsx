/** The frame of all pages: the user, the navigation, and the message about the last change. */
import { QueryClientProvider } from "@tanstack/react-query";
import { useEffect, useSyncExternalStore } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";

import { alertsText, byWeight } from "./lib/alerts";
import { logOut, own, sessions } from "./lib/api";
import { client, refresh, useGet, useOpenAlerts } from "./lib/query";
import { startProbing } from "./lib/reach";
import { startSampling } from "./lib/sampler";
import { mayAdminister, SessionContext } from "./lib/session";
import { choose, type Theme, THEMES, useTheme } from "./lib/theme";
import type { Role, Session, Status } from "./lib/types";
import { tell, useTold } from "./lib/done";
import { Notice } from "./parts/notice";
import { Page } from "./parts/page";
import { Reach } from "./parts/reach";
import { AuditLog } from "./pages/audit";
import { Dashboard } from "./pages/dashboard";
import { Datastores } from "./pages/datastores";
import { Health } from "./pages/health";
import { HostGroupPage, HostGroups } from "./pages/host-groups";
import { HostPage, Hosts } from "./pages/hosts";
import { Login } from "./pages/login";
import { PodPage, Pods } from "./pages/pods";
import { GroupPage, Protection } from "./pages/protection";
import { Settings } from "./pages/settings";
import { Snapshots } from "./pages/snapshots";
import { VolumePage } from "./pages/volume";
import { Volumes } from "./pages/volumes";
import { type PageName, to } from "./routes";

const LINKS: readonly (readonly [PageName, string])[] = [
  ["dashboard", "Dashboard"],
  ["volumes", "Volumes"],
  ["pods", "Pods"],
  ["snapshots", "Snapshots"],
  ["datastores", "Datastores"],
  ["hosts", "Hosts"],
  ["host-groups", "Host groups"],
  ["protection", "Protection"],
  ["health", "Health"],
  ["audit", "Audit log"],
  ["settings", "Settings"],
];

/** The sections of the settings, by the second part of their address. */
const SECTIONS = [
  ["array", "Array"],
  ["offloads", "Offloads"],
  ["network", "Network"],
  ["access", "Access"],
  ["notifications", "Notifications"],
  ["users", "Users and tokens"],
  ["directory", "Directory"],
  ["about", "About"],
] as const;

export function App() {
  const open = useSyncExternalStore(sessions.subscribe, sessions.isOpen);
  useEffect(() => startProbing(() => void refresh()), []);
  return (
    <QueryClientProvider client={client}>{open ? <Inside /> : <Login />}</QueryClientProvider>
  );
}

function Inside() {
  // Repeated, so that a page opened while the array is unreachable recovers later.
  const who = useGet<Session>(own("session"));
  useEffect(startSampling, []);
  if (who.data === undefined) {
    return (
      <main id="main">
        <Reach />
        <h1 className="unseen">Holdfast</h1>
        {who.error === null ? (
          <p className="muted">Loading…</p>
        ) : (
          <Notice kind="error">{who.error.message}</Notice>
        )}
      </main>
    );
  }
  return (
    <SessionContext value={who.data}>
      <a className="skip" href="#main">
        Skip to content
      </a>
      <Bar who={who.data} />
      <div className="frame">
        <Navigation role={who.data.role} />
        <main id="main" tabIndex={-1}>
          <Reach />
          <Told />
          <Pages />
        </main>
      </div>
    </SessionContext>
  );
}

function Bar({ who }: { who: Session }) {
  const status = useGet<Status>(own("status"), 5000);
  const theme = useTheme();
  return (
    <header className="bar">
      <span className="brand">
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d="M4 3h4v7h8V3h4v18h-4v-7H8v7H4z" />
        </svg>
        {status.data?.name ?? "Holdfast"}
      </span>
      <AlertCount />
      <span className="muted who">
        {who.user} ({who.role.replace("_", " ")})
      </span>
      <label className="theme">
        <span className="unseen">Theme</span>
        <select value={theme} onChange={(event) => choose(event.target.value as Theme)}>
          {THEMES.map((one) => (
            <option key={one} value={one}>
              {one === "auto" ? "System" : one === "light" ? "Light" : "Dark"}
            </option>
          ))}
        </select>
      </label>
      <button type="button" onClick={() => void logOut()}>
        Log out
      </button>
    </header>
  );
}

/** The number of open alerts, and the worst severity. */
function AlertCount() {
  const alerts = useOpenAlerts();
  const found = alerts.data;
  const worst = found && byWeight(found)[0];
  const text = found ? alertsText(found) : alerts.error ? "Alerts unknown" : "Alerts…";
  return (
    <Link href={to("health")} className={`alert-count ${worst?.severity ?? ""}`}>
      {text}
    </Link>
  );
}

function Navigation({ role }: { role: Role }) {
  const [location] = useLocation();
  // The array shows the audit log only to array admins.
  const links = LINKS.filter(([page]) => page !== "audit" || mayAdminister(role));
  return (
    <div className="navigation">
      <nav aria-label="Pages">
        {links.map(([page, label]) => {
          const isHere = location === to(page) || location.startsWith(`${to(page)}/`);
          return (
            <Link key={page} href={to(page)} aria-current={isHere ? "page" : undefined}>
              {label}
            </Link>
          );
        })}
      </nav>
      <nav className="sections" aria-label="Sections of the settings">
        {SECTIONS.map(([section, label]) => {
          const place = to("settings", section);
          return (
            <Link key={section} href={place} aria-current={location === place ? "page" : undefined}>
              {label}
            </Link>
          );
        })}
      </nav>
    </div>
  );
}

function Told() {
  const told = useTold();
  return (
    <div className="told" role="status">
      {told !== "" && (
        <p className="notice done">
          {told}{" "}
          <button type="button" className="quiet" onClick={() => tell("")}>
            Dismiss
          </button>
        </p>
      )}
    </div>
  );
}

function Pages() {
  return (
    <Switch>
      <Route path="/">
        <Redirect to={to("dashboard")} replace />
      </Route>
      <Route path="/dashboard" component={Dashboard} />
      <Route path="/volumes" component={Volumes} />
      <Route path="/volumes/:name">
        {/* The slash after the name of a volume group is not decoded by the router. */}
        {({ name }) => <VolumePage key={name} name={decodeURIComponent(name)} />}
      </Route>
      <Route path="/pods" component={Pods} />
      <Route path="/pods/:name">{({ name }) => <PodPage key={name} name={name} />}</Route>
      <Route path="/snapshots" component={Snapshots} />
      <Route path="/datastores" component={Datastores} />
      <Route path="/hosts" component={Hosts} />
      <Route path="/hosts/:name">{({ name }) => <HostPage key={name} name={name} />}</Route>
      <Route path="/host-groups" component={HostGroups} />
      <Route path="/host-groups/:name">
        {({ name }) => <HostGroupPage key={name} name={name} />}
      </Route>
      <Route path="/protection" component={Protection} />
      <Route path="/protection/:name">{({ name }) => <GroupPage key={name} name={name} />}</Route>
      <Route path="/health" component={Health} />
      <Route path="/audit" component={AuditLog} />
      <Route path="/settings/:section?">
        {({ section }) => <Settings section={section} />}
      </Route>
      <Route>
        <Page title="Page not found">
          <Notice>There is no page at this address.</Notice>
        </Page>
      </Route>
    </Switch>
  );
}
