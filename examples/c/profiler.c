/* See profiler.h. In the order in which things happen: the serializer's runtime, a queue, a kernel, its end, on and
 * off, the end of all. */
#include "profiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A kernel that was dispatched, until its end was heard of. */
struct flight {
    struct watched *watched;
    hsa_serializer_ticket_t ticket;
    uint64_t signal;   /* ours, in place of the application's */
    uint64_t forward;  /* the application's, or 0 */
    bool counted;      /* it went through the serializer, and its queue lives; under the profiler's lock */
    struct flight *previous, *next;
};

static bool ok(enum hsa_serializer_status_t status, const char *what) {
    if (status == HSA_SERIALIZER_SUCCESS) return true;
    fprintf(stderr, "%s: %s\n", what, hsa_serializer_status_string((uint32_t)status));
    return false;
}

/* ---- What the serializer calls. None of these may call it back but to ask for the mode, or to leave. */

static uint32_t create_signal(void *userdata, uint32_t kind, int64_t initial, uint64_t *signal) {
    struct profiler *profiler = userdata;
    uint32_t consumers = kind == HSA_SERIALIZER_SIGNAL_FOR_HOST ? SOFTGPU_FOR_HOST : SOFTGPU_FOR_GPU;
    return softgpu_signal_create(profiler->gpu, consumers, initial, signal);
}

static uint32_t destroy_signal(void *userdata, uint64_t signal) {
    struct profiler *profiler = userdata;
    return softgpu_signal_destroy(profiler->gpu, signal);
}

static void store(void *userdata, uint64_t signal, int64_t value) {
    struct profiler *profiler = userdata;
    softgpu_signal_store(profiler->gpu, signal, value);
}

static int64_t compare_exchange(void *userdata, uint64_t signal, int64_t expected, int64_t desired) {
    struct profiler *profiler = userdata;
    return softgpu_signal_compare_exchange(profiler->gpu, signal, expected, desired);
}

/* A handler gets the queue's id by value, never a pointer: it may be called when the queue is long gone. */
static bool on_ready(void *queue_id, int64_t value) {
    (void)value;
    return hsa_serializer_ready((uint64_t)(uintptr_t)queue_id);
}

static uint32_t watch_ready(void *userdata, uint64_t ready, uint64_t queue_id) {
    struct profiler *profiler = userdata;
    return softgpu_signal_on(profiler->gpu, ready, SOFTGPU_EQ, -1, on_ready, (void *)(uintptr_t)queue_id);
}

static bool is_handler_thread(void *userdata) {
    (void)userdata;
    return softgpu_is_handler_thread();
}

static void report(void *userdata, const struct hsa_serializer_report_t *report) {
    struct profiler *profiler = userdata;
    atomic_fetch_add(&profiler->reports, 1);
    fprintf(stderr, "the serializer reports: %s\n", report->text);
}

bool profiler_start(struct profiler *profiler, softgpu_t *gpu, uint64_t agent) {
    memset(profiler, 0, sizeof *profiler);
    profiler->gpu = gpu;
    profiler->agent = agent;
    pthread_mutex_init(&profiler->lock, NULL);
    /* The library may be another one than this was compiled for. */
    uint32_t version = hsa_serializer_version_number();
    if (version >> 16 != HSA_SERIALIZER_VERSION_MAJOR ||
        (version >> 8 & 0xff) != HSA_SERIALIZER_VERSION_MINOR) {
        fprintf(stderr, "the library has version %s\n", hsa_serializer_version());
        return false;
    }
    hsa_serializer_runtime_t runtime = {
        .size = sizeof runtime,
        .userdata = profiler,
        .create_signal = create_signal,
        .destroy_signal = destroy_signal,
        .store = store,
        .compare_exchange = compare_exchange,
        .watch_ready = watch_ready,
        .is_handler_thread = is_handler_thread,
        .report = report,
    };
    hsa_serializer_options_t options = {.size = sizeof options, .agent = agent};
    return ok(hsa_serializer_create(&options, &runtime, &profiler->serializer), "create");
}

/* ---- A kernel's end. */

/* Under the profiler's lock. */
static void unlink_flight(struct flight *flight) {
    if (flight->previous)
        flight->previous->next = flight->next;
    else
        flight->watched->flights = flight->next;
    if (flight->next) flight->next->previous = flight->previous;
}

