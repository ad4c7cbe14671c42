// The client's own part: the command line, the deadline, packets.
#include "client.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

hsa_agent_t gpus[MAX_AGENTS];
unsigned gpu_count;
hsa_agent_t cpu;

void fail(const char *file, int line, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "FAILED at %s:%d: ", file, line);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    fflush(NULL);
    // Not exit: other threads are at work.
    _exit(1);
}

static void line(const char *kind, const char *format, va_list arguments) {
    flockfile(stdout);
    printf("%s ", kind);
    vprintf(format, arguments);
    putchar('\n');
    fflush(stdout);
    funlockfile(stdout);
}

void ok(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    line("ok", format, arguments);
    va_end(arguments);
}

void info(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    line("info", format, arguments);
    va_end(arguments);
}

static hsa_status_t take_agent(hsa_agent_t agent, void *unused) {
    (void)unused;
    hsa_device_type_t type;
    HSA(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_CPU) cpu = agent;
    if (type == HSA_DEVICE_TYPE_GPU && gpu_count < MAX_AGENTS) gpus[gpu_count++] = agent;
    return HSA_STATUS_SUCCESS;
}

void start(void) {
    HSA(hsa_init());
    gpu_count = 0;
    HSA(hsa_iterate_agents(take_agent, NULL));
    CHECK(gpu_count > 0, "no GPU");
    // These kernels are nothing that a real one should be handed.
    CHECK(emulated("softgpu_get_counts") != NULL, "this is not the emulated GPU");
}

void stop(void) {
    in_the_middle_of = ", in hsa_shut_down";
    HSA(hsa_shut_down());
    in_the_middle_of = "";
}

struct softgpu_counts counts(void) {
    struct softgpu_counts counts;
    int (*get)(struct softgpu_counts *, size_t) =
        (int (*)(struct softgpu_counts *, size_t))emulated("softgpu_get_counts");
    CHECK(get != NULL && get(&counts, sizeof counts) == 0, "the emulated GPU does not count");
    return counts;
}

uint64_t now(void) {
    uint64_t ticks;
    HSA(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &ticks));
    return ticks;
}

uint64_t ticks_per_second(void) {
    uint64_t ticks;
    HSA(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &ticks));
    return ticks;
}

void pause_us(unsigned microseconds) {
    struct timespec time = {microseconds / 1000000, microseconds % 1000000 * 1000};
    while (nanosleep(&time, &time) != 0) {
    }
}

static void unexpected(hsa_status_t status, hsa_queue_t *queue, void *data) {
    (void)data;
    fail(__FILE__, __LINE__, "queue %p reports %#x", (void *)queue, status);
}

hsa_queue_t *queue_of(hsa_agent_t agent, uint32_t size) {
    hsa_queue_t *queue;
    HSA(hsa_queue_create(agent, size, HSA_QUEUE_TYPE_MULTI, unexpected, NULL, 0, 0, &queue));
    CHECK(queue->size >= size, "its size is %u", queue->size);
    return queue;
}

hsa_signal_t signal_of(hsa_signal_value_t value) {
    hsa_signal_t signal;
    HSA(hsa_signal_create(value, 0, NULL, &signal));
    return signal;
}

uint64_t reserve(hsa_queue_t *queue, uint64_t n) {
    uint64_t first = hsa_queue_add_write_index_scacq_screl(queue, n);
    while (first + n - hsa_queue_load_read_index_scacquire(queue) > queue->size) sched_yield();
    return first;
}

static void *slot(hsa_queue_t *queue, uint64_t index) {
    return (char *)queue->base_address + index % queue->size * 64;
}

// The header last: with it the packet is the GPU's.
static void publish(void *packet, hsa_packet_type_t type, bool barrier, uint16_t setup) {
    uint16_t header = (uint16_t)(type << HSA_PACKET_HEADER_TYPE |
                                 barrier << HSA_PACKET_HEADER_BARRIER |
                                 HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_ACQUIRE_FENCE_SCOPE |
                                 HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_RELEASE_FENCE_SCOPE);
    __atomic_store_n((uint32_t *)packet, header | (uint32_t)setup << 16, __ATOMIC_RELEASE);
}

