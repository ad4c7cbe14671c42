/* The skeleton of a profiler in C that AMD's runtime loads into any program (HSA_TOOLS_LIB): it intercepts every
 * queue and lets one kernel at a time run. Where a real one reads counters is marked COUNTERS.
 *
 *     SKELETON_TOGGLE_US=N   a thread turns it off and on every N microseconds; 0 or unset: it stays on
 *
 * With the library installed under $P (docs/embedding.md), in the root of the repository, for a program on the
 * emulated GPU (on a real one, without `cargo xtask softgpu --`):
 *
 *     cc -std=c11 -O2 -shared -fPIC examples/c/tool.c -o target/libskeleton_tool.so -pthread -Wl,-z,nodelete \
 *         -I"$P/include" -L"$P/lib" -lhsa_serializer -Wl,-rpath,"$P/lib" -lhsa-runtime64
 *     HSA_TOOLS_LIB=$PWD/target/libskeleton_tool.so cargo xtask softgpu -- target/program rate
 */
#define _POSIX_C_SOURCE 200809L /* nanosleep */
#include "hsa_table.h"

#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa_serializer.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a program that shuts the runtime down is held up by what it has left in its queues. */
static const uint64_t PATIENCE_NS = 300000000;

/* A kernel that was dispatched, until the application was told of its end. */
struct flight {
    struct watched *watched;
    hsa_serializer_ticket_t ticket;
    hsa_signal_t signal, forward;
    bool counted;   /* it went through the serializer, and its queue lives; this and all below under the lock */
    bool in_order;  /* it has the application's barrier bit: its end comes after all earlier ones' */
    bool ended;
    hsa_signal_value_t value;
    struct flight *previous, *next;
};

/* A queue. Its memory stays: handlers may be late. */
struct watched {
    hsa_queue_t *queue;
    uint32_t asked;  /* the length that the application wanted */
    hsa_serializer_t serializer;
    hsa_serializer_queue_t half;
    hsa_queue_error_callback callback;
    void *data;
    pthread_mutex_t lock;
    struct flight *first, *last;  /* the oldest, the latest */
    atomic_uint under_way;
    atomic_bool gone;
    struct watched *next;
};

static struct {
    hsa_init_fn init, shut_down;
    hsa_queue_fn queue_destroy, queue_inactivate;
    hsa_queue_create_fn queue_create, intercept_create;
    hsa_queue_intercept_register_fn intercept_register;
} hsa;

static hsa_serializer_agents_t agents;
static atomic_uint users;
static pthread_mutex_t queues_lock = PTHREAD_MUTEX_INITIALIZER;
/* ROCr 6.1 loses its heap where two threads create queues of one agent at a time. */
static pthread_mutex_t creating = PTHREAD_MUTEX_INITIALIZER;
static struct watched *queues;
static atomic_ulong kernels, serialized;
static atomic_bool stop;
static pthread_t toggler;
static bool toggles;
static _Thread_local bool on_handler_thread;

static bool ok(enum hsa_serializer_status_t status, const char *what) {
    if (status == HSA_SERIALIZER_SUCCESS) return true;
    fprintf(stderr, "skeleton_tool: %s: %s\n", what, hsa_serializer_status_string((uint32_t)status));
    return false;
}

static void report(void *userdata, const struct hsa_serializer_report_t *report) {
    (void)userdata;
    fprintf(stderr, "skeleton_tool: %s\n", report->text);
}

/* ---- A kernel's end. */

static amd_signal_t *inside(hsa_signal_t signal) { return (amd_signal_t *)(uintptr_t)signal.handle; }

/* Under the queue's lock: takes it out of the list, tells the application, frees it. */
static void land(struct flight *flight) {
    struct watched *watched = flight->watched;
    *(flight->previous ? &flight->previous->next : &watched->first) = flight->next;
    *(flight->next ? &flight->next->previous : &watched->last) = flight->previous;
    if (flight->counted && flight->forward.handle != 0) {
        inside(flight->forward)->start_ts = inside(flight->signal)->start_ts;
        inside(flight->forward)->end_ts = inside(flight->signal)->end_ts;
        if (flight->value < 0)
            hsa_signal_store_screlease(flight->forward, flight->value);
        else
            hsa_signal_subtract_screlease(flight->forward, 1);
    }
    hsa_signal_destroy(flight->signal);
    free(flight);
    atomic_fetch_sub(&watched->under_way, 1);
}

/* The handlers' thread says that it is the one: an application's own handler may be the first that it runs. */
static void on_handlers_thread(void *unused) {
    (void)unused;
    on_handler_thread = true;
}