/* The handler of our completion signal; or its queue has gone, or its kernel was passed on without us. */
static bool on_end(void *userdata, int64_t value) {
    struct flight *flight = userdata;
    struct profiler *profiler = flight->watched->profiler;
    pthread_mutex_lock(&profiler->lock);
    bool counted = flight->counted;
    unlink_flight(flight);
    pthread_mutex_unlock(&profiler->lock);
    if (counted) {
        ok(hsa_serializer_complete(profiler->serializer, flight->ticket), "complete");
        atomic_fetch_add(&profiler->completed, 1);
        /* Told last: the application may destroy its queue as soon as it knows. A profiler over AMD's runtime
         * copies the kernel's times before this. */
        if (flight->forward != 0) {
            if (value < 0)
                softgpu_signal_store(profiler->gpu, flight->forward, value);
            else
                softgpu_signal_subtract(profiler->gpu, flight->forward, 1);
        }
    }
    softgpu_signal_destroy(profiler->gpu, flight->signal);
    free(flight);
    atomic_fetch_sub(&profiler->signals, 1);
    return false;
}

/* ---- A kernel. */

/* A flight with its signal, whose handler is registered: nothing can fail after the dispatch. */
static struct flight *take_off(struct watched *watched) {
    struct profiler *profiler = watched->profiler;
    struct flight *flight = calloc(1, sizeof *flight);
    if (!flight) return NULL;
    flight->watched = watched;
    if (softgpu_signal_create(profiler->gpu, SOFTGPU_FOR_HOST, 1, &flight->signal) != 0) {
        free(flight);
        return NULL;
    }
    if (softgpu_signal_on(profiler->gpu, flight->signal, SOFTGPU_LT, 1, on_end, flight) != 0) {
        softgpu_signal_destroy(profiler->gpu, flight->signal);
        free(flight);
        return NULL;
    }
    atomic_fetch_add(&profiler->signals, 1);
    pthread_mutex_lock(&profiler->lock);
    flight->next = watched->flights;
    if (flight->next) flight->next->previous = flight;
    watched->flights = flight;
    pthread_mutex_unlock(&profiler->lock);
    return flight;
}

/* Writes a kernel with what the serializer wants in front of it. False if it has to be passed on as it is. */
static bool kernel(struct watched *watched, const struct packet *from, softgpu_writer_t *writer) {
    struct profiler *profiler = watched->profiler;
    struct flight *flight = take_off(watched);
    if (!flight) return false;
    struct packet out[HSA_SERIALIZER_MAX_PACKETS + 1];
    hsa_serializer_dispatch_t dispatch;
    enum hsa_serializer_status_t status =
        hsa_serializer_dispatch(watched->half, out, HSA_SERIALIZER_MAX_PACKETS, &dispatch);
    if (status != HSA_SERIALIZER_SUCCESS) {
        /* It is shutting down, or the queue is being destroyed: nobody hears of this kernel. The handler frees
         * what was made for it. */
        if (status != HSA_SERIALIZER_SHUT_DOWN && status != HSA_SERIALIZER_QUEUE_GONE) ok(status, "dispatch");
        softgpu_signal_store(profiler->gpu, flight->signal, 0);
        return false;
    }
    flight->ticket = dispatch.ticket;
    flight->forward = from->completion_signal;
    pthread_mutex_lock(&profiler->lock);
    flight->counted = true;
    pthread_mutex_unlock(&profiler->lock);
    struct packet *own = &out[dispatch.packets];
    *own = *from;
    own->completion_signal = flight->signal;
    if (dispatch.serialized) {
        own->header |= PACKET_BARRIER_BIT;
        atomic_fetch_add(&profiler->serialized, 1);
    }
    atomic_fetch_add(&profiler->dispatched, 1);
    softgpu_write(writer, out, dispatch.packets + 1);
    return true;
}

/* Called under the queue's lock, so one call at a time for each queue. */
static void intercept(void *userdata, const void *packets, size_t count, softgpu_writer_t *writer) {
    struct watched *watched = userdata;
    const unsigned char *from = packets;
    for (size_t i = 0; i < count; i++) {
        struct packet packet;
        memcpy(&packet, from + i * sizeof packet, sizeof packet);
        bool is_kernel = (packet.header & 0xff) == PACKET_TYPE_KERNEL_DISPATCH;
        if (is_kernel && !watched->profiler->unseen && kernel(watched, &packet, writer)) continue;
        if (is_kernel) atomic_fetch_add(&watched->profiler->passed_on, 1);
        softgpu_write(writer, &packet, 1);
    }
}

