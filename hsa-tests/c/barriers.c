// Barrier packets and barrier bits across queues.
#include "client.h"

#include <stdio.h>

static bool is_over(hsa_signal_t signal) { return hsa_signal_load_scacquire(signal) < 1; }

// One queue waits for kernels of the others, of all five, by barrier-AND.
//
// With `ahead`, the waiting queue is the first to be given its packets. A profiler can serialize
// that, but not turn serializing on or off in between: that makes what comes later wait for all that
// came before.
static void all_of(hsa_queue_t **queues, bool ahead) {
    for (unsigned round = 0; round < 30; round++) {
        hsa_signal_t deps[5], over = signal_of(1), passed = signal_of(1);
        for (unsigned i = 0; i < 5; i++) deps[i] = signal_of(1);
        for (unsigned step = 0; step < 2; step++) {
            if (ahead == (step == 0)) {
                barrier(queues[0], false, deps, 5, passed);
                dispatch(queues[0], (struct kernel){.ns = 100, .completion = over});
                continue;
            }
            for (unsigned i = 0; i < 5; i++)
                dispatch(queues[1 + i % 3],
                         (struct kernel){.ns = 100000 + 20000 * i, .completion = deps[i]});
        }
        wait_for(over);
        CHECK(is_over(passed), "its barrier packet is not over");
        for (unsigned i = 0; i < 5; i++) {
            CHECK(is_over(deps[i]), "it ran before kernel %u had ended", i);
            HSA(hsa_signal_destroy(deps[i]));
        }
        HSA(hsa_signal_destroy(over));
        HSA(hsa_signal_destroy(passed));
    }
    ok("barriers and");
}

// One of them, by barrier-OR; null signals don't count. The kernel that is waited for ends when we
// say so.
static void one_of(hsa_queue_t **queues) {
    for (unsigned round = 0; round < 30; round++) {
        hsa_signal_t never = signal_of(1), over = signal_of(1), go = signal_of(1);
        hsa_signal_t deps[5] = {{0}, never, {0}, signal_of(1), {0}};
        dispatch(queues[1],
                 (struct kernel){.runs = RUNS_UNTIL, .until = go, .completion = deps[3]});
        barrier(queues[0], true, deps, 5, (hsa_signal_t){0});
        dispatch(queues[0], (struct kernel){.ns = 100, .completion = over});
        pause_us(500);
        CHECK(!is_over(over), "it ran, and nothing had ended");
        hsa_signal_store_screlease(go, 0);
        wait_for(over);
        CHECK(is_over(deps[3]) && !is_over(never), "which one");
        hsa_signal_t signals[] = {never, over, go, deps[3]};
        for (unsigned i = 0; i < 4; i++) HSA(hsa_signal_destroy(signals[i]));
    }
    ok("barriers or");
}

// A barrier-AND for nothing holds nobody up.
static void nothing(hsa_queue_t **queues) {
    for (unsigned i = 0; i < 30; i++) {
        hsa_signal_t passed = signal_of(1);
        barrier(queues[i % 4], false, NULL, 0, passed);
        CHECK(wait_for(passed) == 0, "an empty barrier");
        HSA(hsa_signal_destroy(passed));
    }
    ok("barriers null");
}

// Each kernel waits for the one before it, round all queues. Every second one is short, and would be
// over long before its predecessor.
static void chain(hsa_queue_t **queues) {
    enum { LINKS = 60 };
    hsa_signal_t over[LINKS];
    for (unsigned i = 0; i < LINKS; i++) over[i] = signal_of(1);
    for (unsigned i = 0; i < LINKS; i++) {
        if (i > 0) barrier(queues[i % 4], false, &over[i - 1], 1, (hsa_signal_t){0});
        dispatch(queues[i % 4],
                 (struct kernel){.ns = i % 2 ? 100 : 150000, .completion = over[i]});
    }
    for (unsigned i = 1; i < LINKS; i += 2) {
        wait_for(over[i]);
        CHECK(is_over(over[i - 1]), "link %u was over before its predecessor", i);
    }
    for (unsigned i = 0; i < LINKS; i++) HSA(hsa_signal_destroy(over[i]));
    ok("barriers chain links=%u", LINKS);
}

