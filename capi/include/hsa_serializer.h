/* The C interface of hsa-serializer: lets one kernel at a time run on an AMD GPU, and switches that on and off
 * while kernels are in flight. docs/embedding.md leads from here to a running profiler.
 *
 * Made by cbindgen from capi/src; not to be edited.
 *
 * HANDLES are numbers, passed by value, and checked by every function. A handle is never given out twice, so one
 * that is stale, of another kind, or garbage comes to a status and does no harm.
 *
 * RESULTS. Every function that returns a status writes its outputs only if that is HSA_SERIALIZER_SUCCESS, and has
 * changed nothing otherwise, but where it says something else. No panic and no exception comes out of a function.
 *
 * POINTERS that are not null point to what their type says. Of those, only the ones that a function says may be
 * null may be. What a callback is given lives for the call.
 *
 * THREADS. Every function may be called by several threads at once, but where it says "one call at a time". What
 * else it says about from where it may be called:
 * - wait-free, lock-free: no lock of this library's is taken;
 * - "takes the transition lock": for a time that grows with the number of queues. Not in callbacks; in an
 *   interceptor only if no thread that is inside of such a call can wait for that queue's lock;
 * - "it waits": on a thread of the host's own, which is none of the runtime's, and under no lock that an
 *   interceptor, a handler or a callback takes;
 * - callbacks: the functions of hsa_serializer_runtime_t, and its report and event. Other callbacks say themselves
 *   what they may call.
 *
 * LIFETIME. A serializer lives until hsa_serializer_destroy(), which wants its end said before. What a host gives
 * it (functions, userdata) is used until that end.
 *
 * FORK. In the child everything is as if hsa_serializer_leave() had been called: nothing calls the runtime, adding
 * queues, enabling and the like come to HSA_SERIALIZER_SHUT_DOWN or HSA_SERIALIZER_LEFT, looking and giving up goes
 * on, and nothing waits for a thread that is not there. A queue that a thread of the parent's was inside of comes to
 * HSA_SERIALIZER_BUSY for ever. (A checked build looks tickets up under a lock, which that thread may have held.) The
 * parent goes on.
 *
 * DLCLOSE. The library stays mapped (-z nodelete): threads that have used it run code of it when they end.
 *
 * MEMORY. Where none is left for a few hundred bytes, the process ends (abort), as a Rust program does. Hot calls
 * allocate nothing.
 *
 * EXIT. A process may end without a word: nothing here runs at exit. Functions may be called while it ends.
 */

#ifndef HSA_SERIALIZER_H
#define HSA_SERIALIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * The most packets that one dispatch can inject: how many an array of packets has to have room for.
 */
#define HSA_SERIALIZER_MAX_PACKETS 4

/**
 * The version of the header, to be compared with hsa_serializer_version_number().
 */
#define HSA_SERIALIZER_VERSION_MAJOR 0

/**
 * See HSA_SERIALIZER_VERSION_MAJOR.
 */
#define HSA_SERIALIZER_VERSION_MINOR 1

/**
 * See HSA_SERIALIZER_VERSION_MAJOR.
 */
#define HSA_SERIALIZER_VERSION_PATCH 0

/**
 * What a call came to.
 *
 * Everything but `HSA_SERIALIZER_SUCCESS` means that nothing was changed and no output was written, but
 * where the function says something else.
 */
typedef enum hsa_serializer_status_t {
  /**
   * Done.
   */
  HSA_SERIALIZER_SUCCESS = 0,
  /**
   * A pointer is null that may not be.
   */
  HSA_SERIALIZER_NULL_POINTER = 1,
  /**
   * The handle is null (0).
   */
  HSA_SERIALIZER_NULL_HANDLE = 2,
  /**
   * The handle was never given out, or names something of another kind.
   */
  HSA_SERIALIZER_FOREIGN_HANDLE = 3,
  /**
   * What the handle named was removed, ended or destroyed before.
   */
  HSA_SERIALIZER_STALE_HANDLE = 4,
  /**
   * Another call with this handle is under way, and calls with it have to come one at a time.
   */
  HSA_SERIALIZER_BUSY = 5,
  /**
   * A structure's `size` is none that any version of this library had.
   */
  HSA_SERIALIZER_BAD_SIZE = 6,
  /**
   * A number is none of the values that the parameter or field has.
   */
  HSA_SERIALIZER_BAD_VALUE = 7,
  /**
   * The array has too few elements.
   */
  HSA_SERIALIZER_TOO_SMALL = 8,
  /**
   * The runtime did not give a signal; hsa_serializer_last_runtime_status() has its answer.
   */
  HSA_SERIALIZER_NO_SIGNAL = 9,
  /**
   * The runtime answered success with a null signal.
   */
  HSA_SERIALIZER_NULL_SIGNAL = 10,
  /**
   * The runtime refused the handler on a ready signal; hsa_serializer_last_runtime_status() has its
   * answer.
   */
  HSA_SERIALIZER_HANDLER_REFUSED = 11,
  /**
   * No slot is left for another queue, or no number for another serializer or set.
   */
  HSA_SERIALIZER_FULL = 12,
  /**
   * As many dispatches are in flight as the limit allows.
   */
  HSA_SERIALIZER_LIMIT = 13,
  /**
   * The queue was destroyed.
   */
  HSA_SERIALIZER_QUEUE_GONE = 14,
  /**
   * The serializer is shutting down, or has ended: pass kernels on as they are.
   */
  HSA_SERIALIZER_SHUT_DOWN = 15,
  /**
   * The serializer was left: nothing is known any more.
   */
  HSA_SERIALIZER_LEFT = 16,
  /**
   * Released more often than acquired.
   */
  HSA_SERIALIZER_UNBALANCED = 17,
  /**
   * The ticket is another serializer's, or nobody's.
   */
  HSA_SERIALIZER_FOREIGN_TICKET = 18,
  /**
   * The ticket was used before: every dispatch of its queue has been completed.
   */
  HSA_SERIALIZER_USED_TICKET = 19,
  /**
   * The queue has had no such dispatch.
   */
  HSA_SERIALIZER_NEVER_DISPATCHED = 20,
  /**
   * It would wait on a thread that calls the runtime's handlers, and so for itself.
   */
  HSA_SERIALIZER_ON_HANDLER_THREAD = 21,
  /**
   * The time is over.
   */
  HSA_SERIALIZER_TIMED_OUT = 22,
  /**
   * Something is left that has to end first.
   */
  HSA_SERIALIZER_NOT_FINISHED = 23,
  /**
   * The agent is not a GPU.
   */
  HSA_SERIALIZER_NOT_A_GPU = 24,
  /**
   * The runtime did not say what the agent is; hsa_serializer_last_runtime_status() has its answer.
   */
  HSA_SERIALIZER_BAD_AGENT = 25,
  /**
   * The table is not of a known form, or lacks a function.
   */
  HSA_SERIALIZER_BAD_TABLE = 26,
  /**
   * A fault of this library: it may have been half done.
   */
  HSA_SERIALIZER_PANIC = 27,
  /**
   * The agent was not touched yet.
   */
  HSA_SERIALIZER_UNTOUCHED = 28,
} hsa_serializer_status_t;

/**
 * What a queue is doing.
 */
typedef enum hsa_serializer_activity_t {
  /**
   * Nothing of the serializer's holds it back.
   */
  HSA_SERIALIZER_RUNNING = 0,
  /**
   * Its next kernel waits for its turn.
   */
  HSA_SERIALIZER_WAITS_FOR_TURN = 1,
  /**
   * Its kernel has its turn.
   */
  HSA_SERIALIZER_HAS_TURN = 2,
  /**
   * Its kernel was overtaken, and may still run.
   */
  HSA_SERIALIZER_OVERTAKEN = 3,
  /**
   * Its next kernel waits for the barrier of `epoch`.
   */
  HSA_SERIALIZER_WAITS_FOR_BARRIER = 4,
} hsa_serializer_activity_t;

/**
 * What a transition did.
 */