/* ---- A queue. */

struct watched *profiler_queue_create(struct profiler *profiler, size_t slots) {
    struct watched *watched = calloc(1, sizeof *watched);
    if (!watched) return NULL;
    watched->profiler = profiler;
    /* Before the queue's first packet. */
    if (!ok(hsa_serializer_queue_add(profiler->serializer, &watched->half), "queue_add")) {
        free(watched);
        return NULL;
    }
    uint32_t status =
        softgpu_queue_create(profiler->gpu, profiler->agent, slots, intercept, watched, &watched->queue);
    if (status != 0) {
        fprintf(stderr, "a queue can't be created: %#x\n", (unsigned)status);
        ok(hsa_serializer_queue_destroyed(watched->half), "queue_destroyed");
        free(watched);
        return NULL;
    }
    pthread_mutex_lock(&profiler->lock);
    watched->next = profiler->queues;
    profiler->queues = watched;
    pthread_mutex_unlock(&profiler->lock);
    return watched;
}

void profiler_queue_destroy(struct watched *watched) {
    struct profiler *profiler = watched->profiler;
    /* Not before this has returned: until then its packets may execute. */
    softgpu_queue_destroy(profiler->gpu, watched->queue);
    ok(hsa_serializer_queue_destroyed(watched->half), "queue_destroyed");
    /* What it still held will never run. Their handlers free them; those that ended just now are not completed
     * either, which does no harm any more. */
    pthread_mutex_lock(&profiler->lock);
    for (struct flight *flight = watched->flights; flight; flight = flight->next) {
        flight->counted = false;
        softgpu_signal_store(profiler->gpu, flight->signal, 0);
    }
    pthread_mutex_unlock(&profiler->lock);
}

/* ---- On and off. */

bool profiler_set(struct profiler *profiler, bool on) {
    softgpu_mode_begins(profiler->gpu, profiler->agent, on);
    bool done = ok(on ? hsa_serializer_enable(profiler->serializer, NULL)
                      : hsa_serializer_disable(profiler->serializer, NULL),
                   on ? "enable" : "disable");
    if (done)
        softgpu_mode_is(profiler->gpu, profiler->agent, on);
    else
        softgpu_mode_failed(profiler->gpu, profiler->agent);
    return done;
}

static void stuck(void *userdata, const struct hsa_serializer_in_flight_t *queues, size_t count) {
    (void)userdata;
    for (size_t i = 0; i < count; i++)
        fprintf(stderr, "queue %llu: %llu kernels have not ended\n", (unsigned long long)queues[i].queue_id,
                (unsigned long long)queues[i].dispatches);
}

bool profiler_drain(struct profiler *profiler, uint64_t timeout_ns) {
    return ok(hsa_serializer_drain(profiler->serializer, timeout_ns, stuck, NULL), "drain");
}

/* ---- The end. */

static void remaining(void *userdata, const struct hsa_serializer_remaining_t *left) {
    stuck(userdata, left->queues, left->queue_count);
    fprintf(stderr, "%llu handlers and %llu barriers are left\n", (unsigned long long)left->handlers,
            (unsigned long long)left->barriers);
}

bool profiler_finish(struct profiler *profiler, uint64_t timeout_ns) {
    bool ended = ok(hsa_serializer_begin_shutdown(profiler->serializer), "begin_shutdown");
    if (!ok(hsa_serializer_finish_shutdown(profiler->serializer, timeout_ns, remaining, NULL), "finish_shutdown")) {
        /* Better a kernel beside another one than an application that hangs. */
        ended = false;
        ok(hsa_serializer_release_all(profiler->serializer), "release_all");
        ok(hsa_serializer_leave(profiler->serializer), "leave");
    }
    ok(hsa_serializer_destroy(profiler->serializer), "destroy");
    /* Every handler has told the serializer; one may still be freeing its flight. */
    softgpu_wait_idle(profiler->gpu, timeout_ns, NULL, NULL);
    while (profiler->queues) {
        struct watched *watched = profiler->queues;
        profiler->queues = watched->next;
        free(watched);
    }
    pthread_mutex_destroy(&profiler->lock);
    return ended;
}
