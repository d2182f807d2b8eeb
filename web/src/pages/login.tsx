/** The way in: an API token, which is turned into a session and forgotten. */
import { type SubmitEvent, useEffect, useState } from "react";

import { logIn, sessions } from "../lib/api";
import { client } from "../lib/query";
import { TextField } from "../parts/fields";
import { Notice } from "../parts/notice";
import { Reach } from "../parts/reach";

export function Login() {
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState("");
  useEffect(() => {
    document.title = "Log in – Holdfast";
    client.clear();
  }, []);
  const enter = async () => {
    setBusy(true);
    try {
      await logIn(token.trim());
    } catch (error) {
      setRefused(error instanceof Error ? error.message : "The array does not answer.");
      setBusy(false);
    }
  };
  const onSubmit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (token.trim() !== "" && !busy) void enter();
  };
  return (
    <main className="login">
      <Reach />
      <form className="card" onSubmit={onSubmit} noValidate>
        <h1>Holdfast</h1>
        {sessions.farewell() !== "" && <Notice>{sessions.farewell()}</Notice>}
        <TextField label="API token" value={token} set={setToken} secret first />
        {refused !== "" && <Notice kind="error">{refused}</Notice>}
        <button type="submit" className="primary" disabled={token.trim() === "" || busy}>
          Log in
        </button>
        <p className="muted">
          An API token is made on the machine that runs the array:
          <code>holdfast token create NAME</code>
        </p>
      </form>
    </main>
  );
}