typedef enum hsa_serializer_change_t {
  /**
   * The mode was that one already.
   */
  HSA_SERIALIZER_UNCHANGED = 0,
  /**
   * The mode has changed; `count` queues had dispatches in flight, for which kernels now wait.
   */
  HSA_SERIALIZER_CHANGED = 1,
  /**
   * It was switched off, but `count` requests keep kernels serialized.
   */
  HSA_SERIALIZER_KEPT = 2,
} hsa_serializer_change_t;

/**
 * What is known of a queue's packet of a barrier.
 */
typedef enum hsa_serializer_drain_t {
  /**
   * The barrier is armed: nothing can have drained.
   */
  HSA_SERIALIZER_DRAIN_ARMED = 0,
  /**
   * The queue carries this barrier's packet, and it may not have executed.
   */
  HSA_SERIALIZER_DRAIN_OUTSTANDING = 1,
  /**
   * The queue carries no packet of this barrier that could still execute.
   */
  HSA_SERIALIZER_DRAIN_DRAINED = 2,
} hsa_serializer_drain_t;

/**
 * What an event is about. The order of events is that of the Rust crate's `Event`.
 */
typedef enum hsa_serializer_event_kind_t {
  /**
   * A transition to `epoch` begins, whose mode is `mode`. Cuts, drains and gaps are transitions, too.
   */
  HSA_SERIALIZER_EVENT_TRANSITION = 1,
  /**
   * The barrier of `epoch` was made, with `signal`.
   */
  HSA_SERIALIZER_EVENT_MADE = 2,
  /**
   * It clears once `waits_for` queues have completed what was in flight.
   */
  HSA_SERIALIZER_EVENT_ARMED = 3,
  /**
   * Dispatch number `dispatch` of `queue_id` took its packet along.
   */
  HSA_SERIALIZER_EVENT_TAGGED = 4,
  /**
   * The packet of `queue_id` is known to have executed, or never to execute.
   */
  HSA_SERIALIZER_EVENT_DRAINED = 5,
  /**
   * It has cleared.
   */
  HSA_SERIALIZER_EVENT_CLEARED = 6,
  /**
   * It gave way to the next one before anybody waited for it.
   */
  HSA_SERIALIZER_EVENT_SUPERSEDED = 7,
  /**
   * It was cleared by force: kernels may run side by side that should not.
   */
  HSA_SERIALIZER_EVENT_FORCED = 8,
  /**
   * Nobody can wait for it any more.
   */
  HSA_SERIALIZER_EVENT_RETIRED = 9,
  /**
   * Its `signal` was destroyed.
   */
  HSA_SERIALIZER_EVENT_RECLAIMED = 10,
  /**
   * The queue was added.
   */
  HSA_SERIALIZER_EVENT_QUEUE_ADDED = 11,
  /**
   * The queue is gone.
   */
  HSA_SERIALIZER_EVENT_QUEUE_GONE = 12,
  /**
   * The queue has got to its next serialized kernel.
   */
  HSA_SERIALIZER_EVENT_READY = 13,
  /**
   * The queue's kernel has its turn, having waited `waited_ns`.
   */
  HSA_SERIALIZER_EVENT_GRANTED = 14,
  /**
   * The queue has given its turn back.
   */
  HSA_SERIALIZER_EVENT_RELEASED = 15,
  /**
   * The queue's turn was taken away, while its kernel may still run.
   */
  HSA_SERIALIZER_EVENT_OVERTAKEN = 16,
  /**
   * Everything was let through.
   */
  HSA_SERIALIZER_EVENT_LET_THROUGH = 17,
} hsa_serializer_event_kind_t;

/**
 * How kernels run.
 */
typedef enum hsa_serializer_mode_t {
  /**
   * As the application wrote them.
   */
  HSA_SERIALIZER_DISABLED = 0,
  /**
   * One at a time on the agent.
   */
  HSA_SERIALIZER_ENABLED = 1,
} hsa_serializer_mode_t;

/**
 * What follows from misuse that is noticed.
 */
typedef enum hsa_serializer_on_misuse_t {
  /**
   * Everything is let through, as by hsa_serializer_release_all(), and reported.
   */
  HSA_SERIALIZER_ON_MISUSE_RELEASE = 0,
  /**
   * It is reported.
   */
  HSA_SERIALIZER_ON_MISUSE_GO_ON = 1,
} hsa_serializer_on_misuse_t;

/**
 * How a barrier ended.
 */
typedef enum hsa_serializer_outcome_t {
  /**
   * Every dispatch that it counted has completed.
   */
  HSA_SERIALIZER_OUTCOME_CLEARED = 0,
  /**
   * Nobody dispatched behind it before the next barrier, which waits for what it waited for.
   */
  HSA_SERIALIZER_OUTCOME_SUPERSEDED = 1,
  /**
   * It was cleared by force, while dispatches that it counted may still be running.
   */
  HSA_SERIALIZER_OUTCOME_FORCED = 2,
} hsa_serializer_outcome_t;

/**
 * What a report is about.
 */
typedef enum hsa_serializer_report_kind_t {
  /**
   * One that this version has no number for; `text` says it.
   */
  HSA_SERIALIZER_REPORT_OTHER = 0,
  /**
   * The barrier of `epoch`, with `signal`, was destroyed with `count` tags outstanding.
   */
  HSA_SERIALIZER_REPORT_TAGGED_AT_DESTRUCTION = 1,
  /**
   * The retired barrier of `epoch`, with `signal`, was not safe to destroy, and is left alone.
   */
  HSA_SERIALIZER_REPORT_UNSAFE_RECLAIM = 2,
  /**
   * The runtime refused to destroy `signal`, with `runtime_status`.
   */
  HSA_SERIALIZER_REPORT_DESTROY_FAILED = 3,
  /**
   * `count` reports were lost.
   */
  HSA_SERIALIZER_REPORT_DROPPED = 4,
  /**
   * Everything was let through, because of misuse.
   */
  HSA_SERIALIZER_REPORT_RELEASED = 5,
  /**
   * Misuse: a completion of `queue_id` with no dispatch left to complete.
   */
  HSA_SERIALIZER_REPORT_COMPLETION_AHEAD = 6,
  /**
   * Misuse: a kernel of `queue_id` behind an armed barrier was reported complete.
   */
  HSA_SERIALIZER_REPORT_COMPLETION_BEHIND_BARRIER = 7,
  /**
   * Misuse: a serialized kernel of `queue_id` was reported complete without having been granted.
   */
  HSA_SERIALIZER_REPORT_COMPLETION_NOT_GRANTED = 8,
  /**
   * Misuse: ready fired for `queue_id`, which was not idle.
   */
  HSA_SERIALIZER_REPORT_READY_NOT_IDLE = 9,
} hsa_serializer_report_kind_t;

/**
 * What a signal is for, so that the cheapest one that will do can be made.
 */
typedef enum hsa_serializer_signal_kind_t {
  /**
   * Packet processors wait for it; the host only stores. It needs no interrupt
   * (`hsa_amd_signal_create` with `HSA_AMD_SIGNAL_AMD_GPU_ONLY`, or the agent as its only consumer).
   */
  HSA_SERIALIZER_SIGNAL_FOR_GPU = 0,
  /**
   * A handler of the host's waits for it: it must be an interrupt signal (`hsa_signal_create` without
   * consumers).
   */
  HSA_SERIALIZER_SIGNAL_FOR_HOST = 1,
} hsa_serializer_signal_kind_t;

/**
 * What to do about a stall.
 */
typedef enum hsa_serializer_stall_policy_t {
  /**
   * Name it.
   */
  HSA_SERIALIZER_STALL_REPORT = 0,
  /**
   * Name it and let go what it holds back, at the price of exclusiveness.
   */
  HSA_SERIALIZER_STALL_RELEASE = 1,
} hsa_serializer_stall_policy_t;

/**
 * A domain of reclamation.
 */
typedef struct hsa_serializer_domain_t {
  /**
   * A number that is never given to anything else; 0 is none.
   */
  uint64_t handle;
} hsa_serializer_domain_t;

/**
 * How a serializer is made where the defaults do not do.
 */
