// Applications of which a skeleton has to know, in the style of hsa-tests/c, whose client.c they are compiled with,
// beside errors.c and profiled.c, which have others.
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
    {"refused", refused},
    {NULL, NULL},
};
const struct scenario barrier_scenarios[1], destroy_scenarios[1], lifetime_scenarios[1], signal_scenarios[1],
    memory_scenarios[1];
