// What docs/migrating.md takes for granted: a host as it was before. Its code is compiled behind this (../cpp.rs).

#include <hsa_serializer.hpp>

#include <mutex>
#include <unordered_set>

using hsa_status_t = std::uint32_t;
constexpr hsa_status_t HSA_STATUS_SUCCESS = 0;
struct hsa_queue_t;

using packet = hsa_serializer::aql_packet;
void set_barrier_bit(packet &);
void set_completion(packet &, std::uint64_t signal);

struct logger {
    void report(const hsa_serializer::report &);
};
void log_misuse(const char *text);

class Queue;
struct queue_info_session;
void tell_application(queue_info_session &, std::int64_t value);

struct controller {
    std::shared_ptr<Queue> take(hsa_queue_t *);
    hsa_status_t runtime_queue_destroy(hsa_queue_t *);
    void store_signal(std::uint64_t signal, std::int64_t value);
};