typedef struct hsa_serializer_options_t {
  /**
   * `sizeof(hsa_serializer_options_t)`.
   */
  size_t size;
  /**
   * Reclamation in this domain; null: in the process's.
   */
  struct hsa_serializer_domain_t domain;
  /**
   * The agent's handle, for snapshots to name it; 0: not said.
   */
  uint64_t agent;
  /**
   * One of hsa_serializer_on_misuse_t.
   */
  uint32_t on_misuse;
} hsa_serializer_options_t;

/**
 * Something that should not have happened. What the kind does not speak of is 0.
 */
typedef struct hsa_serializer_report_t {
  /**
   * One of hsa_serializer_report_kind_t; later versions may have more.
   */
  uint32_t kind;
  /**
   * The barrier's transition epoch.
   */
  uint32_t epoch;
  /**
   * The signal's handle.
   */
  uint64_t signal;
  /**
   * The queue.
   */
  uint64_t queue_id;
  /**
   * How many.
   */
  uint64_t count;
  /**
   * An `hsa_status_t`.
   */
  uint32_t runtime_status;
  /**
   * The same as text.
   */
  const char *text;
} hsa_serializer_report_t;

/**
 * Something that has happened, or is about to. What the kind does not speak of is 0.
 */
typedef struct hsa_serializer_event_t {
  /**
   * One of hsa_serializer_event_kind_t; later versions may have more.
   */
  uint32_t kind;
  /**
   * The transition epoch of the barrier or transition.
   */
  uint32_t epoch;
  /**
   * The queue.
   */
  uint64_t queue_id;
  /**
   * The signal's handle.
   */
  uint64_t signal;
  /**
   * The dispatch's number.
   */
  uint64_t dispatch;
  /**
   * Nanoseconds.
   */
  uint64_t waited_ns;
  /**
   * Queues.
   */
  uint32_t waits_for;
  /**
   * One of hsa_serializer_mode_t.
   */
  uint32_t mode;
} hsa_serializer_event_t;

/**
 * The runtime as the host gives it. Signals and statuses are HSA's: an `hsa_signal_t`'s `handle`, an
 * `hsa_status_t`.
 *
 * Every function may be called by several threads at once, the runtime's handler thread among them, and
 * until hsa_serializer_finish_shutdown() has come to `HSA_SERIALIZER_SUCCESS` or hsa_serializer_leave()
 * was called (where another thread is inside of one then, until that returns). None may throw, call
 * longjmp, wait for something that needs the serializer, or call any function of this library but
 * hsa_serializer_mode(), hsa_serializer_leave(), hsa_serializer_status_string(), hsa_serializer_version() and
 * hsa_serializer_version_number().
 */
typedef struct hsa_serializer_runtime_t {
  /**
   * `sizeof(hsa_serializer_runtime_t)`.
   */
  size_t size;
  /**
   * What each function gets as its first argument.
   */
  void *userdata;
  /**
   * Creates a signal (hsa_signal_create), for one of hsa_serializer_signal_kind_t. Called by the
   * functions that say HSA_SERIALIZER_NO_SIGNAL; under no lock.
   */
  uint32_t (*create_signal)(void *userdata, uint32_t kind, int64_t initial, uint64_t *signal);
  /**
   * Destroys one (hsa_signal_destroy): once for each, when no packet that may execute refers to it. By
   * any call but those that say that they are wait-free, on any thread.
   */
  uint32_t (*destroy_signal)(void *userdata, uint64_t signal);
  /**
   * Stores with release semantics (hsa_signal_store_screlease). It must not block.
   */
  void (*store)(void *userdata, uint64_t signal, int64_t value);
  /**
   * Replaces `expected` by `desired`, and returns the value seen (hsa_signal_cas_scacq_screl). It must
   * not block.
   */
  int64_t (*compare_exchange)(void *userdata, uint64_t signal, int64_t expected, int64_t desired);
  /**
   * Registers a handler on a queue's ready signal, for the condition *equal to -1*
   * (hsa_amd_signal_async_handler), that calls hsa_serializer_ready() with `queue_id` and returns what
   * that says. Give the id to the handler by value (as its `void *`): it may be called late. Called by
   * hsa_serializer_queue_add(); under no lock.
   */
  uint32_t (*watch_ready)(void *userdata, uint64_t ready, uint64_t queue_id);
  /**
   * Whether the calling thread calls the runtime's handlers. May be null: then it is known from
   * hsa_serializer_ready() being under way alone.
   */
  bool (*is_handler_thread)(void *userdata);
  /**
   * Something happened that should not have. May be null. The report lives for the call.
   */
  void (*report)(void *userdata, const struct hsa_serializer_report_t *report);
  /**
   * Something happened. May be null, and costs nothing then. It is called where it happens, also under
   * locks of this library and of the runtime: it must be quick, must not wait, and must not call HSA.
   * The event lives for the call.
   */
  void (*event)(void *userdata, const struct hsa_serializer_event_t *event);
} hsa_serializer_runtime_t;

/**
 * Makes the runtime of an agent: writes it to `runtime`, and returns 0; or returns an `hsa_status_t`, and
 * hsa_serializer_agents_of() comes to `HSA_SERIALIZER_BAD_AGENT`. It may be called more than once for one agent,
 * where several threads touch that for the first time; all but one of the runtimes are never used.
 */
typedef uint32_t (*hsa_serializer_make_fn)(void *userdata, uint64_t agent, struct hsa_serializer_runtime_t *runtime);

/**
 * The agents of the process, with a serializer each.
 */
typedef struct hsa_serializer_agents_t {
  /**
   * A number that is never given to anything else; 0 is none.
   */
  uint64_t handle;
} hsa_serializer_agents_t;

/**
 * AMD's runtime, by its table, and who is told.
 */
typedef struct hsa_serializer_hsa_t {
  /**
   * `sizeof(hsa_serializer_hsa_t)`.
   */
  size_t size;
  /**
   * The `HsaApiTable` that the runtime gave to the tool's `OnLoad`. It is read in the call that is given
   * this, before the tool replaces functions in it, or it calls the replaced ones.
   */
  const void *table;
  /**
   * What the functions below get as their first argument.
   */
  void *userdata;
  /**
   * As in hsa_serializer_runtime_t.
   */
  void (*report)(void *userdata, const struct hsa_serializer_report_t *report);
  /**
   * As in hsa_serializer_runtime_t.
   */
  void (*event)(void *userdata, const struct hsa_serializer_event_t *event);
} hsa_serializer_hsa_t;

/**
 * A serializer.
 */
typedef struct hsa_serializer_t {
  /**
   * A number that is never given to anything else; 0 is none.
   */
  uint64_t handle;
} hsa_serializer_t;

/**
 * A request: kernels are serialized for as long as it has not ended.
 */
typedef struct hsa_serializer_request_t {
  /**
   * A number that is never given to anything else; 0 is none.
   */
  uint64_t handle;
} hsa_serializer_request_t;

/**
 * Barriers by themselves.
 */
typedef struct hsa_serializer_barrier_set_t {
  /**
   * A number that is never given to anything else; 0 is none.
   */
  uint64_t handle;
} hsa_serializer_barrier_set_t;

/**
 * The dispatching half of a queue, of a serializer or of a barrier set.
 */
typedef struct hsa_serializer_queue_t {
  /**
   * A number that is never given to anything else; 0 is none.
   */
  uint64_t handle;
} hsa_serializer_queue_t;

/**
 * The receipt of one dispatch. Keep it as it is, and use it once.
 */
typedef struct hsa_serializer_ticket_t {
  /**
   * The queue's id.
   */
  uint64_t queue_id;
  /**
   * What the library knows the dispatch by.
   */
  uint64_t dispatch;
} hsa_serializer_ticket_t;

/**
 * What a serializer has done so far. Each number is exact while nothing happens.
 *
 * Set `size` before the call: a program that was compiled with an older header gets the fields that it knows.
 */
