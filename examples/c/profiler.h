/* The skeleton of a profiler in C that lets one kernel at a time run, while that is wanted, over the emulated GPU of
 * softgpu/c. What it does is what one over AMD's runtime does, by that runtime's names: tool.c.
 */
#ifndef PROFILER_H
#define PROFILER_H

#include <hsa_serializer.h>
#include <pthread.h>
#include <softgpu.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An AQL packet: 64 bytes, the type in the lowest byte of the header. */
struct packet {
    uint16_t header;
    uint8_t body[54];
    uint64_t completion_signal;
};

enum { PACKET_TYPE_KERNEL_DISPATCH = 2, PACKET_BARRIER_BIT = 1 << 8 };

struct flight;

/* A queue of the application's that the profiler watches. Its memory lives as long as the profiler, since handlers
 * may be late. */
struct watched {
    struct profiler *profiler;
    uint64_t queue;               /* the emulated GPU's */
    hsa_serializer_queue_t half;  /* the serializer's */
    struct flight *flights;       /* what was dispatched and has not ended; under the profiler's lock */
    struct watched *next;
};

/* One GPU's. */
struct profiler {
    softgpu_t *gpu;
    uint64_t agent;
    hsa_serializer_t serializer;
    pthread_mutex_t lock;  /* the list of queues, and their lists of flights */
    struct watched *queues;
    /* Kernels: taken to the serializer, of these serialized, passed on as they were, heard of. */
    atomic_uint_fast64_t dispatched, serialized, passed_on, completed;
    /* Signals of flights that live, and what the serializer has reported. */
    atomic_uint_fast64_t signals, reports;
    /* A mistake on purpose, for the checks to find: kernels pass the serializer by. */
    bool unseen;
};

bool profiler_start(struct profiler *profiler, softgpu_t *gpu, uint64_t agent);

/* The application's calls, as they come to a profiler. */
struct watched *profiler_queue_create(struct profiler *profiler, size_t slots);
void profiler_queue_destroy(struct watched *watched);

/* roctx's resume and pause: on and off, at any time. */
bool profiler_set(struct profiler *profiler, bool on);

/* Waits until what was dispatched before this call has ended. */
bool profiler_drain(struct profiler *profiler, uint64_t timeout_ns);

/* Ends the serializer; the queues have been destroyed, or go on without it. False if something is left. */
bool profiler_finish(struct profiler *profiler, uint64_t timeout_ns);

#endif
