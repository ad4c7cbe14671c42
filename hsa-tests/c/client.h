// What the scenarios share. They are ordinary HSA applications: nothing here knows of a serializer.
#pragma once

#include "emulated.h"

#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MAX_AGENTS = 8 };

// The GPUs and the CPU, since hsa_init.
extern hsa_agent_t gpus[MAX_AGENTS];
extern unsigned gpu_count;
extern hsa_agent_t cpu;

// Ends the program with exit code 1.
_Noreturn void fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

// Unlike assert, always there.
#define CHECK(condition, ...)                                                                      \
    do {                                                                                           \
        if (!(condition)) fail(__FILE__, __LINE__, #condition "; " __VA_ARGS__);                   \
    } while (0)

// A call that has to succeed.
#define HSA(call)                                                                                  \
    do {                                                                                           \
        hsa_status_t status_ = (call);                                                             \
        if (status_ != HSA_STATUS_SUCCESS) fail(__FILE__, __LINE__, #call " gave %#x", status_);   \
    } while (0)

// A line that must be the same in every run, with and without tools.
void ok(const char *format, ...) __attribute__((format(printf, 1, 2)));
// A line that may differ.
void info(const char *format, ...) __attribute__((format(printf, 1, 2)));

// hsa_init, and the agents.
void start(void);
void stop(void);

// What the emulated GPU counted so far.
struct softgpu_counts counts(void);

// The system's clock, in its own ticks, and how many of them a second has.
uint64_t now(void);
uint64_t ticks_per_second(void);
void pause_us(unsigned microseconds);

hsa_queue_t *queue_of(hsa_agent_t agent, uint32_t size);

hsa_signal_t signal_of(hsa_signal_value_t value);

// What an emulated kernel does.
enum runs { RUNS_FOR, RUNS_UNTIL, RUNS_FOREVER };
enum ends { ENDS_WELL, ENDS_BADLY, ENDS_FAULT };

struct kernel {
    enum runs runs;
    uint64_t ns;          // RUNS_FOR
    hsa_signal_t until;   // RUNS_UNTIL: until it is below 1
    enum ends ends;
    int32_t value;        // ENDS_BADLY: what its completion signal gets, negative
    hsa_signal_t completion;
    bool barrier;         // the barrier bit
    uint32_t id;
};

// Packets are made by the protocol of several producers: reserve, write, publish, ring.
uint64_t reserve(hsa_queue_t *queue, uint64_t n);
void put_kernel(hsa_queue_t *queue, uint64_t index, struct kernel kernel);
void ring(hsa_queue_t *queue, uint64_t index);

void dispatch(hsa_queue_t *queue, struct kernel kernel);

// A barrier-AND or barrier-OR packet; at most five signals.
void barrier(hsa_queue_t *queue, bool any, const hsa_signal_t *waits, unsigned n,
             hsa_signal_t completion);

// One that waits for nothing, without the barrier bit.
void at_once(hsa_queue_t *queue, hsa_signal_t completion);

// AMD's packet that waits until the signal's value, masked, compares so.
void barrier_value(hsa_queue_t *queue, hsa_signal_t signal, hsa_signal_condition32_t condition,
                   hsa_signal_value_t value, hsa_signal_value_t mask);

// Until it is below 1; its value then.
hsa_signal_value_t wait_for(hsa_signal_t signal);

// Until it is that much.
void wait_count(const atomic_uint *count, unsigned value);

pthread_t spawn(void *(*run)(void *), void *argument);
void join(pthread_t thread);

// A scenario starts with hsa_init not called, and leaves it so.
struct scenario {
    const char *name;
    void (*run)(void);
};
extern const struct scenario load_scenarios[], barrier_scenarios[], destroy_scenarios[],
    lifetime_scenarios[], error_scenarios[], signal_scenarios[], memory_scenarios[],
    profiled_scenarios[];