typedef struct hsa_serializer_statistics_t {
  /**
   * `sizeof(hsa_serializer_statistics_t)`.
   */
  size_t size;
  /**
   * Transitions that took place, cuts, drains and gaps among them.
   */
  uint64_t transitions;
  /**
   * Those of them that found a dispatch in flight.
   */
  uint64_t transitions_that_counted;
  /**
   * Barriers created.
   */
  uint64_t barriers;
  /**
   * Barriers in the list now.
   */
  uint64_t barriers_live;
  /**
   * The most barriers that were in the list at once.
   */
  uint64_t barriers_live_most;
  /**
   * Barriers that cleared.
   */
  uint64_t cleared;
  /**
   * Barriers that were superseded.
   */
  uint64_t superseded;
  /**
   * Barriers that were cleared by force: losses of exclusiveness.
   */
  uint64_t forced;
  /**
   * Grants that were overtaken: losses of exclusiveness.
   */
  uint64_t overtaken;
  /**
   * Transition packets handed out.
   */
  uint64_t tags;
  /**
   * Barriers taken out of the list.
   */
  uint64_t retired;
  /**
   * Those of them that had cleared earlier and waited for a tag to drain: the cases in which
   * the fault that this crate exists for would have struck.
   */
  uint64_t retired_after_drain;
  /**
   * Barriers whose signal was destroyed.
   */
  uint64_t reclaimed;
  /**
   * Nanoseconds in which kernels were serialized: the mode was enabled.
   */
  uint64_t serialized;
  /**
   * Nanoseconds for which barriers were armed, those of all barriers that have ended added up. In that
   * time kernels of the new mode had to wait for those of the old one.
   */
  uint64_t barriers_armed;
  /**
   * The most nanoseconds for which one of them was armed.
   */
  uint64_t barriers_armed_most;
  /**
   * Nanoseconds for which queues waited for the token, from having got to a kernel to its grant; those
   * of all grants added up. Of this much the GPU's queues stood still because kernels ran one by one.
   */
  uint64_t token_waited;
  /**
   * The most nanoseconds for which one of them waited.
   */
  uint64_t token_waited_most;
  /**
   * Queues that were added.
   */
  uint64_t queues_added;
  /**
   * Queues that are gone.
   */
  uint64_t queues_gone;
  /**
   * Breaches of the contract that were noticed.
   */
  uint64_t misuse;
  /**
   * Dispatches of queues that are gone.
   */
  uint64_t former_dispatches;
  /**
   * Completions of queues that are gone.
   */
  uint64_t former_completions;
  /**
   * Dispatches of all queues, past and present.
   */
  uint64_t dispatches;
  /**
   * Completions of all queues; those that came after their queue had gone are not counted.
   */
  uint64_t completions;
  /**
   * Queues that are alive.
   */
  uint64_t queues;
  /**
   * Grants of the token.
   */
  uint64_t grants;
  /**
   * Those of them that had to wait for another queue to release it.
   */
  uint64_t grants_contended;
  /**
   * Queues that are ready or granted now, and those that were removed while ready and
   * that no granter has come to yet.
   */
  uint64_t contenders;
  /**
   * Deferred functions of the whole domain that have not run yet.
   */
  uint64_t reclaim_pending;
} hsa_serializer_statistics_t;

/**
 * Who is told that a barrier has ended, and how: one of hsa_serializer_outcome_t. Once, on the thread that ends
 * it, which may be a handler's; it may call what that thread may, and nothing that waits.
 */
typedef void (*hsa_serializer_end_fn)(void *userdata, uint32_t outcome);

/**
 * A barrier of a set.
 */
typedef struct hsa_serializer_barrier_t {
  /**
   * A number that is never given to anything else; 0 is none.
   */
  uint64_t handle;
} hsa_serializer_barrier_t;

/**
 * What is known of a barrier.
 */
typedef struct hsa_serializer_barrier_state_t {
  /**
   * It lets everything through.
   */
  bool cleared;
  /**
   * It gave way to a later one.
   */
  bool superseded;
  /**
   * Its signal may be destroyed. Once true it stays true.
   */
  bool safe_to_destroy;
  /**
   * How many queues carry a packet of it that may not have executed.
   */
  uint32_t tags;
  /**
   * Its signal's handle, which may be another signal's by now: for comparing and printing only.
   */
  uint64_t signal;
} hsa_serializer_barrier_state_t;

/**
 * Who is given a text: `length` bytes of UTF-8, and a zero behind them, that live for the call. It may call
 * whatever its caller may.
 */
typedef void (*hsa_serializer_text_fn)(void *userdata, const char *text, size_t length);

/**
 * What a dispatch has to do.
 */
typedef struct hsa_serializer_dispatch_t {
  /**
   * Hand it to hsa_serializer_complete() when the packet processor is through with the kernel.
   */
  struct hsa_serializer_ticket_t ticket;
  /**
   * How many packets at the start of the array have to be written in front of the caller's own, in order.
   */
  uint32_t packets;
  /**
   * Whether the kernel is serialized. If so, the kernel's packet and the last packet of its group (the
   * caller's packets that belong to this kernel) need the barrier bit.
   */
  bool serialized;
} hsa_serializer_dispatch_t;

/**
 * What has to be written for the unknown work of a queue.
 */
typedef struct hsa_serializer_marker_t {
  /**
   * Hand it to hsa_serializer_complete() when the marker has completed.
   */
  struct hsa_serializer_ticket_t ticket;
  /**
   * How many packets at the start of the array have to be written in front of whatever the queue gets next,
   * in order. The last one is the marker: give it a completion signal that the host hears of.
   */
  uint32_t packets;
} hsa_serializer_marker_t;

/**
 * What a transition did, and a number that belongs to it.
 */
typedef struct hsa_serializer_transition_t {
  /**
   * One of hsa_serializer_change_t.
   */
  uint32_t change;
  /**
   * See there.
   */
  uint64_t count;
} hsa_serializer_transition_t;

/**
 * A queue that is not through, and how many of its dispatches have not completed.
 */
typedef struct hsa_serializer_in_flight_t {
  /**
   * The queue's id.
   */
  uint64_t queue_id;
  /**
   * How many.
   */
  uint64_t dispatches;
} hsa_serializer_in_flight_t;

/**
 * What a shutdown still waits for.
 */
typedef struct hsa_serializer_remaining_t {
  /**
   * Queues with dispatches that have not completed.
   */
  const struct hsa_serializer_in_flight_t *queues;
  /**
   * How many queues.
   */
  size_t queue_count;
  /**
   * Ready handlers that have not been told to go.
   */
  uint64_t handlers;
  /**
   * Barriers that are not reclaimed.
   */
  uint64_t barriers;
  /**
   * Deferred functions that have not run: a thread sits in a call that uses the same domain.
   */
  uint64_t deferred;
  /**
   * Calls that create signals or deliver reports, and are under way.
   */
  uint64_t calls;
} hsa_serializer_remaining_t;

/**
 * Who is told what is left; it lives for the call. It may call whatever its caller may.
 */
typedef void (*hsa_serializer_remaining_fn)(void *userdata, const struct hsa_serializer_remaining_t *remaining);

/**
 * What looks for stalls.
 */
typedef struct hsa_serializer_stall_watch_t {
  /**
   * A number that is never given to anything else; 0 is none.
   */
  uint64_t handle;
} hsa_serializer_stall_watch_t;

/**
 * A queue that a barrier waits for.
 */
typedef struct hsa_serializer_queue_wait_t {
  /**
   * The queue's id.
   */
  uint64_t queue_id;
  /**
   * How many of its dispatches have completed.
   */
  uint64_t completed;
  /**
   * How many have to.
   */
  uint64_t until;
  /**
   * One of hsa_serializer_activity_t.
   */
  uint32_t activity;
  /**
   * See there.
   */
  uint32_t epoch;
} hsa_serializer_queue_wait_t;

/**
 * A queue that waits for a barrier, and the number of the dispatch that does.
 */
typedef struct hsa_serializer_held_back_t {
  /**
   * The queue's id.
   */
  uint64_t queue_id;
  /**
   * The number of the dispatch behind the barrier's packet.
   */
  uint64_t dispatch;
} hsa_serializer_held_back_t;

/**
 * Something that stands still. It lives for the call.
 */
