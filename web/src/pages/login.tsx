/** The login: exchanges an API token, or a user and a password, for a session, and forgets it. */
import { type SubmitEvent, useEffect, useState } from "react";

import { get, logIn, logInByPassword, own, sessions } from "../lib/api";
import { client } from "../lib/query";
import type { Version } from "../lib/types";
import { TextField } from "../parts/fields";
import { Notice } from "../parts/notice";
import { Reach } from "../parts/reach";
import { Tabs } from "../parts/tabs";

const WAYS = [
  ["token", "With a token"],
  ["password", "With a password"],
] as const;

/** The text that the array shows to everybody before a login. */
function Banner() {
  const [banner, setBanner] = useState("");
  // Not by a query: the login forgets all of them. Without an answer, the page says why elsewhere.
  useEffect(() => {
    get<Version>(own("version")).then(
      (version) => setBanner(version.banner),
      () => undefined,
    );
  }, []);
  return banner === "" ? null : <p className="banner">{banner}</p>;
}

export function Login() {
  const [way, setWay] = useState<"token" | "password">("token");
  const [token, setToken] = useState("");
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState("");
  useEffect(() => {
    document.title = "Log in – Holdfast";
    client.clear();
  }, []);
  const byToken = way === "token";
  const isReady = byToken ? token.trim() !== "" : user.trim() !== "" && password !== "";
  const enter = async () => {
    setBusy(true);
    try {
      await (byToken ? logIn(token.trim()) : logInByPassword(user.trim(), password));
    } catch (error) {
      setRefused(error instanceof Error ? error.message : "The array does not answer.");
      setBusy(false);
    }
  };
  const onSubmit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (isReady && !busy) void enter();
  };
  const choose = (next: "token" | "password") => {
    setWay(next);
    setRefused("");
  };
  return (
    <main className="login">
      <Reach />
      <form className="card" onSubmit={onSubmit} noValidate>
        <h1>Holdfast</h1>
        <Banner />
        {sessions.farewell() !== "" && <Notice>{sessions.farewell()}</Notice>}
        <Tabs label="How to log in" tabs={WAYS} chosen={way} choose={choose} />
        {byToken ? (
          <TextField key="token" label="API token" value={token} set={setToken} secret first />
        ) : (
          <>
            <TextField
              key="user"
              label="User"
              value={user}
              set={setUser}
              complete="username"
              first
            />
            <TextField
              key="password"
              label="Password"
              value={password}
              set={setPassword}
              complete="current-password"
              secret
            />
          </>
        )}
        {refused !== "" && <Notice kind="error">{refused}</Notice>}
        <button type="submit" className="primary" disabled={!isReady || busy}>
          Log in
        </button>
        <p className="muted">
          {byToken ? "Create an API token" : "Set a password"} on the machine that runs the array:
          <code>{byToken ? "holdfast token create NAME" : "holdfast user password NAME"}</code>
        </p>
      </form>
    </main>
  );
}
