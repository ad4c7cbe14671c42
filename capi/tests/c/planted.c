/* Faults for the sanitizers and Valgrind to find, in a program that uses the C interface:
 *
 *     planted use-after-free|leak|overflow|uninitialized [--mended]
 *     planted build      says whether the library is a checked build
 */
#include <hsa_serializer.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIGNALS = 64 };

/* What the library calls, over signals that nobody waits for. */
struct host {
    int64_t values[SIGNALS];
    uint64_t created;
    int count;
};

static uint32_t create_signal(void *userdata, uint32_t kind, int64_t initial, uint64_t *signal) {
    struct host *host = userdata;
    (void)kind;
    host->count += 1; /* the overflow */
    *signal = ++host->created % (SIGNALS - 1) + 1;
    host->values[*signal] = initial;
    return 0;
}

static uint32_t destroy_signal(void *userdata, uint64_t signal) {
    (void)userdata, (void)signal;
    return 0;
}

static void store(void *userdata, uint64_t signal, int64_t value) {
    struct host *host = userdata;
    host->values[signal] = value;
}

static int64_t compare_exchange(void *userdata, uint64_t signal, int64_t expected, int64_t desired) {
    struct host *host = userdata;
    int64_t seen = host->values[signal];
    if (seen == expected) host->values[signal] = desired;
    return seen;
}

static uint32_t watch_ready(void *userdata, uint64_t ready, uint64_t queue_id) {
    (void)userdata, (void)ready, (void)queue_id;
    return 0;
}

static void must(enum hsa_serializer_status_t status) {
    if (status == HSA_SERIALIZER_SUCCESS) return;
    fprintf(stderr, "%s\n", hsa_serializer_status_string((uint32_t)status));
    exit(2);
}

static hsa_serializer_t serializer_over(struct host *host) {
    hsa_serializer_runtime_t runtime = {
        .size = sizeof runtime,
        .userdata = host,
        .create_signal = create_signal,
        .destroy_signal = destroy_signal,
        .store = store,
        .compare_exchange = compare_exchange,
        .watch_ready = watch_ready,
    };
    hsa_serializer_t serializer;
    must(hsa_serializer_create(NULL, &runtime, &serializer));
    return serializer;
}

static void end(hsa_serializer_t serializer) {
    must(hsa_serializer_leave(serializer));
    must(hsa_serializer_destroy(serializer));
}

/* A ticket that is used twice while another one is out. */
static void build(struct host *host) {
    hsa_serializer_t serializer = serializer_over(host);
    hsa_serializer_queue_t queue;
    hsa_serializer_dispatch_t first, second;
    char packets[64 * HSA_SERIALIZER_MAX_PACKETS];
    must(hsa_serializer_queue_add(serializer, &queue));
    must(hsa_serializer_dispatch(queue, packets, HSA_SERIALIZER_MAX_PACKETS, &first));
    must(hsa_serializer_dispatch(queue, packets, HSA_SERIALIZER_MAX_PACKETS, &second));
    must(hsa_serializer_complete(serializer, first.ticket));
    enum hsa_serializer_status_t again = hsa_serializer_complete(serializer, first.ticket);
    puts(again == HSA_SERIALIZER_USED_TICKET ? "checked" : "plain");
    end(serializer);
    must(hsa_serializer_queue_destroyed(queue));
}

int main(int count, char **arguments) {
    const char *fault = count > 1 ? arguments[1] : "";
    bool mended = count > 2 && strcmp(arguments[2], "--mended") == 0;
    struct host *host = calloc(1, sizeof *host);
    if (!host) return 2;
    if (strcmp(fault, "build") == 0) {
        build(host);
    } else if (strcmp(fault, "use-after-free") == 0) {
        /* The library calls on what the host has freed. */
        hsa_serializer_t serializer = serializer_over(host);
        if (!mended) free(host);
        must(hsa_serializer_enable(serializer, NULL));
        end(serializer);
        if (!mended) return 0;
    } else if (strcmp(fault, "leak") == 0) {
        static void *volatile lost;
        lost = malloc(64);
        end(serializer_over(host));
        if (mended) free(lost);
        lost = NULL;
    } else if (strcmp(fault, "overflow") == 0) {
        hsa_serializer_t serializer = serializer_over(host);
        host->count = mended ? 0 : INT_MAX;
        must(hsa_serializer_enable(serializer, NULL));
        end(serializer);
    } else if (strcmp(fault, "uninitialized") == 0) {
        /* The library decides by what nobody has written. */
        hsa_serializer_options_t *options = malloc(sizeof *options);
        if (!options) return 2;
        options->size = sizeof *options;
        options->domain.handle = 0;
        options->agent = 0;
        if (mended) options->on_misuse = 0;
        hsa_serializer_runtime_t runtime = {.size = sizeof runtime};
        hsa_serializer_t serializer;
        (void)hsa_serializer_create(options, &runtime, &serializer);
        free(options);
    } else {
        return 2;
    }
    free(host);
    return 0;
}
