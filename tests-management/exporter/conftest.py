"""A session as the published exporter for FlashArrays keeps one: no SDK, headers and JSON only."""

import json
import ssl
import urllib.request

import pytest


class Session:
    """Asks for the newest version, logs in, and sends the token of the session from then on."""

    def __init__(self, address, token):
        self.base = f"https://{address}/api"
        self.context = ssl.create_default_context()
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE
        self.headers = {"Content-Type": "application/json", "Accept": "application/json"}
        versions = self.get("api_version")["version"]
        self.base += f"/{versions[-1]}"
        with self.send("login", "POST", {"api-token": token}) as answer:
            self.headers["x-auth-token"] = answer.headers["x-auth-token"]

    def send(self, path, method="GET", headers=None):
        """An answer; what is refused is raised."""
        headers = {**self.headers, **(headers or {})}
        request = urllib.request.Request(f"{self.base}/{path}", method=method, headers=headers)
        return urllib.request.urlopen(request, context=self.context)

    def get(self, path):
        """The body of an answer."""
        with self.send(path) as answer:
            assert answer.status == 200
            return json.load(answer)

    def items(self, path):
        """The items of a list, whose page has the types that a strict client reads."""
        page = self.get(path)
        assert isinstance(page["more_items_remaining"], bool)
        assert page["continuation_token"] is None or isinstance(page["continuation_token"], str)
        return page["items"]


@pytest.fixture(scope="session")
def exporter(management):
    """A session with the token of a user who may only look."""
    management.verb("user", "create", "exporter", "--role", "readonly")
    made = management.verb("token", "create", "scrape", "--user", "exporter")
    return Session(management.address, json.loads(made)["token"])
