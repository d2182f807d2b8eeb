"""Real text for the database and the mails: what Debian says of its packages, and documents."""

import gzip
import pathlib


def stanzas(path):
    """The stanzas of a file as apt keeps them, each a dictionary."""
    fields, name = {}, None
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            line = line.rstrip("\n")
            if not line:
                if fields:
                    yield fields
                fields, name = {}, None
            elif line[0] in " \t":
                fields[name] += "\n" + line[1:]
            else:
                name, _, value = line.partition(":")
                fields[name] = value.strip()
    if fields:
        yield fields


def documents(directory):
    """Path and text of every document below a directory, in the order of their paths."""
    root = pathlib.Path(directory)
    suffixes = {".html", ".txt", ".pod", ".xml", ".rst", ".css", ".js", ".gz"}
    for path in sorted(root.rglob("*"), key=str):
        if path.is_symlink() or not path.is_file() or path.suffix not in suffixes:
            continue
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        try:
            yield str(path.relative_to(root)), data.decode("utf-8")
        except UnicodeDecodeError:
            continue


def prose(directory, descriptions):
    """Paragraphs as people write them, of 80 to 900 characters: documents and descriptions."""
    for stanza in stanzas(descriptions):
        for text in stanza.get("Description-en", "").split("\n.\n"):
            if 80 <= len(text) <= 900:
                yield text
    for path, text in documents(directory):
        if path.endswith((".pod", ".txt", ".gz")):
            for paragraph in text.split("\n\n"):
                if 80 <= len(paragraph) <= 900 and paragraph.count(" ") > 10:
                    yield paragraph.strip("\n")