void put_kernel(hsa_queue_t *queue, uint64_t index, struct kernel kernel) {
    hsa_kernel_dispatch_packet_t *packet = slot(queue, index);
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    packet->workgroup_size_x = packet->workgroup_size_y = packet->workgroup_size_z = 1;
    packet->grid_size_x = packet->grid_size_y = packet->grid_size_z = 1;
    packet->reserved0 = 0x50f7;
    packet->private_segment_size = (uint32_t)kernel.value;
    packet->kernel_object = (uint64_t)kernel.id << 32 | kernel.ends << 8 | kernel.runs;
    uint64_t argument = kernel.runs == RUNS_UNTIL ? kernel.until.handle : kernel.ns;
    packet->kernarg_address = (void *)(uintptr_t)argument;
    packet->completion_signal = kernel.completion;
    publish(packet, HSA_PACKET_TYPE_KERNEL_DISPATCH, kernel.barrier,
            1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS);
}

void ring(hsa_queue_t *queue, uint64_t index) {
    hsa_signal_store_screlease(queue->doorbell_signal, (hsa_signal_value_t)index);
}

void dispatch(hsa_queue_t *queue, struct kernel kernel) {
    uint64_t index = reserve(queue, 1);
    put_kernel(queue, index, kernel);
    ring(queue, index);
}

void barrier(hsa_queue_t *queue, bool any, const hsa_signal_t *waits, unsigned n,
             hsa_signal_t completion) {
    CHECK(n <= 5, "a packet has five at most");
    uint64_t index = reserve(queue, 1);
    // The two kinds have the same fields.
    hsa_barrier_and_packet_t *packet = slot(queue, index);
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    for (unsigned i = 0; i < n; i++) packet->dep_signal[i] = waits[i];
    packet->completion_signal = completion;
    // With the barrier bit, as everybody sends them: what follows has to wait.
    publish(packet, any ? HSA_PACKET_TYPE_BARRIER_OR : HSA_PACKET_TYPE_BARRIER_AND, true, 0);
    ring(queue, index);
}

void at_once(hsa_queue_t *queue, hsa_signal_t completion) {
    uint64_t index = reserve(queue, 1);
    hsa_barrier_and_packet_t *packet = slot(queue, index);
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    packet->completion_signal = completion;
    publish(packet, HSA_PACKET_TYPE_BARRIER_AND, false, 0);
    ring(queue, index);
}

void barrier_value(hsa_queue_t *queue, hsa_signal_t signal, hsa_signal_condition32_t condition,
                   hsa_signal_value_t value, hsa_signal_value_t mask) {
    uint64_t index = reserve(queue, 1);
    hsa_amd_barrier_value_packet_t *packet = slot(queue, index);
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    packet->signal = signal;
    packet->value = value;
    packet->mask = mask;
    packet->cond = condition;
    // The format stands where a kernel's packet has its setup.
    publish(packet, HSA_PACKET_TYPE_VENDOR_SPECIFIC, true, HSA_AMD_PACKET_TYPE_BARRIER_VALUE);
    ring(queue, index);
}

hsa_signal_value_t wait_for(hsa_signal_t signal) {
    hsa_signal_value_t value;
    // A wait may return early, with whatever the value is.
    do {
        value = hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX,
                                          HSA_WAIT_STATE_BLOCKED);
    } while (value >= 1);
    return value;
}

void wait_count(const atomic_uint *count, unsigned value) {
    while (atomic_load(count) < value) pause_us(50);
}

pthread_t spawn(void *(*run)(void *), void *argument) {
    pthread_t thread;
    int error = pthread_create(&thread, NULL, run, argument);
    CHECK(error == 0, "no thread: %s", strerror(error));
    return thread;
}

void join(pthread_t thread) { CHECK(pthread_join(thread, NULL) == 0, "a thread"); }

static const struct scenario *const all[] = {
    load_scenarios,  barrier_scenarios, destroy_scenarios, lifetime_scenarios,
    error_scenarios, signal_scenarios,  memory_scenarios,  profiled_scenarios,
};

int main(int count, char **arguments) {
    if (count == 2 || count == 3) {
        unsigned seconds = count == 3 ? (unsigned)atoi(arguments[2]) : 60;
        for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
            for (const struct scenario *s = all[i]; s->name; s++) {
                if (strcmp(s->name, arguments[1]) != 0) continue;
                CHECK(set_deadline(seconds), "no deadline");
                s->run();
                ok("%s", s->name);
                return 0;
            }
        }
    }
    fprintf(stderr, "usage: %s SCENARIO [SECONDS]; scenarios:\n", arguments[0]);
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        for (const struct scenario *s = all[i]; s->name; s++) fprintf(stderr, "  %s\n", s->name);
    return 2;
}
