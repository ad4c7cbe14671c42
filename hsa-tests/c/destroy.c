// Queues that go: with work pending, at its completion, from a handler's thread.
#include "client.h"

#include <stdio.h>

// Another queue, whose kernels must go on whatever becomes of the rest.
struct background {
    hsa_queue_t *queue;
    atomic_bool end;
    pthread_t thread;
    unsigned kernels;
};

static void *work(void *argument) {
    struct background *background = argument;
    hsa_signal_t over = signal_of(0);
    while (!atomic_load(&background->end)) {
        hsa_signal_store_relaxed(over, 4);
        for (unsigned i = 0; i < 4; i++)
            dispatch(background->queue, (struct kernel){.ns = 5000, .completion = over});
        wait_for(over);
        background->kernels += 4;
    }
    HSA(hsa_signal_destroy(over));
    return NULL;
}

static void begin_background(struct background *background) {
    *background = (struct background){.queue = queue_of(gpus[0], 64)};
    background->thread = spawn(work, background);
}

static void end_background(struct background *background) {
    atomic_store(&background->end, true);
    join(background->thread);
    CHECK(background->kernels > 0, "nothing ran beside");
    HSA(hsa_queue_destroy(background->queue));
}

// Some kernels run, some wait for them, some behind a barrier packet that is never satisfied.
static void pending(void) {
    start();
    struct background background;
    begin_background(&background);
    hsa_signal_t never = signal_of(1);
    enum { ROUNDS = 40, KERNELS = 12 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        hsa_queue_t *queue = queue_of(gpus[0], 64);
        hsa_signal_t over[KERNELS];
        for (unsigned i = 0; i < KERNELS; i++) {
            over[i] = signal_of(1);
            if (i == KERNELS / 2 && round % 2) barrier(queue, false, &never, 1, (hsa_signal_t){0});
            struct kernel kernel = {.ns = 1000000, .completion = over[i], .barrier = i % 3 == 0};
            if (round % 4 == 3) kernel.runs = RUNS_FOREVER;
            dispatch(queue, kernel);
        }
        // From nothing has begun to some have ended.
        pause_us(round % 5 * 700);
        HSA(hsa_queue_destroy(queue));
        for (unsigned i = 0; i < KERNELS; i++) HSA(hsa_signal_destroy(over[i]));
    }
    end_background(&background);
    HSA(hsa_signal_destroy(never));
    struct softgpu_counts counted = counts();
    CHECK(counted.stale_packets == 0, "%lu", counted.stale_packets);
    ok("destroy-pending rounds=%u", ROUNDS);
    stop();
}

// A queue whose last kernel's completion is waited for by a thread that destroys the queue.
struct short_lived {
    hsa_queue_t *queue;
    hsa_signal_t over;
};

static void *wait_and_destroy(void *argument) {
    struct short_lived *it = argument;
    wait_for(it->over);
    HSA(hsa_queue_destroy(it->queue));
    HSA(hsa_signal_destroy(it->over));
    return NULL;
}

static void at_completion(void) {
    start();
    struct background background;
    begin_background(&background);
    enum { ROUNDS = 60, QUEUES = 3 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct short_lived lived[QUEUES];
        pthread_t threads[QUEUES];
        for (unsigned i = 0; i < QUEUES; i++) {
            lived[i] = (struct short_lived){queue_of(gpus[0], 64), signal_of(1 + round % 4)};
            threads[i] = spawn(wait_and_destroy, &lived[i]);
        }
        for (unsigned k = 0; k < 1 + round % 4; k++)
            for (unsigned i = 0; i < QUEUES; i++)
                dispatch(lived[i].queue, (struct kernel){.ns = 2000, .completion = lived[i].over});
        for (unsigned i = 0; i < QUEUES; i++) join(threads[i]);
    }
    end_background(&background);
    CHECK(counts().stale_packets == 0, "%lu", counts().stale_packets);
    ok("destroy-at-completion queues=%u", ROUNDS * QUEUES);
    stop();
}

// A handler passes its queue to a thread that destroys it: in the handler itself hsa_queue_destroy
// would wait for the very thread that it runs on.
struct handed {
    struct short_lived lived;
    atomic_bool over;
};

static bool hand_over(hsa_signal_value_t value, void *argument) {
    struct handed *handed = argument;
    CHECK(value == 0, "%ld", (long)value);
    atomic_store(&handed->over, true);
    return false;
}

static void from_handler(void) {
    start();
    struct background background;
    begin_background(&background);
    enum { ROUNDS = 100 };
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct handed handed = {.lived = {queue_of(gpus[0], 64), signal_of(3)}};
        HSA(hsa_amd_signal_async_handler(handed.lived.over, HSA_SIGNAL_CONDITION_LT, 1, hand_over,
                                         &handed));
        for (unsigned k = 0; k < 3; k++)
            dispatch(handed.lived.queue,
                     (struct kernel){.ns = 3000, .completion = handed.lived.over});
        while (!atomic_load(&handed.over)) pause_us(5);
        wait_and_destroy(&handed.lived);
    }
    end_background(&background);
    ok("destroy-from-handler queues=%u", ROUNDS);
    stop();
}

const struct scenario destroy_scenarios[] = {
    {"destroy-pending", pending},
    {"destroy-at-completion", at_completion},
    {"destroy-from-handler", from_handler},
    {NULL, NULL},
};