/* Handlers come in any order; an application may rely on that of its barrier bits. */
static bool on_end(hsa_signal_value_t value, void *data) {
    struct flight *flight = data;
    struct watched *watched = flight->watched;
    pthread_mutex_lock(&watched->lock);
    bool counted = flight->counted;
    pthread_mutex_unlock(&watched->lock);
    /* COUNTERS: read them here, before the next kernel may run. */
    if (counted) ok(hsa_serializer_complete(watched->serializer, flight->ticket), "complete");
    pthread_mutex_lock(&watched->lock);
    flight->ended = true;
    flight->value = value;
    for (struct flight *at = watched->first, *next; at; at = next) {
        next = at->next;
        if (at->ended && (!at->in_order || !at->counted || !at->previous)) land(at);
    }
    pthread_mutex_unlock(&watched->lock);
    return false;
}

/* ---- A kernel. */

static struct flight *take_off(struct watched *watched) {
    struct flight *flight = calloc(1, sizeof *flight);
    if (!flight) return NULL;
    flight->watched = watched;
    if (hsa_signal_create(1, 0, NULL, &flight->signal) != HSA_STATUS_SUCCESS) {
        free(flight);
        return NULL;
    }
    pthread_mutex_lock(&watched->lock);
    flight->previous = watched->last;
    *(watched->last ? &watched->last->next : &watched->first) = flight;
    watched->last = flight;
    pthread_mutex_unlock(&watched->lock);
    atomic_fetch_add(&watched->under_way, 1);
    if (hsa_amd_signal_async_handler(flight->signal, HSA_SIGNAL_CONDITION_LT, 1, on_end, flight) !=
        HSA_STATUS_SUCCESS) {
        pthread_mutex_lock(&watched->lock);
        land(flight);
        pthread_mutex_unlock(&watched->lock);
        return NULL;
    }
    return flight;
}

/* A kernel becomes several packets, and runtimes before 6.0 abort where these do not fit into the ring: so there are
 * never more kernels under way than the application wanted the ring to hold. On the handlers' thread it can't be
 * waited for. */
static void wait_for_room(struct watched *watched) {
    struct timespec pause = {0, 20000};
    while (atomic_load(&watched->under_way) >= watched->asked && !on_handler_thread && !atomic_load(&watched->gone))
        nanosleep(&pause, NULL);
}

/* The packets that a kernel becomes, in `out`; 0 if it has to be passed on as it is. */
static size_t kernel(struct watched *watched, const hsa_kernel_dispatch_packet_t *from,
                     hsa_kernel_dispatch_packet_t *out) {
    wait_for_room(watched);
    struct flight *flight = take_off(watched);
    if (!flight) return 0;
    hsa_serializer_dispatch_t dispatch;
    enum hsa_serializer_status_t status =
        hsa_serializer_dispatch(watched->half, out, HSA_SERIALIZER_MAX_PACKETS, &dispatch);
    if (status != HSA_SERIALIZER_SUCCESS) {
        /* Its handler frees the flight. */
        hsa_signal_store_screlease(flight->signal, 0);
        return 0;
    }
    /* COUNTERS: what starts them goes in front of the kernel here, and what stops them behind it; the last packet
     * of the group has the completion signal and the barrier bit. */
    hsa_kernel_dispatch_packet_t *own = &out[dispatch.packets];
    *own = *from;
    own->completion_signal = flight->signal;
    if (dispatch.serialized) own->header |= 1 << HSA_PACKET_HEADER_BARRIER;
    pthread_mutex_lock(&watched->lock);
    flight->ticket = dispatch.ticket;
    flight->forward = from->completion_signal;
    flight->in_order = from->header >> HSA_PACKET_HEADER_BARRIER & 1;
    flight->counted = true;
    pthread_mutex_unlock(&watched->lock);
    atomic_fetch_add(&kernels, 1);
    if (dispatch.serialized) atomic_fetch_add(&serialized, 1);
    return dispatch.packets + 1;
}

/* The runtime gives one packet at a time, under the queue's lock, and wants all that becomes of it at once. */
static void intercept(const void *packets, uint64_t count, uint64_t index, void *data,
                      hsa_amd_queue_intercept_packet_writer writer) {
    (void)index;
    for (uint64_t i = 0; i < count; i++) {
        hsa_kernel_dispatch_packet_t packet, out[HSA_SERIALIZER_MAX_PACKETS + 1];
        memcpy(&packet, (const char *)packets + i * sizeof packet, sizeof packet);
        size_t made = 0;
        if ((packet.header & 0xff) == HSA_PACKET_TYPE_KERNEL_DISPATCH) made = kernel(data, &packet, out);
        if (made > 0)
            writer(out, made);
        else
            writer(&packet, 1);
    }
}

/* ---- A queue. */