typedef struct hsa_serializer_stall_t {
  /**
   * Whether it is an armed barrier, and not the kernel that has its turn.
   */
  bool is_barrier;
  /**
   * Whether it was released.
   */
  bool released;
  /**
   * The barrier's transition epoch.
   */
  uint32_t epoch;
  /**
   * For how long, in nanoseconds.
   */
  uint64_t lasted_ns;
  /**
   * What the barrier waits for.
   */
  const struct hsa_serializer_queue_wait_t *waits_for;
  /**
   * How many these are.
   */
  size_t waits_for_count;
  /**
   * What waits for the barrier.
   */
  const struct hsa_serializer_held_back_t *holds_back;
  /**
   * How many these are.
   */
  size_t holds_back_count;
  /**
   * The queue whose kernel has its turn.
   */
  uint64_t holder;
  /**
   * The number of that dispatch.
   */
  uint64_t dispatch;
  /**
   * The ids of the queues that wait for their turn.
   */
  const uint64_t *waiting;
  /**
   * How many these are.
   */
  size_t waiting_count;
  /**
   * The same as text.
   */
  const char *text;
} hsa_serializer_stall_t;

/**
 * Who is told of a stall. It may call whatever its caller may, but for the functions of the same watch.
 */
typedef void (*hsa_serializer_stall_fn)(void *userdata, const struct hsa_serializer_stall_t *stall);

/**
 * Who is told which queues are stuck: an array that lives for the call. It may call whatever its caller may.
 */
typedef void (*hsa_serializer_stuck_fn)(void *userdata, const struct hsa_serializer_in_flight_t *stuck, size_t count);

/**
 * What was in flight at one moment.
 */
typedef struct hsa_serializer_cut_t {
  /**
   * A number that is never given to anything else; 0 is none.
   */
  uint64_t handle;
} hsa_serializer_cut_t;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * No agents yet; each gets a serializer when it is first touched, over a runtime that `make` makes. `options` may
 * be null; what they say of an agent is not used.
 *
 * From any thread, but not in callbacks. `make` may be called until hsa_serializer_agents_destroy(), by any
 * thread that touches an agent.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_BAD_SIZE`, `HSA_SERIALIZER_BAD_VALUE`; of the domain:
 * `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_agents_create(const struct hsa_serializer_options_t *options,
                                                          hsa_serializer_make_fn make,
                                                          void *userdata,
                                                          struct hsa_serializer_agents_t *agents);

/**
 * The same over AMD's runtime, by its table, which is read now.
 *
 * As hsa_serializer_agents_create() and hsa_serializer_create_hsa(); `HSA_SERIALIZER_BAD_TABLE`.
 */
enum hsa_serializer_status_t hsa_serializer_agents_create_hsa(const struct hsa_serializer_options_t *options,
                                                              const struct hsa_serializer_hsa_t *hsa,
                                                              struct hsa_serializer_agents_t *agents);

/**
 * Gives the handle up. Every serializer has to have ended, as for hsa_serializer_destroy(); their handles are
 * stale from then on. Nobody may touch agents meanwhile.
 *
 * Once, from any thread, but not in callbacks.
 *
 * `HSA_SERIALIZER_NOT_FINISHED`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
 * `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_agents_destroy(struct hsa_serializer_agents_t agents);

/**
 * The agent's serializer, made if this is the first touch; it has heard of what is requested of all. Where the
 * queues of the agent are created.
 *
 * The first touch takes that agent's transition lock: from where hsa_serializer_enable() may be called. No agent
 * ever waits for another.
 *
 * `HSA_SERIALIZER_NULL_POINTER` and `HSA_SERIALIZER_BAD_SIZE` (also for what `make` has written),
 * `HSA_SERIALIZER_BAD_AGENT`, `HSA_SERIALIZER_NOT_A_GPU`, `HSA_SERIALIZER_NO_SIGNAL`,
 * `HSA_SERIALIZER_NULL_SIGNAL`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
 * `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_agents_of(struct hsa_serializer_agents_t agents,
                                                      uint64_t agent,
                                                      struct hsa_serializer_t *serializer);

/**
 * The agent's serializer, if it was touched.
 *
 * No lock, and it makes nothing: for interceptors.
 *
 * `HSA_SERIALIZER_UNTOUCHED`, `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NULL_HANDLE`,
 * `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_agents_get(struct hsa_serializer_agents_t agents,
                                                       uint64_t agent,
                                                       struct hsa_serializer_t *serializer);

/**
 * The agents that were touched, the latest first. `count` gets how many there are; `list` gets them. With a
 * `capacity` of 0, `list` may be null, and `count` is written all the same.
 *
 * No lock; from any thread.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_TOO_SMALL`, `HSA_SERIALIZER_NULL_HANDLE`,
 * `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_agents_list(struct hsa_serializer_agents_t agents,
                                                        uint64_t *list,
                                                        size_t capacity,
                                                        size_t *count);

/**
 * Serializes these `count` agents until hsa_serializer_request_end(); they are made where they were not touched.
 *
 * Takes their transition locks, one after the other: from where hsa_serializer_enable() may be called.
 *
 * As hsa_serializer_agents_of(); `HSA_SERIALIZER_SHUT_DOWN`. Nothing is requested then.
 */
enum hsa_serializer_status_t hsa_serializer_agents_request(struct hsa_serializer_agents_t agents,
                                                           const uint64_t *list,
                                                           size_t count,
                                                           struct hsa_serializer_request_t *request);

/**
 * Serializes all agents until hsa_serializer_request_end(), those among them that come later. Agents whose
 * serializer has ended are passed over.
 *
 * As hsa_serializer_agents_request().
 */
enum hsa_serializer_status_t hsa_serializer_agents_request_all(struct hsa_serializer_agents_t agents,
                                                               struct hsa_serializer_request_t *request);

/**
 * Makes a set of barriers without queues, over functions of the host's. `options` may be null. The functions
 * are used until hsa_serializer_barrier_set_destroy() has come to `HSA_SERIALIZER_SUCCESS`; `watch_ready` is not
 * called.
 *
 * As hsa_serializer_create().
 */
enum hsa_serializer_status_t hsa_serializer_barrier_set_create(const struct hsa_serializer_options_t *options,
                                                               const struct hsa_serializer_runtime_t *runtime,
                                                               struct hsa_serializer_barrier_set_t *set);

/**
 * The same over AMD's runtime, by its table, for one agent.
 *
 * As hsa_serializer_create_hsa().
 */
enum hsa_serializer_status_t hsa_serializer_barrier_set_create_hsa(const struct hsa_serializer_options_t *options,
                                                                   const struct hsa_serializer_hsa_t *hsa,
                                                                   uint64_t agent,
                                                                   struct hsa_serializer_barrier_set_t *set);

/**
 * Gives the handle up, when all queues of the set are gone and all its signals are destroyed; until then it is
 * `HSA_SERIALIZER_NOT_FINISHED`. (Where it stays that, a thread sits in a call that uses the same domain.)
 *
 * From any thread, but not in callbacks; calls with this handle that are under way end as they would.
 *
 * `HSA_SERIALIZER_NOT_FINISHED`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
 * `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_barrier_set_destroy(struct hsa_serializer_barrier_set_t set);

/**
 * Adds a queue to the set: before the first packet of the HSA queue is intercepted. It is dispatched on by
 * hsa_serializer_dispatch() and is gone by hsa_serializer_queue_destroyed(); its kernels are never serialized.
 *
 * Takes the transition lock: from where hsa_serializer_enable() may be called.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_FULL`, `HSA_SERIALIZER_NO_SIGNAL`,
 * `HSA_SERIALIZER_NULL_SIGNAL`, `HSA_SERIALIZER_SHUT_DOWN`, `HSA_SERIALIZER_NULL_HANDLE`,
 * `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_barrier_set_queue_add(struct hsa_serializer_barrier_set_t set,
                                                                  struct hsa_serializer_queue_t *queue);

/**
 * hsa_serializer_complete() for a queue of the set.
 *
 * As there.
 */
