#!/usr/bin/env python3
"""Queries the content database of a Kiln project, with Python only.

    ask.py .kiln/content.db products sprites/hero.png    its products
    ask.py .kiln/content.db users sprites/hero.png       the assets that need it
    ask.py .kiln/content.db failures                     what failed, only root causes

It prints one line for each row, with columns separated by tabs, like ask.c.
"""

import sqlite3
import sys
from pathlib import Path

APPLICATION = 0x4B696C6E  # "Kiln"
VERSION = 10  # of the tables and views that this file uses

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
    # All queries between BEGIN and COMMIT see the same build, even if another one finishes in the meantime.
    db = open_database(path)
    db.execute("BEGIN")
    for row in db.execute(sql, args):
        print(*("" if value is None else value for value in row), sep="\t")
    db.execute("COMMIT")


try:
    main()
except sqlite3.Error as error:
    sys.exit(f"{sys.argv[1]}: {error}")