/* None of its packets executes any more. */
static void queue_gone(struct watched *watched) {
    if (atomic_exchange(&watched->gone, true)) return;
    ok(hsa_serializer_queue_destroyed(watched->half), "queue_destroyed");
    /* What it still held never ends. The handlers free it. */
    pthread_mutex_lock(&watched->lock);
    for (struct flight *flight = watched->first; flight; flight = flight->next) {
        if (!flight->ended) flight->counted = false;
        hsa_signal_store_screlease(flight->signal, 0);
    }
    pthread_mutex_unlock(&watched->lock);
}

static void on_error(hsa_status_t status, hsa_queue_t *source, void *data) {
    struct watched *watched = data;
    queue_gone(watched);
    if (watched->callback) watched->callback(status, source, watched->data);
}

/* A ring with room for what becomes of the packets, if the agent can have it. */
static uint32_t longer(hsa_agent_t agent, uint32_t size) {
    uint32_t most = 0, wanted = size * (HSA_SERIALIZER_MAX_PACKETS + 4);
    if (hsa_agent_get_info(agent, HSA_AGENT_INFO_QUEUE_MAX_SIZE, &most) != HSA_STATUS_SUCCESS) return size;
    return size > most / (HSA_SERIALIZER_MAX_PACKETS + 4) ? (size > most ? size : most) : wanted;
}

static hsa_status_t queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                                 hsa_queue_error_callback callback, void *data, uint32_t private_segment_size,
                                 uint32_t group_segment_size, hsa_queue_t **queue) {
    hsa_serializer_t serializer;
    struct watched *watched = NULL;
    /* Not a GPU, or at the end of all: a queue as any other. */
    if (hsa_serializer_agents_of(agents, agent.handle, &serializer) == HSA_SERIALIZER_SUCCESS)
        watched = calloc(1, sizeof *watched);
    if (!watched)
        return hsa.queue_create(agent, size, type, callback, data, private_segment_size, group_segment_size, queue);
    watched->asked = size;
    watched->serializer = serializer;
    watched->callback = callback;
    watched->data = data;
    pthread_mutex_init(&watched->lock, NULL);
    pthread_mutex_lock(&creating);
    hsa_status_t status = hsa.intercept_create(agent, longer(agent, size), type, on_error, watched,
                                               private_segment_size, group_segment_size, queue);
    pthread_mutex_unlock(&creating);
    if (status != HSA_STATUS_SUCCESS) {
        free(watched);
        return status;
    }
    watched->queue = *queue;
    /* Before its first packet. */
    if (!ok(hsa_serializer_queue_add(serializer, &watched->half), "queue_add")) {
        /* Its error callback has the memory, which stays. */
        atomic_store(&watched->gone, true);
        return HSA_STATUS_SUCCESS;
    }
    status = hsa.intercept_register(*queue, intercept, watched);
    if (status != HSA_STATUS_SUCCESS) queue_gone(watched);
    pthread_mutex_lock(&queues_lock);
    watched->next = queues;
    queues = watched;
    pthread_mutex_unlock(&queues_lock);
    return HSA_STATUS_SUCCESS;
}

/* The queue's entry; `take` takes it out: the address is another one's as soon as it is destroyed. */
static struct watched *find(hsa_queue_t *queue, bool take) {
    pthread_mutex_lock(&queues_lock);
    struct watched **at = &queues;
    while (*at && (*at)->queue != queue) at = &(*at)->next;
    struct watched *found = *at;
    if (found && take) *at = found->next;
    pthread_mutex_unlock(&queues_lock);
    return found;
}

static hsa_status_t queue_destroy(hsa_queue_t *queue) {
    struct watched *watched = find(queue, true);
    /* It waits for the handlers' thread: under no lock that a handler takes. */
    hsa_status_t status = hsa.queue_destroy(queue);
    if (watched && status == HSA_STATUS_SUCCESS) queue_gone(watched);
    return status;
}

static hsa_status_t queue_inactivate(hsa_queue_t *queue) {
    hsa_status_t status = hsa.queue_inactivate(queue);
    struct watched *watched = find(queue, false);
    if (watched && status == HSA_STATUS_SUCCESS) queue_gone(watched);
    return status;
}

/* ---- On and off. */

static void *toggle(void *microseconds) {
    long pause = (long)(intptr_t)microseconds;
    struct timespec time = {pause / 1000000, pause % 1000000 * 1000};
    hsa_serializer_request_t request = {0};
    while (!atomic_load(&stop)) {
        if (request.handle != 0) {
            ok(hsa_serializer_request_end(request, NULL), "request_end");
            request.handle = 0;
        } else if (!ok(hsa_serializer_agents_request_all(agents, &request), "request_all")) {
            request.handle = 0;
        }
        nanosleep(&time, NULL);
    }
    if (request.handle != 0) hsa_serializer_request_end(request, NULL);
    return NULL;
}

/* ---- The beginning and the end. */