enum hsa_serializer_status_t hsa_serializer_barrier_set_complete(struct hsa_serializer_barrier_set_t set,
                                                                 struct hsa_serializer_ticket_t ticket);

/**
 * What the set has done so far. `statistics->size` has to be set.
 *
 * As hsa_serializer_statistics().
 */
enum hsa_serializer_status_t hsa_serializer_barrier_set_statistics(struct hsa_serializer_barrier_set_t set,
                                                                   struct hsa_serializer_statistics_t *statistics);

/**
 * Arms a barrier over all queues of the set: what is dispatched from now on waits, on the GPU, for what is in
 * flight. `on_end` (which may be null) is told once. `barrier` may be null; else the handle has to be given up
 * by hsa_serializer_barrier_destroy().
 *
 * Takes the transition lock: from where hsa_serializer_enable() may be called.
 *
 * `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_NULL_SIGNAL`, `HSA_SERIALIZER_SHUT_DOWN`,
 * `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_barrier_set_arm(struct hsa_serializer_barrier_set_t set,
                                                            hsa_serializer_end_fn on_end,
                                                            void *userdata,
                                                            struct hsa_serializer_barrier_t *barrier);

/**
 * Takes away the tag of the queue with that id if its packet is known to have executed; `drain` gets one of
 * hsa_serializer_drain_t. Completions do this by themselves.
 *
 * Lock-free; from any thread, but not in callbacks.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
 * `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_barrier_drain_queue(struct hsa_serializer_barrier_t barrier,
                                                                uint64_t queue_id,
                                                                uint32_t *drain);

/**
 * What is known of a barrier now.
 *
 * Wait-free, but for looking the handle up; from any thread.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
 * `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_barrier_state(struct hsa_serializer_barrier_t barrier,
                                                          struct hsa_serializer_barrier_state_t *state);

/**
 * Gives the handle up. The barrier goes its way by itself.
 *
 * Once, from any thread, but not in callbacks.
 *
 * `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_barrier_destroy(struct hsa_serializer_barrier_t barrier);

/**
 * Makes a domain: what is retired in it waits for nobody but its own users. The process has one by default,
 * which does for everybody who has no reason for another.
 *
 * From any thread, but not in callbacks.
 *
 * `HSA_SERIALIZER_NULL_POINTER`.
 */
enum hsa_serializer_status_t hsa_serializer_domain_create(struct hsa_serializer_domain_t *domain);

/**
 * Gives the handle up. Serializers that were made with it keep the domain.
 *
 * From any thread, once, but not in callbacks.
 *
 * `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_domain_destroy(struct hsa_serializer_domain_t domain);

/**
 * How many deferred functions of the domain have not run yet. With a null handle: of the process's domain.
 *
 * From any thread, but not in callbacks.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_domain_pending(struct hsa_serializer_domain_t domain,
                                                           uint64_t *pending);

/**
 * What the serializer has done so far. `statistics->size` has to be set.
 *
 * Takes the transition lock for a moment: from where hsa_serializer_enable() may be called.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_BAD_SIZE`; the handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_statistics(struct hsa_serializer_t serializer,
                                                       struct hsa_serializer_statistics_t *statistics);

/**
 * Gives `write` a snapshot as text: agents, mode, queues, barriers, who waits for whom, what happened lately.
 *
 * No lock; it allocates; from any thread, while everything runs, but not in callbacks.
 *
 * `HSA_SERIALIZER_NULL_POINTER`; the handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_snapshot_text(struct hsa_serializer_t serializer,
                                                          hsa_serializer_text_fn write,
                                                          void *userdata);

/**
 * Gives `write` the snapshots of all serializers of the process, one after the other. A debugger can have them
 * printed by hsa_serializer_print_all().
 *
 * As hsa_serializer_snapshot_text().
 */
enum hsa_serializer_status_t hsa_serializer_snapshots_text(hsa_serializer_text_fn write, void *userdata);

/**
 * Adds a queue: before the first packet of the HSA queue is intercepted. Creates its ready and block signals,
 * and has the ready signal watched.
 *
 * Takes the transition lock: from where hsa_serializer_enable() may be called. 64 bytes stay in memory for
 * each queue that ever was.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_NULL_SIGNAL`,
 * `HSA_SERIALIZER_HANDLER_REFUSED`, `HSA_SERIALIZER_FULL`, `HSA_SERIALIZER_LEFT`,
 * `HSA_SERIALIZER_SHUT_DOWN` (always so in the child of a fork); the handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_queue_add(struct hsa_serializer_t serializer,
                                                      struct hsa_serializer_queue_t *queue);

/**
 * The queue's id: what handlers, events, reports, stalls and tickets call it. It stays its own when it is gone.
 *
 * Wait-free; from any thread, but not in callbacks.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_queue_id(struct hsa_serializer_queue_t queue, uint64_t *queue_id);

/**
 * Counts one kernel and says what has to stand in front of it. `packets` is an array of `capacity` AQL packets
 * of 64 bytes, at least HSA_SERIALIZER_MAX_PACKETS; it is written as far as `dispatch->packets` says.
 *
 * This is the point of no return: the kernel has to be written to the queue, or the queue has to be destroyed.
 * Do what can fail before it.
 *
 * In the queue's interceptor: one call at a time for one queue (hsa_serializer_dispatch(),
 * hsa_serializer_try_dispatch(), hsa_serializer_gap(), hsa_serializer_queue_in_flight()), which HSA sees to.
 * Two at once are a data race; most are noticed (`HSA_SERIALIZER_BUSY`), in a checked build all. Beside
 * hsa_serializer_queue_destroyed() of the same queue on another thread it is safe. Never takes a lock.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_TOO_SMALL`, `HSA_SERIALIZER_SHUT_DOWN`,
 * `HSA_SERIALIZER_QUEUE_GONE` (there is no ticket then: pass the kernel on as it is),
 * `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
 * `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_dispatch(struct hsa_serializer_queue_t queue,
                                                     void *packets,
                                                     size_t capacity,
                                                     struct hsa_serializer_dispatch_t *dispatch);

/**
 * hsa_serializer_dispatch(), unless `limit` dispatches of this queue, or more, are in flight: then
 * `HSA_SERIALIZER_LIMIT`. Keep the kernel then, with all that the application submits behind it, and try again
 * when a completion of this queue has come; never wait for that in the interceptor.
 *
 * As hsa_serializer_dispatch().
 */
enum hsa_serializer_status_t hsa_serializer_try_dispatch(struct hsa_serializer_queue_t queue,
                                                         void *packets,
                                                         size_t capacity,
                                                         uint64_t limit,
                                                         struct hsa_serializer_dispatch_t *dispatch);

/**
 * How many dispatches of this queue have not completed; none of a queue that is gone.
 *
 * One call at a time with hsa_serializer_dispatch() of this queue; see there.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`,
 * `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_queue_in_flight(struct hsa_serializer_queue_t queue,
                                                            uint64_t *in_flight);

/**
 * Counts the unknown work that this queue holds now: of a queue that was attached while it ran, or whose
 * packets passed unseen. `packets` and `capacity` as for hsa_serializer_dispatch().
 *
 * In the interceptor, before the queue's first dispatch after the gap: one call at a time, as
 * hsa_serializer_dispatch(). Takes the transition lock: from where hsa_serializer_enable() may be called.
 *
 * As hsa_serializer_dispatch(); `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_NULL_SIGNAL`,
 * `HSA_SERIALIZER_LEFT`.
 */
enum hsa_serializer_status_t hsa_serializer_gap(struct hsa_serializer_queue_t queue,
                                                void *packets,
                                                size_t capacity,
                                                struct hsa_serializer_marker_t *marker);

