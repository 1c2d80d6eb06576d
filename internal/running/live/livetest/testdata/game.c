/*
 * A game for tests: game ADDRESS NAME... keeps the resources of these names. livetest.go has what it writes, and what its input may say.
 * It ends with its input.
 */
#define _POSIX_C_SOURCE 200112L /* so that names are looked up */
#define KILN_IMPLEMENTATION
#define KILN_LIVE_IMPLEMENTATION
#include "kiln.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MOST 64

/* A thing is a loaded resource. It uses what it was made of until it is unloaded. */
typedef struct thing {
    char name[64];
    char *content;
    char text[4096];
    struct thing *needs[MOST];
} thing;

static thing *things[1024];
static int count;

static char failing[MOST][512]; /* "asset: messages" */
static int failures;

static thing *value_of(kiln_live *live, uint32_t id) { return (thing *)kiln_live_value(live, kiln_live_find(live, id)); }

static int load(void *user, kiln_live *live, const kiln_live_resource *r, const void *data, size_t size, void **value) {
    thing *t = (thing *)*value, made;
    size_t n;
    uint32_t i;
    (void)user;
    memset(&made, 0, sizeof made);
    made.content = t ? t->content : NULL;
    if (data) {
        made.content = (char *)malloc(size + 1);
        memcpy(made.content, data, size);
        made.content[size] = 0;
        if (strstr(made.content, "bad")) {
            free(made.content);
            return 1;
        }
    }
    snprintf(made.name, sizeof made.name, "%s", r->name);
    snprintf(made.text, sizeof made.text, "%.1000s", made.content);
    for (i = 0; i < r->required + r->optional; i++) {
        thing *need = value_of(live, r->needs[i]);
        if (i < MOST) made.needs[i] = need;
        n = strlen(made.text);
        snprintf(made.text + n, sizeof made.text - n, "%s%.1000s", i ? "," : "(", need ? need->text : "-");
    }
    n = strlen(made.text);
    if (i) snprintf(made.text + n, sizeof made.text - n, ")");
    if (!t) t = things[count++] = (thing *)malloc(sizeof *t);
    else if (data) free(t->content);
    *t = made;
    *value = t;
    return 0;
}

static int by_name(const void *a, const void *b) { return strcmp((*(thing *const *)a)->name, (*(thing *const *)b)->name); }

static void tell_loaded(void) {
    int i;
    qsort(things, (size_t)count, sizeof *things, by_name);
    printf("!loaded");
    for (i = 0; i < count; i++) printf(" %s", things[i]->name);
    printf("\n");
    fflush(stdout);
}

static void unload(void *user, kiln_live *live, const kiln_live_resource *r, void *value) {
    thing *t = (thing *)value;
    int i, k;
    (void)user, (void)live;
    for (i = 0; i < count; i++) {
        for (k = 0; k < MOST; k++) {
            if (things[i] != t && things[i]->needs[k] == t) printf("!wrong %s was unloaded, which %s uses\n", r->name, things[i]->name);
        }
    }
    for (i = 0; things[i] != t; i++) {}
    things[i] = things[--count];
    free(t->content);
    free(t);
}

static int by_text(const void *a, const void *b) { return strcmp((const char *)a, (const char *)b); }

static void tell_failing(void) {
    int i;
    qsort(failing, (size_t)failures, sizeof *failing, by_text);
    printf("!failing");
    for (i = 0; i < failures; i++) printf(" %s;", failing[i]);
    printf("\n");
    fflush(stdout);
}

static void notify(void *user, kiln_live *live, const kiln_live_event *e) {
    size_t n = strlen(e->asset), k;
    int i;
    (void)user, (void)live;
    fprintf(stderr, "%s %s%s\n", e->type, e->asset, e->reason);
    if (!strcmp(e->type, "connected") && !e->resumed) failures = 0;
    else if (!strcmp(e->type, "failed") || !strcmp(e->type, "mended")) {
        for (i = 0; i < failures; i++) {
            if (strncmp(failing[i], e->asset, n) == 0 && failing[i][n] == ':') memmove(failing[i], failing[--failures], sizeof *failing);
        }
        if (e->type[0] == 'f' && failures < MOST) {
            char *to = failing[failures++];
            snprintf(to, sizeof *failing, "%s:", e->asset);
            for (k = 0; k < e->count; k++) snprintf(to + strlen(to), sizeof *failing - strlen(to), " %s %s", e->messages[k].code, e->messages[k].text);
        }
    } else return;
    tell_failing();
}

static double processor_time(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000 + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1000;
}

static double clock_time(void) {
    struct timeval t;
    gettimeofday(&t, NULL);
    return (double)t.tv_sec * 1000 + (double)t.tv_usec / 1000;
}

/* idle waits for so many milliseconds, and tells how much of the processor that took. */
static void idle(kiln_live *live, double milliseconds) {
    double begin = clock_time(), before = processor_time();
    int waits = 0;
    for (;; waits++) {
        double left = begin + milliseconds - clock_time();
        if (left <= 0) break;
        kiln_live_wait(live, (int)left + 1);
        kiln_live_poll(live);
    }
    printf("!idle %.0f %.0f %d\n", clock_time() - begin, processor_time() - before, waits);
    fflush(stdout);
}

static void told(kiln_live *live, const char *line) {
    if (strncmp(line, "idle ", 5) == 0) idle(live, atof(line + 5));
    if (strncmp(line, "release ", 8) == 0) kiln_live_unuse_name(live, line + 8);
}

/* ended takes what the input says, and tells whether it has ended. */
static int ended(kiln_live *live) {
    static char line[256];
    static size_t n;
    struct pollfd p;
    p.fd = 0, p.events = POLLIN, p.revents = 0;
    while (poll(&p, 1, 0) > 0) {
        if (read(0, line + n, 1) <= 0) return 1;
        if (line[n] != '\n') {
            n += n + 2 < sizeof line;
            continue;
        }
        line[n] = 0;
        n = 0;
        told(live, line);
    }
    return 0;
}

int main(int argc, char **argv) {
    kiln_live_options o;
    kiln_live *live;
    int i;
    memset(&o, 0, sizeof o);
    o.address = argv[1];
    o.game = "c";
    o.load = load;
    o.unload = unload;
    o.notify = notify;
    if (getenv("KILN_TEST_PATIENCE")) o.patience = atoi(getenv("KILN_TEST_PATIENCE"));
    live = kiln_live_open(&o);
    if (!live) return 1;
    for (i = 2; i < argc; i++) kiln_live_use_name(live, argv[i]);
    while (!ended(live)) {
        int had = count, done;
        kiln_live_wait(live, 20);
        done = kiln_live_poll(live);
        if (done || count != had) tell_loaded();
        if (!done) continue;
        for (i = 2; i < argc; i++) {
            const thing *t = (const thing *)kiln_live_value(live, kiln_live_find_name(live, argv[i]));
            printf("%s%s=%s", i > 2 ? " " : "", argv[i], t ? t->text : "?");
        }
        printf("\n");
        fflush(stdout);
    }
    kiln_live_close(live);
    return 0;
}
