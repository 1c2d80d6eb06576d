/* A game for tests: game ADDRESS NAME... keeps the resources of these names, and writes a line with all of them whenever a poll did something. It ends with its input. */
#define _POSIX_C_SOURCE 200112L /* so that names are looked up */
#define KILN_IMPLEMENTATION
#define KILN_LIVE_IMPLEMENTATION
#include "kiln.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct thing {
    char *content;
    char text[4096];
} thing;

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
    snprintf(made.text, sizeof made.text, "%.1000s", made.content);
    for (i = 0; i < r->required + r->optional; i++) {
        const thing *need = (const thing *)kiln_live_value(live, kiln_live_find(live, r->needs[i]));
        n = strlen(made.text);
        snprintf(made.text + n, sizeof made.text - n, "%s%.1000s", i ? "," : "(", need ? need->text : "-");
    }
    n = strlen(made.text);
    if (i) snprintf(made.text + n, sizeof made.text - n, ")");
    if (!t) t = (thing *)malloc(sizeof *t);
    else if (data) free(t->content);
    *t = made;
    *value = t;
    return 0;
}

static void unload(void *user, kiln_live *live, const kiln_live_resource *r, void *value) {
    thing *t = (thing *)value;
    (void)user, (void)live, (void)r;
    free(t->content);
    free(t);
}

static void notify(void *user, kiln_live *live, const char *event, const char *text) {
    (void)user, (void)live;
    fprintf(stderr, "%s %s\n", event, text);
}

static int ended(void) {
#ifndef _WIN32
    struct pollfd p;
    char c;
    p.fd = 0, p.events = POLLIN, p.revents = 0;
    return poll(&p, 1, 0) > 0 && read(0, &c, 1) <= 0;
#else
    return 0;
#endif
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
    live = kiln_live_open(&o);
    if (!live) return 1;
    for (i = 2; i < argc; i++) kiln_live_use_name(live, argv[i]);
    while (!ended()) {
        kiln_live_wait(live, 20);
        if (!kiln_live_poll(live)) continue;
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