/**
 * The queue is gone: none of its packets executes any more. Whatever it held goes on without it; tickets of its
 * kernels that never ran need not be completed. The handle is stale from then on.
 *
 * Say it at one of three moments only: after `hsa_queue_destroy` returned, after `hsa_queue_inactivate`
 * returned, or after the queue's error callback was called. Earlier, a packet may still execute and wait for a
 * signal that this lets go of.
 *
 * Lock-free; from any thread, once, but not in callbacks; a call with the same handle may be under way on
 * another thread, and ends as it would. In the child of a fork it does nothing more than to give the handle up.
 *
 * `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_queue_destroyed(struct hsa_serializer_queue_t queue);

/**
 * A queue's ready signal fired: what the handler that `watch_ready` registered calls, with the id that it was
 * given. Returns what that handler has to return: whether it stays registered.
 *
 * Late and repeated calls do nothing, and any integer may be given: for what is no living queue's id it is
 * false (go). Lock-free, but where it notices misuse; from any thread that holds no lock which a callback
 * takes; in the child of a fork it does nothing.
 *
 * Hosts that made their serializer by hsa_serializer_create_hsa() need not call it.
 */
bool hsa_serializer_ready(uint64_t queue_id);

/**
 * Serializes until hsa_serializer_request_end(), whoever else wants it or not. Of several agents:
 * hsa_serializer_agents_request().
 *
 * Takes the transition lock: from where hsa_serializer_enable() may be called.
 *
 * As hsa_serializer_enable(); `HSA_SERIALIZER_NULL_POINTER`. Nothing is requested then.
 */
enum hsa_serializer_status_t hsa_serializer_request(struct hsa_serializer_t serializer,
                                                    struct hsa_serializer_request_t *request);

/**
 * Ends a request. It can't fail for want of a signal. `transition` may be null; of a request of agents nothing
 * is known, and it says `HSA_SERIALIZER_UNCHANGED`.
 *
 * Once, from where hsa_serializer_enable() may be called. Also when the serializer has ended.
 *
 * `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_request_end(struct hsa_serializer_request_t request,
                                                        struct hsa_serializer_transition_t *transition);

/**
 * The same by hand: counts one request. Each is to be given back by one hsa_serializer_release().
 *
 * As hsa_serializer_enable().
 */
enum hsa_serializer_status_t hsa_serializer_acquire(struct hsa_serializer_t serializer,
                                                    struct hsa_serializer_transition_t *transition);

/**
 * Gives back what hsa_serializer_acquire() has counted. Requests that have a handle, and the host's own switch,
 * are not touched by it.
 *
 * From where hsa_serializer_enable() may be called.
 *
 * `HSA_SERIALIZER_UNBALANCED`; the handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_release(struct hsa_serializer_t serializer,
                                                    struct hsa_serializer_transition_t *transition);

/**
 * How many requests there are, those of all agents among them.
 *
 * Lock-free; from any thread.
 *
 * As hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_requests(struct hsa_serializer_t serializer, uint64_t *requests);

/**
 * Makes a serializer, disabled, over functions of the host's. `options` may be null. Nothing of the
 * runtime is called.
 *
 * From any thread. The functions and what `userdata` points to are used until
 * hsa_serializer_finish_shutdown() has come to `HSA_SERIALIZER_SUCCESS` or hsa_serializer_leave() was called.
 *
 * `HSA_SERIALIZER_NULL_POINTER` (also for a function that is missing), `HSA_SERIALIZER_BAD_SIZE`,
 * `HSA_SERIALIZER_BAD_VALUE`, `HSA_SERIALIZER_FULL`; of the domain: `HSA_SERIALIZER_FOREIGN_HANDLE`,
 * `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_create(const struct hsa_serializer_options_t *options,
                                                   const struct hsa_serializer_runtime_t *runtime,
                                                   struct hsa_serializer_t *serializer);

/**
 * Makes a serializer, disabled, for one agent of AMD's runtime, by the runtime's table. `options` may be
 * null. Handlers are registered by this library: nobody has to call hsa_serializer_ready().
 *
 * In the tool's `OnLoad`, or later with a copy of the table as it was then; HSA is initialized, `agent` is the
 * handle of one of its GPUs, and HSA is shut down only after hsa_serializer_finish_shutdown() has come to
 * `HSA_SERIALIZER_SUCCESS` or hsa_serializer_leave() was called.
 *
 * As hsa_serializer_create(); `HSA_SERIALIZER_BAD_TABLE`, `HSA_SERIALIZER_NOT_A_GPU`,
 * `HSA_SERIALIZER_BAD_AGENT`.
 */
enum hsa_serializer_status_t hsa_serializer_create_hsa(const struct hsa_serializer_options_t *options,
                                                       const struct hsa_serializer_hsa_t *hsa,
                                                       uint64_t agent,
                                                       struct hsa_serializer_t *serializer);

/**
 * Gives the handle up. The serializer has to have ended: hsa_serializer_finish_shutdown() (or try_) has come
 * to `HSA_SERIALIZER_SUCCESS`, or hsa_serializer_leave() was called. Handles of its queues, cuts, requests and
 * watches stay what they are, and have still to be given up. Serializers of agents go with these, by
 * hsa_serializer_agents_destroy().
 *
 * From any thread, once; other threads may be inside of calls with this handle, which end as they would.
 * Some 30 KiB stay in memory for each serializer that was destroyed.
 *
 * `HSA_SERIALIZER_NOT_FINISHED`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
 * `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_destroy(struct hsa_serializer_t serializer);

/**
 * The mode in which a dispatch begun now would run.
 *
 * Wait-free; from anywhere, also in callbacks, signal handlers and the child of a fork.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
 * `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_mode(struct hsa_serializer_t serializer, uint32_t *mode);

/**
 * Serializes from now on: every dispatch begun after this returns runs alone. The host's own switch, beside
 * requests: the last word counts. It does not wait. `transition` may be null.
 *
 * Takes the transition lock: not in callbacks, and in an interceptor only if no thread that is inside of such
 * a call can wait for its queue's lock.
 *
 * `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_NULL_SIGNAL`, `HSA_SERIALIZER_LEFT`,
 * `HSA_SERIALIZER_SHUT_DOWN` (always so in the child of a fork); the handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_enable(struct hsa_serializer_t serializer,
                                                   struct hsa_serializer_transition_t *transition);

/**
 * Lets kernels run as the application wrote them, from now on, unless somebody requests serializing. It does
 * not wait. `transition` may be null.
 *
 * From where hsa_serializer_enable() may be called.
 *
 * `HSA_SERIALIZER_SHUT_DOWN`; the handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_disable(struct hsa_serializer_t serializer,
                                                    struct hsa_serializer_transition_t *transition);

/**
 * Runs deferred reclamation, as far as no thread holds it back, and delivers reports. Everything that is slow
 * does it by itself; this is for a host that has an idle moment.
 *
 * Lock-free; from any thread, but not in callbacks.
 *
 * The handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_collect(struct hsa_serializer_t serializer);

/**
 * The first phase of shutting down: from now on dispatches come to `HSA_SERIALIZER_SHUT_DOWN`, and the host
 * passes their kernels on as they are. Serialized kernels that are queued go on being granted. Any number of
 * times.
 *
 * Takes the transition lock: from any thread, handlers' included, but not in callbacks.
 *
 * The handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_begin_shutdown(struct hsa_serializer_t serializer);

/**
 * The second phase: waits until everything that was dispatched has completed, removes all queues, hears their
 * handlers go, and destroys every signal; for `timeout_ns` nanoseconds at the most. Begins the shutdown, if
 * that was not done. After `HSA_SERIALIZER_SUCCESS` nothing of this serializer calls the runtime again. On
 * time-out `remaining` (which may be null) is told what is left, before this returns: try again; or say
 * hsa_serializer_release_all() and try again; or hsa_serializer_leave().
 *
 * It waits: on a thread of the host's own, as hsa_serializer_drain(). Any number of times.
 *
 * `HSA_SERIALIZER_TIMED_OUT`, `HSA_SERIALIZER_ON_HANDLER_THREAD` (the first phase is done then); the
 * handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_finish_shutdown(struct hsa_serializer_t serializer,
                                                            uint64_t timeout_ns,
                                                            hsa_serializer_remaining_fn remaining,
                                                            void *userdata);

/**
 * One step of hsa_serializer_finish_shutdown(), which never waits: for hosts that wait in a way of their own.
 *
 * Takes the transition lock: from any thread, but not in callbacks.
 *
 * `HSA_SERIALIZER_NOT_FINISHED`, having told `remaining` (which may be null) what is left; the handle's, as
 * hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_try_finish_shutdown(struct hsa_serializer_t serializer,
                                                                hsa_serializer_remaining_fn remaining,
                                                                void *userdata);

/**
 * The kill switch: lets everything through, now, and serializes nothing any more. There is no way back, and
 * hsa_serializer_finish_shutdown() is still to be said. Any number of times.
 *
 * Takes the transition lock: from any thread, but not in callbacks.
 *
 * The handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_release_all(struct hsa_serializer_t serializer);

/**
 * Leaves everything as it is: from now on the serializer does not call the runtime any more. For a runtime that
 * is gone already, for the child of a fork (which has left by itself), for a process that ends. While the
 * runtime lives, say hsa_serializer_release_all() first: what is queued and serialized does not run otherwise.
 *
 * Wait-free; from anywhere, also in callbacks, signal handlers and pthread_atfork's handlers.
 *
 * The handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_leave(struct hsa_serializer_t serializer);

/**
 * To look for what stands still for longer than `after_ns` nanoseconds: longer than any kernel of the
 * application takes from one completion to the next. `policy` is one of hsa_serializer_stall_policy_t.
 *
 * From any thread, but not in callbacks.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_BAD_VALUE`; the handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_stall_watch_create(struct hsa_serializer_t serializer,
                                                               uint64_t after_ns,
                                                               uint32_t policy,
                                                               struct hsa_serializer_stall_watch_t *watch);

/**
 * Tells `stall` (which may be null) what has stood still for longer than was allowed, as of `now_ns` on any
 * clock that only goes on; `count` (which may be null) gets how many there are. The first call starts the time.
 * With the policy *release* what holds others back is let go: one at a call. Where the process may be stopped (by
 * SIGSTOP, by a debugger), leave out of `now_ns` what lies between two calls that came too far apart.
 *
 * Takes the transition lock, and allocates: on a thread of the host's own, every second or so; not in callbacks,
 * interceptors nor handlers. One call at a time for one watch.
 *
 * `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`,
 * `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_stall_watch_check(struct hsa_serializer_stall_watch_t watch,
                                                              uint64_t now_ns,
                                                              hsa_serializer_stall_fn stall,
                                                              void *userdata,
                                                              size_t *count);

/**
 * Gives the handle up.
 *
 * Once, from any thread, but not in callbacks. A check that is under way on another thread ends as it would.
 *
 * `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_stall_watch_destroy(struct hsa_serializer_stall_watch_t watch);

/**
 * The text of a status, which lives as long as the library; of any other number, one that says so. Never
 * null. From any thread, at any time, in signal handlers too.
 */
