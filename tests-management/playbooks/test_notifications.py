"""The Ansible collection: receivers of alerts; checks that messages arrive."""

import socket
import threading
import time
from pathlib import Path

#: How long a message may take, on a busy machine.
PATIENCE_S = 60


class MailServer:
    """A minimal SMTP server without TLS, which keeps the mails."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.mails = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            stream, _ = self.listener.accept()
            with stream, stream.makefile("rw", newline="\r\n") as lines:
                self.converse(lines)

    def converse(self, lines):
        def say(text):
            lines.write(text + "\r\n")
            lines.flush()

        say("220 ready")
        mail, in_data = "", False
        for line in lines:
            mail += line
            word = line.strip()
            if in_data:
                if word == ".":
                    in_data = False
                    self.mails.append(mail)
                    say("250 accepted")
            elif word == "DATA":
                in_data = True
                say("354 continue")
            elif word == "QUIT":
                say("221 bye")
                return
            else:
                say("250 ok")


def test_receivers_get_messages(management, play):
    server = MailServer()
    syslog = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    syslog.bind(("127.0.0.1", 0))
    syslog.settimeout(PATIENCE_S)
    port = syslog.getsockname()[1]
    play(Path(__file__).parent / "notifications.yml", smtp_port=server.port, syslog_port=port)
    # Other mails may be alerts that tests in parallel have caused.
    (mail,) = (mail for mail in server.mails if "this is a test of notifications" in mail)
    for part in (
        "MAIL FROM:<array@example.com>",
        "RCPT TO:<anna@example.com>",
        "Subject: LAB [",
        "From the lab",
    ):
        assert part in mail, mail
    lines = []
    end = time.monotonic() + PATIENCE_S
    for parts in (["this is a test of notifications"], ["POST /api/2.", "notified"]):
        while not any(all(part in line for part in parts) for line in lines):
            assert time.monotonic() < end, lines
            lines.append(syslog.recv(4096).decode())
    # The playbook has restored all settings.
    assert management.rest("syslog-servers") == management.rest("alert-watchers") == []
    (relay,) = management.rest("smtp-servers")
    assert relay["relay_host"] == relay["sender_domain"] == ""
