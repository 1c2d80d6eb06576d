/* Queries the content database of a Kiln project, with SQLite's own library.
 *
 *     cc -o ask ask.c -lsqlite3
 *     ./ask .kiln/content.db products sprites/hero.png    its products
 *     ./ask .kiln/content.db users sprites/hero.png       the assets that need it
 *     ./ask .kiln/content.db failures                     what failed, only root causes
 *
 * It prints one line for each row, with columns separated by tabs, like ask.py. */

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

enum { APPLICATION = 0x4b696c6e /* "Kiln" */, VERSION = 10 /* of the tables and views that this file uses */ };

static const struct question {
	const char *name, *sql;
	int args;
} questions[] = {
	{"products", "SELECT platform, type, file, size FROM products WHERE asset = ? ORDER BY platform, file", 1},
	{"users", "SELECT asset, kind, required FROM asset_references WHERE needs = ? ORDER BY asset, kind", 1},
	{"failures", "SELECT asset, platform, code, text FROM diagnostics WHERE severity = 'error' AND cause IS NULL ORDER BY asset, platform", 0},
};

/* number returns the result of a statement that returns one number, or -1. */
static sqlite3_int64 number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st = NULL;
	sqlite3_int64 n = -1;
	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
		n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return n;
}

/* ask prints the rows of one query. It returns 0, or SQLite's error. */
static int ask(sqlite3 *db, const struct question *q, const char *arg)
{
	sqlite3_stmt *st = NULL;
	int err = sqlite3_prepare_v2(db, q->sql, -1, &st, NULL);
	if (err == SQLITE_OK && q->args > 0)
		err = sqlite3_bind_text(st, 1, arg, -1, SQLITE_STATIC);
	if (err != SQLITE_OK)
		return err;
	while ((err = sqlite3_step(st)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(st); i++) {
			const unsigned char *text = sqlite3_column_text(st, i);
			printf("%s%s", i ? "\t" : "", text ? (const char *)text : "");
		}
		putchar('\n');
	}
	sqlite3_finalize(st);
	return err == SQLITE_DONE ? SQLITE_OK : err;
}

int main(int argc, char **argv)
{
	const struct question *q = NULL;
	for (size_t i = 0; argc > 2 && i < sizeof questions / sizeof *questions; i++)
		if (strcmp(argv[2], questions[i].name) == 0 && argc == 3 + questions[i].args)
			q = &questions[i];
	if (q == NULL) {
		fprintf(stderr, "usage: ask DATABASE products ASSET | users ASSET | failures\n");
		return 2;
	}
	sqlite3 *db = NULL;
	int err = sqlite3_open_v2(argv[1], &db, SQLITE_OPEN_READONLY, NULL);
	/* A running build does not block readers. The timeout is for another program that has just opened or closed the file. */
	if (err == SQLITE_OK)
		err = sqlite3_busy_timeout(db, 2000);
	if (err == SQLITE_OK && (number(db, "PRAGMA application_id") != APPLICATION || number(db, "PRAGMA user_version") != VERSION)) {
		fprintf(stderr, "%s is no content database of version %d\n", argv[1], VERSION);
		sqlite3_close(db);
		return 1;
	}
	/* All queries between BEGIN and COMMIT see the same build, even if another one finishes in the meantime. */
	if (err == SQLITE_OK)
		err = sqlite3_exec(db, "BEGIN", NULL, NULL, NULL);
	if (err == SQLITE_OK)
		err = ask(db, q, argc > 3 ? argv[3] : NULL);
	if (err == SQLITE_OK)
		err = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	if (err != SQLITE_OK)
		fprintf(stderr, "%s: %s\n", argv[1], db ? sqlite3_errmsg(db) : sqlite3_errstr(err));
	sqlite3_close(db);
	return err != SQLITE_OK;
}