// A kernel with the barrier bit waits for what is before it in its queue.
static void bit(hsa_queue_t **queues) {
    enum { ROUNDS = 20 };
    for (unsigned i = 0; i < ROUNDS; i++) {
        hsa_signal_t go = signal_of(1), before = signal_of(2), after = signal_of(1);
        dispatch(queues[i % 4],
                 (struct kernel){.runs = RUNS_UNTIL, .until = go, .completion = before});
        dispatch(queues[i % 4], (struct kernel){.ns = 100, .completion = before});
        dispatch(queues[i % 4], (struct kernel){.ns = 0, .barrier = true, .completion = after});
        pause_us(500);
        CHECK(!is_over(after), "it did not wait");
        hsa_signal_store_screlease(go, 0);
        wait_for(after);
        // A profiler that passes ends on by handlers, which come in any order, has to see to it.
        CHECK(is_over(before), "it was over before an earlier one");
        hsa_signal_t signals[] = {go, before, after};
        for (unsigned k = 0; k < 3; k++) HSA(hsa_signal_destroy(signals[k]));
    }
    ok("barriers bit rounds=%u", ROUNDS);
}

// AMD's packets that wait for a value, by each condition; a null signal holds nobody up.
static void value(hsa_queue_t **queues) {
    static const struct {
        hsa_signal_condition32_t condition;
        hsa_signal_value_t before, after;
    } cases[] = {{HSA_SIGNAL_CONDITION_EQ, 0x16, 0x15},
                 {HSA_SIGNAL_CONDITION_NE, 0x15, 0x16},
                 {HSA_SIGNAL_CONDITION_LT, 0x15, 0x14},
                 {HSA_SIGNAL_CONDITION_GTE, 0x14, 0x15}};
    for (unsigned i = 0; i < 4; i++) {
        hsa_signal_t waits = signal_of(cases[i].before), over = signal_of(1);
        barrier_value(queues[i], (hsa_signal_t){0}, HSA_SIGNAL_CONDITION_EQ, 1, -1);
        // Without the bit that differs between the signal's 0x1n and the 5 that is waited for.
        barrier_value(queues[i], waits, cases[i].condition, 5, 0xf);
        dispatch(queues[i], (struct kernel){.ns = 100, .completion = over});
        pause_us(3000);
        CHECK(!is_over(over), "case %u: it did not wait", i);
        hsa_signal_store_screlease(waits, cases[i].after);
        wait_for(over);
        HSA(hsa_signal_destroy(waits));
        HSA(hsa_signal_destroy(over));
    }
    ok("barriers value");
}

// While a kernel runs until the host says so, packets without the barrier bit execute at once, one after the other and
// many more than a ring holds; and a kernel is submitted behind them.
static void past_a_kernel(void) {
    enum { PACKETS = 1500 };
    start();
    hsa_queue_t *queue = queue_of(gpus[0], 64);
    hsa_signal_t go = signal_of(1), over = signal_of(2), passed = signal_of(1);
    dispatch(queue, (struct kernel){.runs = RUNS_UNTIL, .until = go, .completion = over});
    for (unsigned i = 0; i < PACKETS; i++) {
        hsa_signal_store_screlease(passed, 1);
        at_once(queue, passed);
        wait_for(passed);
    }
    dispatch(queue, (struct kernel){.ns = 100, .completion = over});
    CHECK(hsa_signal_load_scacquire(over) > 0, "it did not wait for the host");
    hsa_signal_store_screlease(go, 0);
    wait_for(over);
    HSA(hsa_queue_destroy(queue));
    hsa_signal_t signals[] = {go, over, passed};
    for (unsigned i = 0; i < 3; i++) HSA(hsa_signal_destroy(signals[i]));
    CHECK(counts().stale_packets == 0, "%lu", counts().stale_packets);
    ok("barriers-past-a-kernel packets=%u", PACKETS);
    stop();
}

// On queues of as many GPUs as there are.
static void on_four(void (*run)(hsa_queue_t **queues)) {
    start();
    hsa_queue_t *queues[4];
    for (unsigned i = 0; i < 4; i++) queues[i] = queue_of(gpus[i % gpu_count], 64);
    run(queues);
    for (unsigned i = 0; i < 4; i++) HSA(hsa_queue_destroy(queues[i]));
    CHECK(counts().stale_packets == 0, "%lu", counts().stale_packets);
    stop();
}

static void all_kinds(hsa_queue_t **queues) {
    all_of(queues, false);
    one_of(queues);
    nothing(queues);
    chain(queues);
    bit(queues);
    value(queues);
}

static void barriers(void) { on_four(all_kinds); }

static void all_of_ahead(hsa_queue_t **queues) { all_of(queues, true); }

static void ahead(void) { on_four(all_of_ahead); }

const struct scenario barrier_scenarios[] = {
    {"barriers", barriers},
    {"barriers-ahead", ahead},
    {"barriers-past-a-kernel", past_a_kernel},
    {NULL, NULL},
};