/* Everything after the last hsa_shut_down is too late for a serializer. */
static void end(void) {
    atomic_store(&stop, true);
    if (toggles) pthread_join(toggler, NULL);
    uint64_t list[64], transitions = 0, reported = 0;
    size_t count = 0;
    ok(hsa_serializer_agents_list(agents, list, 64, &count), "agents_list");
    for (size_t i = 0; i < count; i++) {
        hsa_serializer_t serializer;
        hsa_serializer_statistics_t statistics = {.size = sizeof statistics};
        if (!ok(hsa_serializer_agents_get(agents, list[i], &serializer), "agents_get")) continue;
        if (ok(hsa_serializer_statistics(serializer, &statistics), "statistics")) {
            transitions += statistics.transitions;
            reported += statistics.misuse;
        }
        if (hsa_serializer_finish_shutdown(serializer, PATIENCE_NS, NULL, NULL) != HSA_SERIALIZER_SUCCESS) {
            /* The application has left work in its queues: let it run, and touch nothing any more. */
            ok(hsa_serializer_release_all(serializer), "release_all");
            ok(hsa_serializer_leave(serializer), "leave");
        }
    }
    ok(hsa_serializer_agents_destroy(agents), "agents_destroy");
    fprintf(stderr, "skeleton_tool: %lu kernels, %lu of them serialized; %lu transitions; %lu reports of misuse\n",
            atomic_load(&kernels), atomic_load(&serialized), (unsigned long)transitions, (unsigned long)reported);
}

static hsa_status_t init(void) {
    hsa_status_t status = hsa.init();
    if (status == HSA_STATUS_SUCCESS) atomic_fetch_add(&users, 1);
    return status;
}

static hsa_status_t shut_down(void) {
    if (atomic_fetch_sub(&users, 1) == 1) end();
    return hsa.shut_down();
}

/* Keeps the function that is in the slot, and puts ours there. */
#define REPLACE(slot, kept, ours)                                                                                  \
    do {                                                                                                           \
        (kept) = (__typeof__(kept))*(slot);                                                                        \
        *(slot) = (void (*)(void))(ours);                                                                          \
    } while (0)

/* The runtime calls this at the end of the hsa_init that starts it, with nobody else inside. */
bool OnLoad(void *table, uint64_t version, uint64_t failed_count, const char *const *failed);
bool OnLoad(void *table, uint64_t version, uint64_t failed_count, const char *const *failed) {
    (void)version, (void)failed_count, (void)failed;
    struct hsa_tables *tables = table;
    void (**const slots[])(void) = {
        hsa_core_slot(tables, HSA_INIT),
        hsa_core_slot(tables, HSA_SHUT_DOWN),
        hsa_core_slot(tables, HSA_QUEUE_CREATE),
        hsa_core_slot(tables, HSA_QUEUE_DESTROY),
        hsa_core_slot(tables, HSA_QUEUE_INACTIVATE),
        hsa_amd_ext_slot(tables, HSA_AMD_QUEUE_INTERCEPT_CREATE),
        hsa_amd_ext_slot(tables, HSA_AMD_QUEUE_INTERCEPT_REGISTER),
    };
    for (size_t i = 0; i < sizeof slots / sizeof *slots; i++)
        if (!slots[i]) return ok(HSA_SERIALIZER_BAD_TABLE, "the runtime's table");
    hsa.intercept_create = (hsa_queue_create_fn)*slots[5];
    hsa.intercept_register = (hsa_queue_intercept_register_fn)*slots[6];
    /* Before anything is replaced: the serializers call what is in the table now. */
    hsa_serializer_hsa_t given = {.size = sizeof given, .table = table, .report = report};
    if (!ok(hsa_serializer_agents_create_hsa(NULL, &given, &agents), "agents_create_hsa")) return false;
    REPLACE(slots[0], hsa.init, init);
    REPLACE(slots[1], hsa.shut_down, shut_down);
    REPLACE(slots[2], hsa.queue_create, queue_create);
    REPLACE(slots[3], hsa.queue_destroy, queue_destroy);
    REPLACE(slots[4], hsa.queue_inactivate, queue_inactivate);
    if (hsa_amd_async_function(on_handlers_thread, NULL) != HSA_STATUS_SUCCESS)
        fprintf(stderr, "skeleton_tool: the handlers' thread is not known\n");
    atomic_store(&users, 1);
    atomic_store(&stop, false);
    const char *pause = getenv("SKELETON_TOGGLE_US");
    long microseconds = pause ? atol(pause) : 0;
    toggles = microseconds > 0 && pthread_create(&toggler, NULL, toggle, (void *)(intptr_t)microseconds) == 0;
    hsa_serializer_request_t request;
    return toggles || ok(hsa_serializer_agents_request_all(agents, &request), "request_all");
}

/* By now hsa_shut_down has ended everything. */
void OnUnload(void);
void OnUnload(void) {}
