"""The Ansible collection: a directory service, with slapd, and logins of its users."""

import contextlib
import json
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

#: How long a start may take, on a busy machine.
PATIENCE_S = 60
#: How long a login may take until the array gives up: its limit, plus delays of a busy machine.
LOGIN_S = 5 + 10
HERE = Path(__file__).parent

CONFIGURATION = """
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
pidfile {place}/slapd.pid
TLSCertificateFile {place}/server.pem
TLSCertificateKeyFile {place}/server.key
# No anonymous access, and no passwords without TLS.
disallow bind_anon
security simple_bind=128
database mdb
suffix dc=lab,dc=example
rootdn cn=root,dc=lab,dc=example
directory {place}/data
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact=cn=array,dc=lab,dc=example read by * none
"""

ENTRIES = """
dn: dc=lab,dc=example
objectClass: domain
dc: lab

dn: cn=array,dc=lab,dc=example
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: array
userPassword: horse

dn: ou=people,dc=lab,dc=example
objectClass: organizationalUnit
ou: people
"""
PERSON = """
dn: uid={name},ou=people,dc=lab,dc=example
objectClass: inetOrgPerson
uid: {name}
cn: {name}
sn: {name}
userPassword: {name} battery
"""
UNITS = """
dn: OU=SANManagers,dc=lab,dc=example
objectClass: organizationalUnit
ou: SANManagers

dn: OU=PureGroups,OU=SANManagers,dc=lab,dc=example
objectClass: organizationalUnit
ou: PureGroups
"""
GROUP = """
dn: cn={group},OU=PureGroups,OU=SANManagers,dc=lab,dc=example
objectClass: groupOfNames
cn: {group}
member: uid={name},ou=people,dc=lab,dc=example
"""


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def authority(place, name):
    """Creates a certificate authority, and returns the path of its certificate."""
    certificate, key = place / f"{name}.pem", place / f"{name}.key"
    openssl(
        *["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}"],
        *["-keyout", str(key), "-out", str(certificate)],
    )
    return certificate


class Slapd:
    """A directory of three people, two of them in groups, on one port with and one without TLS."""

    def __init__(self, program, place, ports):
        self.ca, self.other_ca = authority(place, "ca"), authority(place, "other")
        key, request, names = place / "server.key", place / "server.csr", place / "names"
        names.write_text("subjectAltName=IP:127.0.0.1\n")
        openssl(
            *["req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=slapd"],
            *["-keyout", str(key), "-out", str(request)],
        )
        openssl(
            *["x509", "-req", "-in", str(request), "-CA", str(self.ca), "-days", "2"],
            *["-CAkey", str(self.ca.with_suffix(".key")), "-CAcreateserial"],
            *["-extfile", str(names), "-out", str(place / "server.pem")],
        )
        self.port, self.tls_port = ports
        self.program, self.settings = program, place / "slapd.conf"
        self.settings.write_text(CONFIGURATION.format(place=place))
        (place / "data").mkdir()
        people = "".join(PERSON.format(name=name) for name in ("anna", "otto", "nora"))
        groups = [("array_admins", "anna"), ("readonlys", "otto")]
        groups = "".join(GROUP.format(group=group, name=name) for group, name in groups)
        entries = place / "entries.ldif"
        entries.write_text(ENTRIES + people + UNITS + groups)
        adding = ["slapadd", "-f", str(self.settings), "-l", str(entries)]
        subprocess.run(adding, check=True, capture_output=True)
        self.start()

    def start(self):
        uris = f"ldap://127.0.0.1:{self.port}/ ldaps://127.0.0.1:{self.tls_port}/"
        self.process = subprocess.Popen(
            [self.program, "-d", "0", "-f", str(self.settings), "-h", uris]
        )
        end = time.monotonic() + PATIENCE_S
        for port in (self.port, self.tls_port):
            while socket.socket().connect_ex(("127.0.0.1", port)) != 0:
                is_good = self.process.poll() is None and time.monotonic() < end
                assert is_good, "slapd does not start"
                time.sleep(0.1)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE_S)


