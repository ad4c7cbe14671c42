// Kernels that fail.
#include "client.h"

#include <stdio.h>

struct error {
    atomic_uint calls;
    hsa_status_t status;
    hsa_queue_t *queue;
};

static void on_error(hsa_status_t status, hsa_queue_t *queue, void *data) {
    struct error *error = data;
    error->status = status;
    error->queue = queue;
    atomic_fetch_add(&error->calls, 1);
}

// A kernel faults: its queue stops and says so; the others go on, and so do new ones.
static void fault(void) {
    start();
    hsa_queue_t *other = queue_of(gpus[gpu_count - 1], 64);
    enum { ROUNDS = 6 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct error error = {0};
        hsa_queue_t *queue;
        HSA(hsa_queue_create(gpus[0], 64, HSA_QUEUE_TYPE_MULTI, on_error, &error, 0, 0, &queue));
        hsa_signal_t before = signal_of(1), faulty = signal_of(1), after = signal_of(1);
        dispatch(queue, (struct kernel){.ns = 1000, .completion = before});
        wait_for(before);
        dispatch(queue, (struct kernel){.ns = 1000, .ends = ENDS_FAULT, .completion = faulty});
        dispatch(queue, (struct kernel){.ns = 1000, .barrier = true, .completion = after});
        hsa_signal_t over = signal_of(50);
        for (unsigned i = 0; i < 50; i++)
            dispatch(other, (struct kernel){.ns = 2000, .completion = over});
        wait_count(&error.calls, 1);
        wait_for(over);
        CHECK(error.calls == 1, "%u calls", error.calls);
        CHECK(hsa_signal_load_scacquire(faulty) == 1, "the faulty kernel completed");
        CHECK(hsa_signal_load_scacquire(after) == 1, "a kernel behind it completed");
        if (round == 0) {
            ok("fault status=%#x", error.status);
            // Some versions hand over the queue beneath an intercepted one.
            info("fault same-queue=%d", error.queue == queue);
        }
        HSA(hsa_queue_destroy(queue));
        hsa_signal_t signals[] = {before, faulty, after, over};
        for (unsigned i = 0; i < 4; i++) HSA(hsa_signal_destroy(signals[i]));
    }
    HSA(hsa_queue_destroy(other));
    ok("fault rounds=%u", ROUNDS);
    stop();
}

static bool store_value(hsa_signal_value_t value, void *argument) {
    atomic_store((_Atomic hsa_signal_value_t *)argument, value);
    return false;
}

// A kernel ends badly: its completion signal gets a negative value, which the waiter and the
// handler see; its queue goes on.
static void failed(void) {
    start();
    hsa_queue_t *queue = queue_of(gpus[0], 64);
    for (int i = 1; i <= 20; i++) {
        hsa_signal_t over = signal_of(1), next = signal_of(1);
        _Atomic hsa_signal_value_t handled = 1;
        HSA(hsa_amd_signal_async_handler(over, HSA_SIGNAL_CONDITION_LT, 1, store_value,
                                         (void *)&handled));
        dispatch(queue, (struct kernel){
                            .ns = 1000, .ends = ENDS_BADLY, .value = -i, .completion = over});
        dispatch(queue, (struct kernel){.ns = 1000, .barrier = true, .completion = next});
        hsa_signal_value_t value = wait_for(over);
        CHECK(value == -i, "%ld instead of %d", (long)value, -i);
        CHECK(wait_for(next) == 0, "the next kernel");
        while (atomic_load(&handled) == 1) pause_us(10);
        CHECK(handled == -i, "the handler got %ld", (long)handled);
        HSA(hsa_signal_destroy(over));
        HSA(hsa_signal_destroy(next));
    }
    HSA(hsa_queue_destroy(queue));
    ok("failed");
    stop();
}

const struct scenario error_scenarios[] = {
    {"fault", fault},
    {"failed", failed},
    {NULL, NULL},
};
