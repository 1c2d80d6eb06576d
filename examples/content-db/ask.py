#!/usr/bin/env python3
"""Asks the content database of a Kiln project, with nothing but Python.

    ask.py .kiln/content.db products sprites/hero.png    what was made of it
    ask.py .kiln/content.db users sprites/hero.png       which assets need it
    ask.py .kiln/content.db failures                     what failed, root causes only

One line a row, columns separated by tabs, as ask.c beside it writes them.
"""

import sqlite3
import sys
from pathlib import Path

APPLICATION = 0x4B696C6E  # "Kiln"
VERSION = 9  # of the tables and views that are used here

QUESTIONS = {
    "products": "SELECT platform, type, file, size FROM products WHERE asset = ? ORDER BY platform, file",
    "users": "SELECT asset, kind, required FROM asset_references WHERE needs = ? ORDER BY asset, kind",
    "failures": "SELECT asset, platform, code, text FROM diagnostics WHERE severity = 'error' AND cause IS NULL ORDER BY asset, platform",
}


def open_database(path):
    """Opens the file for reading. A build that is under way is not waited for; what is waited for, up to two
    seconds, is another program that has just opened or closed the file."""
    db = sqlite3.connect(Path(path).absolute().as_uri() + "?mode=ro", uri=True, timeout=2)
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if (application, version) != (APPLICATION, VERSION):
        sys.exit(f"{path} is no content database of version {VERSION}")
    return db


def main():
    if len(sys.argv) < 3 or sys.argv[2] not in QUESTIONS:
        sys.exit(__doc__)
    path, question, *args = sys.argv[1:]
    sql = QUESTIONS[question]
    if len(args) != sql.count("?"):
        sys.exit(__doc__)
    # All that is asked between BEGIN and COMMIT is asked of one build, even if another one finishes meanwhile.
    db = open_database(path)
    db.execute("BEGIN")
    for row in db.execute(sql, args):
        print(*("" if value is None else value for value in row), sep="\t")
    db.execute("COMMIT")


try:
    main()
except sqlite3.Error as error:
    sys.exit(f"{sys.argv[1]}: {error}")