const char *hsa_serializer_status_string(uint32_t status);

/**
 * The `hsa_status_t` with which the runtime refused something in this thread's last call that came to
 * `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_HANDLER_REFUSED` or `HSA_SERIALIZER_BAD_AGENT`; 0 if there
 * was none. From any thread.
 */
uint32_t hsa_serializer_last_runtime_status(void);

/**
 * Reports that the packet processor is through with a dispatch: its kernel and the caller's packets behind it,
 * well or badly. Exactly once for each ticket, in any order. A kernel that will never be launched is not
 * completed: its queue is destroyed.
 *
 * From any thread, but not in callbacks. Lock-free, but where it notices misuse.
 *
 * A ticket of an earlier dispatch that comes when everything of its queue has completed is refused; used again
 * while something is in flight, it passes for another one. A checked build refuses every used one.
 *
 * `HSA_SERIALIZER_FOREIGN_TICKET`, `HSA_SERIALIZER_USED_TICKET`; in a checked build also
 * `HSA_SERIALIZER_NEVER_DISPATCHED`; the handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_complete(struct hsa_serializer_t serializer,
                                                     struct hsa_serializer_ticket_t ticket);

/**
 * Checks a ticket against the dispatches of its queue, without using it.
 *
 * Wait-free; from any thread.
 *
 * `HSA_SERIALIZER_FOREIGN_TICKET`, `HSA_SERIALIZER_NEVER_DISPATCHED`; in a checked build also
 * `HSA_SERIALIZER_USED_TICKET`; the handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_check(struct hsa_serializer_t serializer,
                                                  struct hsa_serializer_ticket_t ticket);

/**
 * The library's version as text, which lives as long as the library. Never null. From anywhere.
 */
const char *hsa_serializer_version(void);

/**
 * The library's version: major << 16 | minor << 8 | patch. While the major version is 0, a program needs the
 * minor version that it was compiled with. From anywhere.
 */
uint32_t hsa_serializer_version_number(void);

/**
 * Waits until everything that is in flight now has been completed, or its queue is gone, for `timeout_ns`
 * nanoseconds at the most. What is dispatched meanwhile is not waited for; it waits, on the GPU, for what is.
 * On time-out `stuck` (which may be null) is told which queues are not through, before this returns.
 *
 * It waits: on a thread of the host's own, not in callbacks, interceptors, nor handlers, nor under a lock that
 * one of these takes.
 *
 * `HSA_SERIALIZER_TIMED_OUT`, `HSA_SERIALIZER_ON_HANDLER_THREAD`, `HSA_SERIALIZER_NO_SIGNAL`,
 * `HSA_SERIALIZER_NULL_SIGNAL`, `HSA_SERIALIZER_LEFT` (always so in the child of a fork); the handle's, as
 * hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_drain(struct hsa_serializer_t serializer,
                                                  uint64_t timeout_ns,
                                                  hsa_serializer_stuck_fn stuck,
                                                  void *userdata);

/**
 * What is in flight now, to be asked after without waiting: for hosts that wait in a way of their own. It is to
 * be given up by hsa_serializer_cut_end() or hsa_serializer_cut_withdraw().
 *
 * Takes the transition lock: from where hsa_serializer_enable() may be called.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_NO_SIGNAL`, `HSA_SERIALIZER_NULL_SIGNAL`,
 * `HSA_SERIALIZER_LEFT`; the handle's, as hsa_serializer_mode().
 */
enum hsa_serializer_status_t hsa_serializer_cut(struct hsa_serializer_t serializer,
                                                struct hsa_serializer_cut_t *cut);

/**
 * The queues that are not through yet. `count` gets how many there are; `queues` gets them. With a `capacity`
 * of 0, `queues` may be null, and `count` is written all the same.
 *
 * From any thread, but not in callbacks; one call at a time for one cut.
 *
 * `HSA_SERIALIZER_NULL_POINTER`, `HSA_SERIALIZER_TOO_SMALL`, `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`,
 * `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_cut_in_flight(struct hsa_serializer_cut_t cut,
                                                          struct hsa_serializer_in_flight_t *queues,
                                                          size_t capacity,
                                                          size_t *count);

/**
 * Gives the handle up. Later work goes on waiting for what was in flight.
 *
 * Once, from any thread, but not in callbacks.
 *
 * `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_cut_end(struct hsa_serializer_cut_t cut);

/**
 * Lets go what waits for the cut, though something of it is in flight, and gives the handle up. `needed` (which
 * may be null) says whether that was needed. Kernels may run side by side that should not have.
 *
 * Once, from where hsa_serializer_enable() may be called.
 *
 * `HSA_SERIALIZER_BUSY`, `HSA_SERIALIZER_NULL_HANDLE`, `HSA_SERIALIZER_FOREIGN_HANDLE`, `HSA_SERIALIZER_STALE_HANDLE`.
 */
enum hsa_serializer_status_t hsa_serializer_cut_withdraw(struct hsa_serializer_cut_t cut,
                                                         bool *needed);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* HSA_SERIALIZER_H */

#ifdef __cplusplus
extern "C" {
#endif
/**
 * Prints a snapshot of each serializer of this process to the standard error's descriptor, without a lock: for a
 * debugger to call in a process that hangs, on whatever thread it has stopped.
 *
 *     gdb -p PID -batch -ex 'call (void) hsa_serializer_print_all()'
 */
void hsa_serializer_print_all(void);
#ifdef __cplusplus
}
#endif
