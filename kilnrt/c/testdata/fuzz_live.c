/*
 * The live client of kiln.h, called by clang's fuzzer. The input simulates the network: it is a list of steps, see
 * one(), each a byte and its arguments. The watcher's data, complete or in pieces, arrives as messages, frames, or
 * single bytes of either connection.
 */
#define _POSIX_C_SOURCE 200112L
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* ---- a network that the input controls ---- */

static struct { uint8_t *data; size_t size, at; int ended; } came[2]; /* received data of the client's two connections, by socket */
static size_t piece; /* most bytes that one recv returns */
static int full;     /* nothing can be sent */
static long clock_is; /* in milliseconds */
static int unreachable;

static int net_socket(int domain, int type, int protocol) {
    (void)domain, (void)protocol;
#ifdef SOCK_CLOEXEC
    if (!(type & SOCK_CLOEXEC)) abort(); /* a program that the game starts would inherit it */
#else
    (void)type;
#endif
    return 1000; /* net_connect knows which one */
}
static int net_connect(int s, const struct sockaddr *to, socklen_t size) {
    (void)s, (void)to, (void)size;
    errno = unreachable ? ECONNREFUSED : EINPROGRESS;
    return -1;
}
static ssize_t net_send(int s, const void *data, size_t size, int flags) {
    unsigned sum = 0;
    size_t i;
    (void)s;
#ifdef MSG_NOSIGNAL
    if (!(flags & MSG_NOSIGNAL)) abort(); /* a closed connection would end the game */
#else
    (void)flags;
#endif
    for (i = 0; i < size; i++) sum += ((const uint8_t *)data)[i]; /* all of it must be readable */
    errno = EAGAIN;
    return full ? -1 : (ssize_t)(size > 100 ? size - size % 3 - sum % 2 : size);
}
static ssize_t net_recv(int s, void *to, size_t size, int flags);
static int net_close(int s) { (void)s; return 0; }
static int net_poll(struct pollfd *p, nfds_t n, int milliseconds) {
    nfds_t i;
    (void)milliseconds;
    for (i = 0; i < n; i++) p[i].revents = p[i].events;
    return (int)n;
}
static int net_setsockopt(int s, int level, int name, const void *value, socklen_t size) { (void)s, (void)level, (void)name, (void)value, (void)size; return 0; }
static int net_getsockopt(int s, int level, int name, void *value, socklen_t *size) {
    (void)s, (void)level, (void)name, (void)size;
    *(int *)value = unreachable ? ECONNREFUSED : 0;
    return 0;
}
static int net_fcntl(int s, int what, long arg) { (void)s, (void)what, (void)arg; return 0; }
static int net_time(struct timeval *t, void *zone) {
    (void)zone;
    t->tv_sec = 1000000 + clock_is / 1000, t->tv_usec = clock_is % 1000 * 1000;
    return 0;
}

#define socket net_socket_of
#define net_socket_of(domain, type, protocol) net_socket(domain, type, protocol)
#define connect net_connect
#define send net_send
#define recv net_recv
#define close net_close
#define poll net_poll
#define setsockopt net_setsockopt
#define getsockopt net_getsockopt
#define fcntl net_fcntl
#define gettimeofday net_time
#define KILN_IMPLEMENTATION
#define KILN_LIVE_IMPLEMENTATION
#include "kiln.h"
#undef socket

static kiln_live *client;

static ssize_t net_recv(int s, void *to, size_t size, int flags) {
    int i = 0;
    size_t n;
    (void)s, (void)flags;
    /* Both connections have the same number. The buffer to fill shows which one it is. */
    if ((uint8_t *)to >= client->fetch.in.data && client->fetch.in.data && (uint8_t *)to <= client->fetch.in.data + client->fetch.in.room) i = 1;
    n = came[i].size - came[i].at;
    if (n > size) n = size;
    if (n > piece) n = piece;
    if (n) memcpy(to, came[i].data + came[i].at, n);
    came[i].at += n;
    errno = EAGAIN;
    return n ? (ssize_t)n : came[i].ended ? 0 : -1;
}

static void arrives(int i, const void *data, size_t size) {
    if (!size) return;
    came[i].data = (uint8_t *)realloc(came[i].data, came[i].size + size);
    memcpy(came[i].data + came[i].size, data, size);
    came[i].size += size;
}

static void forget(int i) {
    free(came[i].data);
    memset(&came[i], 0, sizeof came[i]);
}

/* ---- a game ---- */

static int refuses, values;
static int calls, closed; /* closes after this many calls; set when it has closed */

/* maybe_close closes, as a game may in any of its functions. Afterwards only unload may be called. */
static void maybe_close(void) {
    if (closed) abort();
    if (!calls || --calls) return;
    closed = 1;
    kiln_live_close(client);
    kiln_live_poll(client); /* does nothing; the client still exists */
}

static int load(void *user, kiln_live *live, const kiln_live_resource *r, const void *data, size_t size, void **value) {
    unsigned sum = 0;
    size_t i;
    (void)user;
    for (i = 0; data && i < size; i++) sum += ((const uint8_t *)data)[i];
    for (i = 0; i < r->required + r->optional; i++) sum += kiln_live_value(live, kiln_live_find(live, r->needs[i])) != NULL;
    kiln_live_log(live, "info", r->name);
    maybe_close();
    if (refuses && sum % 2) return 1;
    if (!*value) *value = malloc(1), values++;
    return 0;
}
static void unload(void *user, kiln_live *live, const kiln_live_resource *r, void *value) {
    (void)user, (void)live, (void)r;
    free(value);
    values--;
}
static void notify(void *user, kiln_live *live, const kiln_live_event *e) {
    size_t i;
    (void)user;
    kiln_live_log(live, e->type, e->asset);
    kiln_live_log(live, e->type, e->reason);
    for (i = 0; i < e->count; i++) {
        kiln_live_log(live, e->messages[i].severity, e->messages[i].code);
        kiln_live_log(live, e->messages[i].file, e->messages[i].text);
        kiln_live_log(live, "info", e->messages[i].hint);
    }
    maybe_close();
}

