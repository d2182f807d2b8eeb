#!/usr/bin/env python3
"""Fills a SQLite database with text: Debian's packages and their relations, and documents.

    database.py DIRECTORY OUTPUT [--small]

DIRECTORY has packages and descriptions (as apt keeps them) and texts (unpacked documents). Rows
come in the order of their keys and in transactions of a thousand, as an application adds them.
"""

import sqlite3
import sys

import texts

SCHEMA = """
PRAGMA page_size = 4096;
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE package (id INTEGER PRIMARY KEY, name TEXT NOT NULL, version TEXT NOT NULL,
    section TEXT, maintainer TEXT, homepage TEXT, tags TEXT, bytes INTEGER, sha256 TEXT,
    description TEXT);
CREATE TABLE relation (package INTEGER NOT NULL, kind TEXT NOT NULL, needs TEXT NOT NULL);
CREATE TABLE document (id INTEGER PRIMARY KEY, path TEXT NOT NULL UNIQUE, body TEXT NOT NULL);
CREATE INDEX package_name ON package (name);
CREATE INDEX package_maintainer ON package (maintainer, section);
CREATE INDEX relation_package ON relation (package);
CREATE INDEX relation_needs ON relation (needs, kind);
CREATE VIRTUAL TABLE words USING fts5 (description, content='');
"""


def add_package(database, key, stanza, description):
    database.execute(
        "INSERT INTO package VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (key, stanza["Package"], stanza["Version"], stanza.get("Section"),
         stanza.get("Maintainer"), stanza.get("Homepage"), stanza.get("Tag"),
         int(stanza["Size"]), stanza["SHA256"], description))
    for kind in ("Depends", "Recommends", "Suggests", "Provides"):
        for needs in filter(None, stanza.get(kind, "").split(", ")):
            database.execute("INSERT INTO relation VALUES (?, ?, ?)", (key, kind, needs))
    database.execute("INSERT INTO words (rowid, description) VALUES (?, ?)", (key, description))


def main():
    directory, output = sys.argv[1:3]
    share = 8 if "--small" in sys.argv else 1
    database = sqlite3.connect(output, isolation_level=None)
    database.executescript(SCHEMA)
    descriptions = {stanza["Description-md5"]: stanza["Description-en"]
                    for stanza in texts.stanzas(f"{directory}/descriptions")
                    if "Description-en" in stanza}
    database.execute("BEGIN")
    for key, stanza in enumerate(texts.stanzas(f"{directory}/packages"), 1):
        if key % share == 0:
            long = descriptions.get(stanza.get("Description-md5"), stanza.get("Description", ""))
            add_package(database, key, stanza, long)
        if key % 1000 == 0:
            database.execute("COMMIT")
            database.execute("BEGIN")
    for key, (path, body) in enumerate(texts.documents(f"{directory}/texts"), 1):
        database.execute("INSERT INTO document VALUES (?, ?, ?)", (key, path, body))
        if key % 1000 == 0:
            database.execute("COMMIT")
            database.execute("BEGIN")
    database.execute("COMMIT")
    database.close()


main()
