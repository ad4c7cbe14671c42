// Waiting on signals, by the host's threads and by handlers; and the timestamps in them.
#include "client.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { WAITERS = 5, ROUNDS = 60 };

static hsa_signal_t waited[ROUNDS];

static void *wait_for_all(void *argument) {
    bool active = *(bool *)argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (!active) {
            wait_for(waited[i]);
            continue;
        }
        while (hsa_signal_wait_scacquire(waited[i], HSA_SIGNAL_CONDITION_LT, 1, 1000000,
                                         HSA_WAIT_STATE_ACTIVE) >= 1) {
        }
    }
    return NULL;
}

// All of several threads that wait for the same signals wake up, for kernels and for the host.
static void several(hsa_queue_t *queue) {
    static bool actives[WAITERS] = {[0] = true};
    pthread_t threads[WAITERS];
    for (unsigned i = 0; i < ROUNDS; i++) waited[i] = signal_of(1);
    for (unsigned i = 0; i < WAITERS; i++) threads[i] = spawn(wait_for_all, &actives[i]);
    for (unsigned i = 0; i < ROUNDS; i++) {
        if (i % 8 == 0) pause_us(1000); // that they really sleep
        if (i % 3) {
            dispatch(queue, (struct kernel){.ns = 3000, .completion = waited[i]});
            wait_for(waited[i]);
        } else {
            hsa_signal_subtract_screlease(waited[i], 1);
        }
    }
    for (unsigned i = 0; i < WAITERS; i++) join(threads[i]);
    for (unsigned i = 0; i < ROUNDS; i++) HSA(hsa_signal_destroy(waited[i]));
    ok("waits threads=%u rounds=%u", WAITERS, ROUNDS);
}

static void timeouts(hsa_queue_t *queue) {
    hsa_signal_t over = signal_of(1), go = signal_of(1);
    dispatch(queue, (struct kernel){.runs = RUNS_UNTIL, .until = go, .completion = over});
    uint64_t second = ticks_per_second(), before = now();
    hsa_signal_value_t value = hsa_signal_wait_scacquire(over, HSA_SIGNAL_CONDITION_LT, 1,
                                                         second / 100, HSA_WAIT_STATE_BLOCKED);
    uint64_t took = now() - before;
    CHECK(value == 1, "%ld", (long)value);
    CHECK(took >= second / 100 && took < second * 5, "a timeout of 10 ms took %lu ticks", took);
    hsa_signal_store_screlease(go, 0);
    wait_for(over);

    hsa_signal_t any[3] = {signal_of(1), signal_of(1), signal_of(1)};
    hsa_signal_condition_t conditions[3] = {
        HSA_SIGNAL_CONDITION_LT, HSA_SIGNAL_CONDITION_EQ, HSA_SIGNAL_CONDITION_LT};
    hsa_signal_value_t values[3] = {1, 5, 1};
    dispatch(queue, (struct kernel){.ns = 3000000, .completion = any[2]});
    uint32_t index = hsa_amd_signal_wait_any(3, any, conditions, values, UINT64_MAX,
                                             HSA_WAIT_STATE_BLOCKED, &value);
    CHECK(index == 2 && value == 0, "index %u, value %ld", index, (long)value);
    for (unsigned i = 0; i < 3; i++) HSA(hsa_signal_destroy(any[i]));
    HSA(hsa_signal_destroy(over));
    HSA(hsa_signal_destroy(go));
    ok("waits timeouts");
}

static atomic_uint interruptions;

static void on_interruption(int number) {
    (void)number;
    atomic_fetch_add(&interruptions, 1);
}

// Waits under a timer that interrupts system calls, as sampling profilers do.
static void interrupted(hsa_queue_t *queue) {
    struct sigaction action = {.sa_handler = on_interruption};
    CHECK(sigaction(SIGRTMIN, &action, NULL) == 0, "sigaction");
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN};
    timer_t timer;
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "timer_create");
    struct itimerspec often = {{0, 200000}, {0, 200000}};
    CHECK(timer_settime(timer, 0, &often, NULL) == 0, "timer_settime");
    hsa_signal_t over = signal_of(1);
    for (unsigned i = 0; i < 50; i++) {
        hsa_signal_store_relaxed(over, 1);
        dispatch(queue, (struct kernel){.ns = 2000000, .completion = over});
        CHECK(wait_for(over) == 0, "an interrupted wait");
    }
    CHECK(timer_delete(timer) == 0, "timer_delete");
    CHECK(interruptions > 50, "only %u interruptions", interruptions);
    HSA(hsa_signal_destroy(over));
    ok("waits interrupted");
}

static void waits(void) {
    start();
    hsa_queue_t *queue = queue_of(gpus[0], 64);
    several(queue);
    timeouts(queue);
    interrupted(queue);
    HSA(hsa_queue_destroy(queue));
    stop();
}

// A handler that stays registered until it has seen ten values.
static bool again(hsa_signal_value_t value, void *argument) {
    (void)value;
    return atomic_fetch_add((atomic_uint *)argument, 1) + 1 < 10;
}

// Handlers of one signal that goes up and down.
static void handlers(void) {
    start();
    hsa_queue_t *queue = queue_of(gpus[0], 64);
    atomic_uint calls = 0;
    hsa_signal_t signal = signal_of(1);
    HSA(hsa_amd_signal_async_handler(signal, HSA_SIGNAL_CONDITION_EQ, 0, again, &calls));
    dispatch(queue, (struct kernel){.ns = 1000, .completion = signal});
    // It stays 0, so that it is called again and again, until it has had enough.
    wait_count(&calls, 10);
    pause_us(2000);
    CHECK(calls == 10, "%u calls", calls);
    HSA(hsa_signal_destroy(signal));
    HSA(hsa_queue_destroy(queue));
    ok("handlers calls=%u", calls);
    stop();
}

// Start and end of kernels, in the host's clock.
static void profiling(void) {
    start();
    enum { KERNELS = 10 };
    uint64_t second = ticks_per_second();
    hsa_agent_t gpu = gpus[gpu_count - 1];
    hsa_queue_t *queue = queue_of(gpu, 64);
    HSA(hsa_amd_profiling_set_profiler_enabled(queue, 1));
    // Two clocks are compared, of which one was read some time ago.
    uint64_t slack = second / 100, last = 0;
    for (unsigned i = 0; i < KERNELS; i++) {
        hsa_signal_t over = signal_of(1);
        uint64_t before = now();
        dispatch(queue, (struct kernel){.ns = 2000000, .completion = over});
        wait_for(over);
        uint64_t after = now();
        hsa_amd_profiling_dispatch_time_t time;
        HSA(hsa_amd_profiling_get_dispatch_time(gpu, over, &time));
        CHECK(time.start < time.end, "from %lu to %lu", time.start, time.end);
        CHECK(time.start + slack > before && time.end < after + slack,
              "[%lu, %lu] is not within [%lu, %lu]", time.start, time.end, before, after);
        uint64_t took = time.end - time.start;
        CHECK(took >= second / 550, "a kernel of 2 ms took %lu of %lu ticks a second", took, second);
        CHECK(time.start + slack / 100 >= last, "it started before its predecessor had ended");
        last = time.end;
        HSA(hsa_signal_destroy(over));
    }
    HSA(hsa_queue_destroy(queue));
    ok("profiling kernels=%u", KERNELS);
    stop();
}

const struct scenario signal_scenarios[] = {
    {"waits", waits},
    {"handlers", handlers},
    {"profiling", profiling},
    {NULL, NULL},
};
