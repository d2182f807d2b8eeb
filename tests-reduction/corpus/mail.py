#!/usr/bin/env python3
"""Makes maildirs: threads that quote what they answer, in real prose, with attachments.

    mail.py DIRECTORY OUTPUT [--small]

DIRECTORY has texts, descriptions and media (unpacked packages). A message is a file, as Maildir
keeps it, and every recipient has one of his own, with his own Delivered-To and Received in front:
what copies have in common rarely stands at the same place of a 4 KiB block.
"""

import base64
import os
import random
import sys
import textwrap
import time

import texts

EPOCH = 1750000000
PEOPLE = 40
TOPICS = ("release", "build failure", "meeting notes", "review", "disk full", "upgrade", "draft")


class Mailboxes:
    """Where messages go. Names and times are made of a counter, never of the clock."""

    def __init__(self, root):
        self.root, self.count, self.written = root, 0, 0

    def deliver(self, person, headers, body):
        self.count += 1
        folder = f"{self.root}/{person}/Maildir/cur"
        os.makedirs(folder, exist_ok=True)
        at = EPOCH + self.count * 61
        received = (f"Delivered-To: {person}@example.com\nReceived: from mx.example.com by "
                    f"store.example.com with LMTP id {self.count:08x}\n\tfor <{person}@example.com"
                    f">; {date(at)}\n")
        data = (received + headers + body).encode()
        path = f"{folder}/{at}.M{self.count}P1.store,S={len(data)}:2,S"
        with open(path, "wb") as file:
            file.write(data)
        os.utime(path, (at, at))
        self.written += len(data)


def date(at):
    return time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(at))


def attachments(directory):
    """Files of 10 to 700 KB, in the order of their paths."""
    found = []
    for folder, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = f"{folder}/{name}"
            if not os.path.islink(path) and 10_000 <= os.path.getsize(path) <= 700_000:
                found.append(path)
    return found


def compose(choose, paragraphs, parent, author):
    """The text of a message: an answer quotes most of what it answers, and adds its own."""
    lines = []
    if parent:
        lines.append(f"{parent['author']} wrote:")
        lines += ["> " + line for line in parent["lines"][:choose.randint(10, 80)]]
        lines.append("")
    for _ in range(choose.randint(1, 5)):
        lines += textwrap.wrap(paragraphs[choose.randrange(len(paragraphs))], 72) + [""]
    return lines + ["-- ", f"{author.title()}, Example Ltd, +1 555 01{len(author):02}"]


def envelope(message, number, boundary):
    parent = message["parent"]
    answers = f"In-Reply-To: <{parent['id']}>\n" if parent else ""
    kind = (f'multipart/mixed; boundary="{boundary}"' if boundary
            else "text/plain; charset=utf-8")
    return (f"From: {message['author'].title()} <{message['author']}@example.com>\n"
            f"To: {', '.join(f'{person}@example.com' for person in message['to'])}\n"
            f"Subject: {'Re: ' if parent else ''}{message['subject']}\n"
            f"Date: {date(EPOCH + number * 60)}\nMessage-ID: <{message['id']}>\n{answers}"
            f"MIME-Version: 1.0\nContent-Type: {kind}\n\n")


def attach(text, path, boundary):
    with open(path, "rb") as file:
        encoded = base64.encodebytes(file.read()).decode()
    return (f"--{boundary}\nContent-Type: text/plain; charset=utf-8\n\n{text}\n--{boundary}\n"
            f"Content-Type: application/octet-stream; name=\"{os.path.basename(path)}\"\n"
            f"Content-Transfer-Encoding: base64\n\n{encoded}--{boundary}--\n")


def main():
    directory, output = sys.argv[1:3]
    wanted = (24 if "--small" in sys.argv else 256) << 20
    choose = random.Random(20260101)
    paragraphs = list(texts.prose(f"{directory}/texts", f"{directory}/descriptions"))
    files = attachments(f"{directory}/media") + attachments(f"{directory}/texts")
    people = [f"user{index:02}" for index in range(PEOPLE)]
    boxes, number = Mailboxes(output), 0
    while boxes.written < wanted:
        subject = f"{choose.choice(TOPICS)} {choose.randrange(1000)}"
        members, parent = choose.sample(people, choose.randint(2, 5)), None
        for _ in range(choose.randint(1, 9)):
            number += 1
            author = choose.choice(members)
            message = {"author": author, "to": [m for m in members if m != author],
                       "subject": subject, "id": f"{number:x}.{author}@example.com",
                       "parent": parent, "lines": compose(choose, paragraphs, parent, author)}
            path = choose.choice(files) if choose.random() < 0.05 else None
            boundary = f"=_{number:016x}" if path else None
            body = "\n".join(message["lines"]) + "\n"
            body = attach(body, path, boundary) if path else body
            for person in members:
                boxes.deliver(person, envelope(message, number, boundary), body)
            parent = message
    for folder, _, _ in os.walk(output):
        os.utime(folder, (EPOCH, EPOCH))


main()
