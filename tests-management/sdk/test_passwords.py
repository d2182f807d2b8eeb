"""Users with passwords: set by the command line, used by the interface."""

import json
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest
from running import BINARY, START_S

PASSWORD = "correct horse"


def log_in(management, user, password):
    """Logs in, and returns the session and its description."""
    body = json.dumps({"user": user, "password": password}).encode()
    request = urllib.request.Request(f"https://{management.address}/v1/session", data=body)
    request.add_header("content-type", "application/json")
    trust = ssl.create_default_context(cafile=management.certificate)
    with urllib.request.urlopen(request, context=trust, timeout=START_S) as answer:
        return answer.headers["x-auth-token"], json.load(answer)


def test_a_password_opens_a_session(management):
    management.verb("user", "create", "carl", "--role", "readonly")
    command = [BINARY, "--pool", str(management.array.pool), "user", "password", "carl"]
    subprocess.run(command, input=PASSWORD.encode() + b"\n", check=True)
    session, who = log_in(management, "carl", PASSWORD)
    assert who == {"user": "carl", "role": "readonly"} and len(session) == 64
    for user, password in (("carl", "wrong horse"), ("nobody", PASSWORD)):
        with pytest.raises(urllib.error.HTTPError) as refused:
            log_in(management, user, password)
        assert refused.value.code == 401
        message = json.load(refused.value)["message"]
        assert message == "The user or the password is wrong."
    # After a kill, the password is still valid; the session is not.
    management.restart()
    assert log_in(management, "carl", PASSWORD)[0] != session
    management.verb("user", "delete", "carl")
