"""A session like that of the published exporter for FlashArrays: headers and JSON, no SDK."""

import json
import ssl
import urllib.request

import pytest


class Session:
    """Negotiates the newest version, logs in, and sends the session's token with each request."""

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
        """Sends a request, and returns the answer. A refusal raises an error."""
        headers = {**self.headers, **(headers or {})}
        request = urllib.request.Request(f"{self.base}/{path}", method=method, headers=headers)
        return urllib.request.urlopen(request, context=self.context)

    def get(self, path):
        """Returns the body of an answer."""
        with self.send(path) as answer:
            assert answer.status == 200
            return json.load(answer)

    def items(self, path):
        """Returns the items of a list; checks the types of the page for strict clients."""
        page = self.get(path)
        assert isinstance(page["more_items_remaining"], bool)
        assert page["continuation_token"] is None or isinstance(page["continuation_token"], str)
        return page["items"]


@pytest.fixture(scope="session")
def exporter(management):
    """A session of a read-only user."""
    management.verb("user", "create", "exporter", "--role", "readonly")
    made = management.verb("token", "create", "scrape", "--user", "exporter")
    return Session(management.address, json.loads(made)["token"])
