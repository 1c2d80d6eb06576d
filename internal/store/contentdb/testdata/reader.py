# A reader in another process, by another SQLite. It does as each line of its input says, and answers each with a line:
#
#   once    opens the file, asks, closes it
#   begin   opens the file and asks, in a transaction that stays open
#   again   asks in that transaction
#   end     ends it
#   loop    does "once" for ever, and answers after each, until the input ends
#
# An answer is the builds that the records of jobs and products are of, how many there are, and the last build that finished. The reader
# waits for nobody: what would be a wait is the error "database is locked". (In a loop others open and close the file: it waits for them.)
import select
import sqlite3
import sys

FROM = "SELECT min(j.built), max(j.built), min(x.size), max(x.size), count(*) FROM job j JOIN product x USING (asset, platform)"


def connect(timeout):
    db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True, timeout=timeout, isolation_level=None)
    db.execute("BEGIN")
    return db


def ask(db):
    (last,) = db.execute("SELECT max(number) FROM build WHERE seconds IS NOT NULL").fetchone()
    print(*db.execute(FROM).fetchone(), last, flush=True)


def once(timeout):
    db = connect(timeout)
    ask(db)
    db.close()


held = None
for line in sys.stdin:
    try:
        match line.strip():
            case "once":
                once(0)
            case "begin":
                held = connect(0)
                ask(held)
            case "again":
                ask(held)
            case "end":
                held.close()
                print("ended", flush=True)
            case "loop":
                while not select.select([sys.stdin], [], [], 0)[0]:
                    once(60)
    except sqlite3.Error as error:
        print("error:", error, flush=True)
