/* The emulated GPU for programs in C and C++: what the examples and tests of hsa-serializer run on.
 *
 * It behaves as HSA says where a profiler that serializes kernels can tell, on real threads: one for each queue,
 * some for the handlers. It checks who uses it: kernels that must not have overlapped, packets that name signals
 * which are gone, calls that do.
 *
 * Statuses are HSA's: 0 is success. No panic comes out of a function; it comes to SOFTGPU_PANIC, or to what the
 * function says. Every function may be called by several threads at once, but softgpu_destroy(). Handles of
 * queues and signals are numbers, and one that is gone does no harm.
 */

#ifndef SOFTGPU_H
#define SOFTGPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* HSA_STATUS_ERROR: a fault of the emulator's, or a callback's. */
#define SOFTGPU_PANIC 0x1000u

/* HSA's conditions, for softgpu_signal_on(). */
#define SOFTGPU_EQ 0u
#define SOFTGPU_NE 1u
#define SOFTGPU_LT 2u
#define SOFTGPU_GTE 3u

/* Who waits for a signal; the values are those of hsa_serializer_signal_kind_t. */
#define SOFTGPU_FOR_GPU 0u
#define SOFTGPU_FOR_HOST 1u

/* How long a kernel runs that never ends. */
#define SOFTGPU_FOREVER UINT64_MAX

typedef struct softgpu_t softgpu_t;

/* Where an interceptor writes packets. */
typedef struct softgpu_writer_t softgpu_writer_t;

/* Gets each batch of packets (of 64 bytes each) that is submitted, under the queue's lock and in order, and
 * writes the packets that the ring is to hold instead. It may do anything but submit to its own queue. */
typedef void (*softgpu_interceptor_fn)(void *userdata, const void *packets, size_t count, softgpu_writer_t *writer);

/* Called on a handlers' thread; whether it stays registered. */
typedef bool (*softgpu_handler_fn)(void *userdata, int64_t value);

/* Gets a text that lives for the call. */
typedef void (*softgpu_text_fn)(void *userdata, const char *text);

/* Starts a machine with so many agents (at least 1) and threads for handlers (at least 1). Null if it can't. */
softgpu_t *softgpu_create(uint64_t seed, uint32_t agents, uint32_t handler_threads);

/* Destroys all queues, ends all threads and frees the machine. Nobody may be in a call, nor call it again; not
 * on a handlers' thread. False if a handler or the emulator had failed. */
bool softgpu_destroy(softgpu_t *gpu);

/* The handle of an agent; 0 if there are not so many. */
uint64_t softgpu_agent(const softgpu_t *gpu, uint32_t number);

/* Nanoseconds since the start. */
uint64_t softgpu_now(const softgpu_t *gpu);

/* Signals. A handle is given out again last in, first out. An operation on one that is gone is a violation. */
uint32_t softgpu_signal_create(softgpu_t *gpu, uint32_t kind, int64_t initial, uint64_t *signal);
uint32_t softgpu_signal_destroy(softgpu_t *gpu, uint64_t signal);
int64_t softgpu_signal_load(softgpu_t *gpu, uint64_t signal);
void softgpu_signal_store(softgpu_t *gpu, uint64_t signal, int64_t value);
void softgpu_signal_subtract(softgpu_t *gpu, uint64_t signal, int64_t value);
int64_t softgpu_signal_compare_exchange(softgpu_t *gpu, uint64_t signal, int64_t expected, int64_t desired);
/* Waits until the value is below `below`; false if the time is over first. */
bool softgpu_signal_wait(softgpu_t *gpu, uint64_t signal, int64_t below, uint64_t timeout_ns);
/* Calls `handler` whenever the condition holds, until it answers false or the signal is destroyed; one call may
 * be under way then. */
uint32_t softgpu_signal_on(softgpu_t *gpu, uint64_t signal, uint32_t condition, int64_t compare,
                           softgpu_handler_fn handler, void *userdata);
/* Whether the calling thread is one of those that call handlers. */
bool softgpu_is_handler_thread(void);

/* Creates a queue with a ring of so many slots (a power of two; 0: 1,024). `interceptor` may be null. When
 * softgpu_queue_destroy() has returned and no submit is under way, the interceptor is not called any more. */
uint32_t softgpu_queue_create(softgpu_t *gpu, uint64_t agent, size_t slots, softgpu_interceptor_fn interceptor,
                              void *userdata, uint64_t *queue);
/* What was not launched is dropped, what runs never completes. When it returns, no packet of the queue executes
 * any more. HSA_STATUS_ERROR_INVALID_QUEUE if it is gone. */
uint32_t softgpu_queue_destroy(softgpu_t *gpu, uint64_t queue);
/* Writes a batch through the interceptor. HSA_STATUS_ERROR_INVALID_QUEUE if the queue is gone. */
uint32_t softgpu_submit(softgpu_t *gpu, uint64_t queue, const void *packets, size_t count);
/* In an interceptor: these packets go to the ring. */
void softgpu_write(softgpu_writer_t *writer, const void *packets, size_t count);

/* Fills `packet` (64 bytes) with the dispatch of a kernel that runs for `lasts_ns`, with that number in reports
 * and that completion signal (or 0). Fields are at the places that HSA says. */
void softgpu_kernel(void *packet, uint32_t number, uint64_t lasts_ns, uint64_t completion);

/* Waits until everything that was submitted has ended and no handler is due. False if it stands still, or the
 * time is over; `stuck` (which may be null) is told who waits for whom then. */
bool softgpu_wait_idle(softgpu_t *gpu, uint64_t timeout_ns, softgpu_text_fn stuck, void *userdata);

/* What the checks need: the host says when it is about to turn serialization on or off, and when that has
 * returned. One at a time for each agent. */
void softgpu_mode_begins(softgpu_t *gpu, uint64_t agent, bool serialized);
void softgpu_mode_is(softgpu_t *gpu, uint64_t agent, bool serialized);
/* Instead of softgpu_mode_is(): it came to an error and has changed nothing. */
void softgpu_mode_failed(softgpu_t *gpu, uint64_t agent);

/* What was seen so far. */
typedef struct softgpu_checks_t {
  /* Of one agent: kernels that started, ended, and were lost with their queue; the most that ran at a time. */
  uint64_t started;
  uint64_t ended;
  uint64_t lost;
  uint64_t most_running;
  /* Of the whole machine: everything that must not have happened. */
  uint64_t violations;
  /* Of these: kernels that overlapped. */
  uint64_t overlaps;
  /* Of these: packets that named a signal which was destroyed, or created again, since they were written. */
  uint64_t stale_packets;
  /* Of these: calls with a signal that was not alive. */
  uint64_t dead_signals;
  /* Signals that live, and those created with a handle that had been used before. */
  uint64_t live_signals;
  uint64_t recycled_signals;
} softgpu_checks_t;

uint32_t softgpu_checks(softgpu_t *gpu, uint64_t agent, softgpu_checks_t *checks);

/* Tells the violations (the first twenty), one at a line; nothing if there are none. */
void softgpu_violations(softgpu_t *gpu, softgpu_text_fn text, void *userdata);

#ifdef __cplusplus
}
#endif

#endif /* SOFTGPU_H */
