"""The Ansible collection: who is told of alerts, with messages that really come."""

import socket
import threading
import time
from pathlib import Path

#: How long a message may take: as long as a busy machine needs.
PATIENCE_S = 60


class MailServer:
    """Takes mail as far as SMTP needs it, in the clear."""

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

        say("220 stand-in")
        told, in_data = "", False
        for line in lines:
            told += line
            word = line.strip()
            if in_data:
                if word == ".":
                    in_data = False
                    self.mails.append(told)
                    say("250 taken")
            elif word == "DATA":
                in_data = True
                say("354 go on")
            elif word == "QUIT":
                say("221 bye")
                return
            else:
                say("250 well")


def test_who_is_told_of_alerts(management, play):
    mail = MailServer()
    syslog = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    syslog.bind(("127.0.0.1", 0))
    syslog.settimeout(PATIENCE_S)
    port = syslog.getsockname()[1]
    play(Path(__file__).parent / "notifications.yml", smtp_port=mail.port, syslog_port=port)
    # Meanwhile other tests may do what opens an alert.
    (told,) = (told for told in mail.mails if "this is a test of notifications" in told)
    for part in (
        "MAIL FROM:<array@example.com>",
        "RCPT TO:<anna@example.com>",
        "Subject: LAB [",
        "From the lab",
    ):
        assert part in told, told
    lines = []
    end = time.monotonic() + PATIENCE_S
    for parts in (["this is a test of notifications"], ["POST /api/2.", "told-of"]):
        while not any(all(part in line for part in parts) for line in lines):
            assert time.monotonic() < end, lines
            lines.append(syslog.recv(4096).decode())
    # All is as it was before.
    assert management.rest("syslog-servers") == management.rest("alert-watchers") == []
    (relay,) = management.rest("smtp-servers")
    assert relay["relay_host"] == relay["sender_domain"] == ""
