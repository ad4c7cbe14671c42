// Many packets: at full rate, in batches, more than a ring holds, out of order.
#include "client.h"

#include <stdio.h>
#include <stdlib.h>

enum { QUEUES = 3, PRODUCERS = 2, KERNELS = 250, AHEAD = 24 };

struct producer {
    hsa_queue_t *queue;
    unsigned seed;
    atomic_uint handled;
};

struct flight {
    struct producer *producer;
    hsa_signal_t signal;
};

// The signal is destroyed where its kernel is known to be over, so that handles go round quickly.
static bool completed(hsa_signal_value_t value, void *argument) {
    struct flight *flight = argument;
    CHECK(value == 0, "a completion signal is %ld", (long)value);
    HSA(hsa_signal_destroy(flight->signal));
    atomic_fetch_add(&flight->producer->handled, 1);
    free(flight);
    return false;
}

static void *produce(void *argument) {
    struct producer *producer = argument;
    for (unsigned i = 0; i < KERNELS; i++) {
        while (i - atomic_load(&producer->handled) >= AHEAD) pause_us(20);
        struct flight *flight = malloc(sizeof *flight);
        CHECK(flight != NULL, "memory");
        *flight = (struct flight){producer, signal_of(1)};
        // Registered first: once it is dispatched, the handler may run and free it.
        HSA(hsa_amd_signal_async_handler(flight->signal, HSA_SIGNAL_CONDITION_LT, 1, completed,
                                         flight));
        unsigned dice = (unsigned)rand_r(&producer->seed);
        dispatch(producer->queue, (struct kernel){
                                      .ns = dice % 4 * 1000,
                                      .barrier = dice / 4 % 4 == 0,
                                      .completion = flight->signal,
                                  });
    }
    wait_count(&producer->handled, KERNELS);
    return NULL;
}

// Two producers for each of three queues of each GPU.
static void rate(void) {
    start();
    enum { EACH = QUEUES * PRODUCERS };
    static struct producer producers[MAX_AGENTS * EACH];
    pthread_t threads[MAX_AGENTS * EACH];
    hsa_queue_t *queues[MAX_AGENTS * QUEUES];
    unsigned n = gpu_count * EACH;
    for (unsigned q = 0; q < gpu_count * QUEUES; q++) queues[q] = queue_of(gpus[q / QUEUES], 256);
    for (unsigned i = 0; i < n; i++) {
        producers[i] = (struct producer){.queue = queues[i / PRODUCERS], .seed = i + 1};
        threads[i] = spawn(produce, &producers[i]);
    }
    for (unsigned i = 0; i < n; i++) join(threads[i]);
    for (unsigned q = 0; q < gpu_count * QUEUES; q++) HSA(hsa_queue_destroy(queues[q]));
    struct softgpu_counts counted = counts();
    CHECK(counted.stale_packets == 0, "%lu", counted.stale_packets);
    CHECK(counted.kernels_ended == n * KERNELS, "%lu kernels ran", counted.kernels_ended);
    ok("rate gpus=%u kernels=%lu", gpu_count, counted.kernels_ended);
    stop();
}

// Long kernels on several queues, dispatched before any ends: how many run at a time is what a
// serializer changes.
static void together(void) {
    enum { N = 4, EACH = 5 };
    start();
    hsa_queue_t *queues[N];
    hsa_signal_t over = signal_of(N * EACH);
    for (unsigned q = 0; q < N; q++) queues[q] = queue_of(gpus[0], 64);
    for (unsigned i = 0; i < N * EACH; i++)
        dispatch(queues[i % N], (struct kernel){.ns = 3000000, .completion = over});
    wait_for(over);
    struct softgpu_counts counted = counts();
    info("together running=%lu", counted.most_running);
    ok("together kernels=%lu", counted.kernels_ended);
    for (unsigned q = 0; q < N; q++) HSA(hsa_queue_destroy(queues[q]));
    HSA(hsa_signal_destroy(over));
    stop();
}

// Batches of `size` packets, each with one ring of the doorbell; two are in flight at a time where
// the ring holds them.
static void batches_of(hsa_queue_t *queue, unsigned size, unsigned rounds) {
    hsa_signal_t over = signal_of(size * rounds);
    for (unsigned round = 0; round < rounds; round++) {
        uint64_t first = reserve(queue, size);
        for (unsigned i = 0; i < size; i++)
            put_kernel(queue, first + i, (struct kernel){.ns = 500, .completion = over});
        ring(queue, first + size - 1);
    }
    wait_for(over);
    HSA(hsa_signal_destroy(over));
}

// Nearly the ring, across its end; and many more packets than it has slots.
static void batches(void) {
    start();
    hsa_queue_t *queue = queue_of(gpus[0], 64);
    unsigned kernels = 0;
    static const unsigned sizes[][2] = {{63, 12}, {5, 60}, {1, 500}, {17, 40}, {63, 12}};
    for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        batches_of(queue, sizes[i][0], sizes[i][1]);
        kernels += sizes[i][0] * sizes[i][1];
    }
    CHECK(counts().kernels_ended == kernels, "%lu of %u ran", counts().kernels_ended, kernels);
    // With a tool the ring may be longer than was asked for, and a program may use all of it.
    info("batches size=%u", queue->size);
    batches_of(queue, queue->size - 1, 6);
    HSA(hsa_queue_destroy(queue));
    ok("batches kernels=%u", kernels);
    stop();
}

// The second slot is published and rung for before the first: nothing may run before the first is.
static void unpublished(void) {
    start();
    hsa_queue_t *queue = queue_of(gpus[0], 64);
    for (unsigned round = 0; round < 40; round++) {
        hsa_signal_t over[2] = {signal_of(1), signal_of(1)};
        uint64_t first = reserve(queue, 1), second = reserve(queue, 1);
        put_kernel(queue, second, (struct kernel){.ns = 100, .completion = over[1]});
        ring(queue, second);
        pause_us(1000);
        CHECK(hsa_signal_load_scacquire(over[1]) == 1, "it ran, round %u", round);
        put_kernel(queue, first, (struct kernel){.ns = 100, .completion = over[0]});
        ring(queue, first);
        for (unsigned i = 0; i < 2; i++) {
            wait_for(over[i]);
            HSA(hsa_signal_destroy(over[i]));
        }
    }
    HSA(hsa_queue_destroy(queue));
    ok("unpublished kernels=%lu", counts().kernels_ended);
    stop();
}

const struct scenario load_scenarios[] = {
    {"rate", rate},
    {"together", together},
    {"batches", batches},
    {"unpublished", unpublished},
    {NULL, NULL},
};
