// Applications of which a skeleton has to know, in the style of hsa-tests/c, whose client.c and errors.c they are
// compiled with.
#include "../../../hsa-tests/c/client.h"

#include <stddef.h>

// A queue of the CPU, which the runtime refuses; the application goes on.
static void cpu_queue(void) {
    start();
    hsa_queue_t *none;
    hsa_status_t status = hsa_queue_create(cpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, 0, 0, &none);
    ok("cpu-queue status=%#x", status);
    hsa_queue_t *queue = queue_of(gpus[0], 64);
    hsa_signal_t over = signal_of(1);
    dispatch(queue, (struct kernel){.ns = 1000, .completion = over});
    wait_for(over);
    HSA(hsa_queue_destroy(queue));
    HSA(hsa_signal_destroy(over));
    stop();
}

// Fewer than the ring has room for, and more than a skeleton lets under way.
enum { MANY = 110 };

struct flood {
    hsa_queue_t *queue;
    hsa_signal_t over;
};

static bool flood(hsa_signal_value_t value, void *argument) {
    (void)value;
    struct flood *flood = argument;
    for (unsigned i = 0; i < MANY; i++)
        dispatch(flood->queue, (struct kernel){.ns = 1000, .completion = flood->over});
    return false;
}

// The first handler of all is the application's own, and dispatches: on its thread nobody may wait for completions.
static void first_handler(void) {
    start();
    struct flood flooded = {.queue = queue_of(gpus[0], 64), .over = signal_of(MANY)};
    hsa_signal_t begin = signal_of(0);
    HSA(hsa_amd_signal_async_handler(begin, HSA_SIGNAL_CONDITION_LT, 1, flood, &flooded));
    wait_for(flooded.over);
    HSA(hsa_queue_destroy(flooded.queue));
    HSA(hsa_signal_destroy(flooded.over));
    HSA(hsa_signal_destroy(begin));
    stop();
}

// Its queue is not destroyed at first (refuses.c), and goes on.
static void refused(void) {
    start();
    hsa_queue_t *queue = queue_of(gpus[0], 64);
    CHECK(hsa_queue_destroy(queue) == HSA_STATUS_ERROR, "it was not refused");
    for (unsigned i = 0; i < 10; i++) {
        hsa_signal_t over = signal_of(1);
        dispatch(queue, (struct kernel){.ns = 1000, .completion = over});
        wait_for(over);
        HSA(hsa_signal_destroy(over));
    }
    HSA(hsa_queue_destroy(queue));
    stop();
}

const struct scenario load_scenarios[] = {
    {"cpu-queue", cpu_queue},
    {"first-handler", first_handler},
    {"refused", refused},
    {NULL, NULL},
};
const struct scenario barrier_scenarios[1], destroy_scenarios[1], lifetime_scenarios[1], signal_scenarios[1],
    memory_scenarios[1], profiled_scenarios[1];