@pytest.fixture
def slapd(tmp_path, server_program):
    program = server_program("slapd", "slapd")
    with contextlib.ExitStack() as free:
        listeners = [free.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        ports = [listener.getsockname()[1] for listener in listeners]
    server = Slapd(program, tmp_path, ports)
    yield server
    server.stop()


class Page:
    """A client that logs in with a password, like the web page."""

    def __init__(self, management):
        self.management = management
        self.trust = ssl.create_default_context(cafile=management.certificate)

    def ask(self, method, path, body=None, **headers):
        request = urllib.request.Request(
            f"https://{self.management.address}{path}", method=method
        )
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        with urllib.request.urlopen(request, context=self.trust, timeout=PATIENCE_S) as answer:
            return answer.headers, json.load(answer)

    def log_in(self, user, password):
        """Logs in, and returns the user, the role and the session, or None if refused."""
        try:
            body = {"user": user, "password": password}
            headers, session = self.ask("POST", "/v1/session", body)
        except urllib.error.HTTPError as error:
            assert error.code == 401, error
            # Waits, so that the rate limit of logins does not affect later logins.
            time.sleep(5)
            return None
        return session["user"], session["role"], headers["x-auth-token"]

    def change(self, **change):
        token = f"Bearer {self.management.token}"
        return self.ask("PATCH", "/v1/directory", change, Authorization=token)[1]


def test_users_of_a_directory_service_log_in(management, play, slapd):
    page = Page(management)
    assert page.log_in("otto", "otto battery") is None
    play(HERE / "directory.yml", ldaps_port=slapd.tls_port, ca=slapd.ca)
    user, role, session = page.log_in("otto", "otto battery")
    assert (user, role) == ("otto", "readonly")
    user, role, admin = page.log_in("ANNA", "anna battery")
    assert (user, role) == ("anna", "array_admin")
    # Its changes are in the audit log under its name.
    volume = {"name": "of-anna", "size_bytes": 1 << 30}
    page.ask("POST", "/v1/volumes", volume, x_auth_token=admin)
    (entry,) = [
        entry
        for entry in management.rest("audits", sort="time-", limit=20)
        if entry["user"] == "anna"
    ][:1]
    assert "of-anna" in json.dumps(entry), entry
    management.verb("volume", "destroy", "of-anna")
    management.verb("volume", "eradicate", "of-anna")
    for user, password in (
        ("otto", "anna battery"),
        ("nora", "nora battery"),
        ("nobody", "otto battery"),
        ("otto)(uid=*", "otto battery"),
        ("*", "otto battery"),
        ("otto", ""),
    ):
        assert page.log_in(user, password) is None, user
    # Because a certificate is set, ldap:// uses StartTLS.
    plain = f"ldap://127.0.0.1:{slapd.port}"
    page.change(uris=[plain], bind_password="horse")
    assert page.log_in("otto", "otto battery")[1] == "readonly"
    # Without a certificate there is no StartTLS, and the server refuses the password.
    page.change(ca_certificate="")
    assert page.log_in("otto", "otto battery") is None
    (test,) = management.rest("directory-services/test")
    assert not test["success"] and "LDAP result 13" in test["result_details"], test
    # A server whose certificate is of another authority gets no password.
    for uri in (plain, f"ldaps://127.0.0.1:{slapd.tls_port}"):
        change = {"uris": [uri], "bind_password": "horse"}
        page.change(**change, ca_certificate=slapd.other_ca.read_text())
        assert page.log_in("otto", "otto battery") is None
        (test,) = management.rest("directory-services/test")
        assert not test["success"] and "invalid peer certificate" in test["result_details"], test
    page.change(ca_certificate=slapd.ca.read_text())
    user, role, session = page.log_in("otto", "otto battery")
    # A login at a server that does not answer ends in time.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        uri = f"ldaps://127.0.0.1:{silent.getsockname()[1]}"
        page.change(uris=[uri], bind_password="horse")
        began = time.monotonic()
        assert page.log_in("otto", "otto battery") is None
        assert time.monotonic() - began < LOGIN_S + 5
        # The next server in the list is used instead.
        good = f"ldaps://127.0.0.1:{slapd.tls_port}"
        page.change(uris=[uri, good], bind_password="horse")
        assert page.log_in("otto", "otto battery")[1] == "readonly"
    # While the directory is down, users of the array log in.
    slapd.stop()
    assert page.log_in("otto", "otto battery") is None
    admin = {"Authorization": f"Bearer {management.token}"}
    local = {"role": {"name": "readonly"}, "password": "correct horse"}
    page.ask("POST", "/api/2.26/admins?names=local", local, **admin)
    assert page.log_in("local", "correct horse")[1] == "readonly"
    page.ask("DELETE", "/api/2.26/admins?names=local", **admin)
    slapd.start()
    user, role, session = page.log_in("otto", "otto battery")
    page.ask("GET", "/v1/session", x_auth_token=session)
    play(HERE / "directory_gone.yml")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        page.ask("GET", "/v1/session", x_auth_token=session)
    assert page.log_in("otto", "otto battery") is None
    (service,) = management.rest("directory-services")
    assert service["uris"] == [] and not service["enabled"]