/* ---- the steps ---- */

static const uint8_t *at, *end;

static size_t number(int bytes) {
    size_t n = 0;
    while (bytes-- && at < end) n = n << 8 | *at++;
    return n;
}

/* rest returns the data of a step: two bytes of length, and the bytes. */
static const uint8_t *rest(size_t *size) {
    const uint8_t *p;
    *size = number(2);
    if (*size > (size_t)(end - at)) *size = (size_t)(end - at);
    p = at;
    at += *size;
    return p;
}

static char *text_of(void) {
    size_t n;
    const uint8_t *p = rest(&n);
    char *text = (char *)malloc(n + 1);
    memcpy(text, p, n);
    text[n] = 0;
    return text;
}

static void accepts(void) {
    char head[256];
    if (client->talk.state != KILNL_HEAD) return;
    snprintf(head, sizeof head, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nsec-websocket-accept: %s\r\n\r\n", client->accept);
    arrives(0, head, strlen(head));
}

/* answers returns the requested content: one of a few, or an error. */
static void answers(void) {
    static const char *contents[] = {"", "A", "B", "content"};
    char head[128];
    size_t i;
    if (client->fetching < 0) return;
    for (i = 0; i < 4; i++) {
        uint8_t hash[32];
        kiln_hash(contents[i], strlen(contents[i]), hash);
        if (memcmp(hash, client->fetched, 32)) continue;
        snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %u\r\n\r\n%s", (unsigned)strlen(contents[i]), contents[i]);
        arrives(1, head, strlen(head));
        return;
    }
    snprintf(head, sizeof head, "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\nConnection: close\r\n\r\nnone");
    arrives(1, head, strlen(head));
}

static void one(void) {
    size_t n, i;
    const uint8_t *p;
    char *text;
    switch (number(1) % 16) {
    case 0: kiln_live_poll(client); break;
    case 1: /* a message, at the end of its memory block */
        p = rest(&n);
        text = (char *)malloc(n ? n : 1);
        memcpy(text, p, n);
        client->inside = 1;
        if (client->talk.state == KILNL_OPEN && !kilnl_heard(client, text, n)) kilnl_broken(client), forget(0);
        client->inside = 0;
        if (closed) kiln_live_close(client);
        free(text);
        break;
    case 2: { /* a message as one frame */
        uint8_t head[4] = {0x81, 126, 0, 0};
        p = rest(&n);
        head[2] = (uint8_t)(n >> 8), head[3] = (uint8_t)n;
        arrives(0, head, 4);
        arrives(0, p, n);
        break;
    }
    case 3: p = rest(&n), arrives(0, p, n); break;
    case 4: p = rest(&n), arrives(1, p, n); break;
    case 5: accepts(); break;
    case 6: answers(); break;
    case 7: kiln_live_use(client, (uint32_t)number(1)); break;
    case 8: text = text_of(), kiln_live_use_name(client, text), free(text); break;
    case 9: kiln_live_unuse(client, (uint32_t)number(1)); break;
    case 10: came[number(1) & 1].ended = 1; break;
    case 11: clock_is += 10 * (long)number(1); break;
    case 12: i = number(1), refuses = i & 1, full = i >> 1 & 1, unreachable = i >> 2 & 1, piece = i >> 3 ? i >> 3 : 1 << 20; break;
    case 13: text = text_of(), kiln_live_find_name(client, text), kiln_live_unuse_name(client, text), free(text); break;
    case 14: kiln_live_wait(client, 1), calls = (int)number(1); break;
    case 15: /* all steps of a usual frame */
        accepts();
        answers();
        kiln_live_poll(client);
        if (closed) break;
        if (client->talk.state == KILNL_OFF) forget(0);
        if (client->fetch.state == KILNL_OFF) forget(1);
        break;
    }
}

static void judge(void) {
    size_t i;
    uint32_t k;
    for (i = 0; i < client->count; i++) { /* what a value was made with is loaded */
        for (k = 0; k < kilnl_held(&client->slots[i]); k++) {
            uint32_t held = client->slots[i].held[k];
            if (held && !client->slots[held - 1].loaded) abort();
        }
    }
    for (i = 0; i < kiln_live_count(client); i++) {
        const kiln_live_resource *r = kiln_live_at(client, i);
        if (!r) continue;
        if (!kiln_live_find(client, r->id) || !kiln_live_find_name(client, r->name) || kiln_live_find_uuid(client, r->uuid, r->sub) != r) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    kiln_live_options o;
    int steps = 0;
    memset(&o, 0, sizeof o);
    o.load = load, o.unload = unload, o.notify = notify;
    o.address = "127.0.0.1:7171", o.game = "fuzz\"\xff", o.token = "token";
    at = data, end = data + size;
    clock_is = 0, full = 0, unreachable = 0, refuses = 0, values = 0, calls = 0, closed = 0, piece = 1 << 20;
    client = kiln_live_open(&o);
    if (!client) abort();
    kiln_live_poll(client);
    kiln_live_poll(client);
    accepts();
    kiln_live_poll(client);
    while (at < end && steps++ < 2000 && !closed) one();
    if (!closed) {
        judge();
        calls = 0;
        kiln_live_close(client);
    }
    if (values) abort(); /* each value must be unloaded once */
    forget(0);
    forget(1);
    return 0;
}

#include "alone.h"
