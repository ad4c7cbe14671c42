// The two classes in the shape that profilers have.

#include "stage.hpp"

using namespace stage;

namespace {

struct counted {
    ticket receipt;
    std::optional<aql_packet> packet;
    explicit counted(queue &on) : packet(barrier::enqueue_packet<aql_packet>(on, receipt)) {}
};

struct told {
    std::vector<outcome> all;
    std::function<void(outcome)> call() {
        return [this](outcome how) { all.push_back(how); };
    }
};

/// The queues go before the barrier, as they have to.
void end(barrier &ended, std::initializer_list<queue *> queues, const runtime &machine) {
    for (queue *one : queues) CHECK_OK(ended.remove_queue(*one));
    CHECK(ended.complete());
    CHECK(within(std::chrono::seconds(10), [&] {
        // A look runs what was deferred.
        static_cast<void>(ended.set().statistics());
        ended.set_barrier();
        return machine.live() <= 2;
    }));
}

} // namespace

TEST(barrier_with_nothing_in_flight) {
    auto machine = std::make_shared<runtime>();
    told heard;
    barrier one(machine, heard.call());
    queue q0 = one.add_queue();
    CHECK(one.complete());
    one.set_barrier();
    CHECK(one.complete());
    CHECK((heard.all == std::vector<outcome>{outcome::cleared}));
    const counted kernel(q0);
    CHECK(kernel.receipt && !kernel.packet);
    CHECK(one.register_completion(kernel.receipt));
    end(one, {&q0}, *machine);
}

TEST(barrier_with_one_queue_in_flight) {
    auto machine = std::make_shared<runtime>();
    told heard;
    barrier one(machine, heard.call());
    queue q0 = one.add_queue(), q1 = one.add_queue();
    const counted before(q0);
    CHECK(before.receipt && !before.packet);
    one.set_barrier();
    CHECK(!one.complete());
    const counted first(q1), second(q1), same(q0);
    CHECK(first.packet && !second.packet && same.packet);
    CHECK(heard.all.empty());
    CHECK(one.register_completion(before.receipt));
    CHECK((heard.all == std::vector<outcome>{outcome::cleared}));
    for (const counted *kernel : {&first, &second, &same}) CHECK(one.register_completion(kernel->receipt));
    CHECK_EQ(one.set().statistics().misuse, 0U);
    end(one, {&q0, &q1}, *machine);
}

TEST(barrier_that_waits_for_several_queues) {
    auto machine = std::make_shared<runtime>();
    told heard;
    barrier one(machine, heard.call());
    std::vector<queue> queues;
    std::vector<counted> before;
    for (int n = 0; n < 10; ++n) {
        queues.push_back(one.add_queue());
        before.emplace_back(queues.back());
        before.emplace_back(queues.back());
    }
    one.set_barrier();
    for (std::size_t n = before.size(); n-- > 0;) {
        CHECK(!one.complete() && heard.all.empty());
        CHECK_EQ(one.register_completion(before[n].receipt), n == 0);
    }
    CHECK_EQ(heard.all.size(), 1U);
    for (queue &last : queues) CHECK_OK(one.remove_queue(last));
}

TEST(barrier_that_waits_for_a_queue_which_goes) {
    auto machine = std::make_shared<runtime>();
    told heard;
    barrier one(machine, heard.call());
    queue q0 = one.add_queue(), q1 = one.add_queue();
    const counted before(q0), other(q1);
    one.set_barrier();
    CHECK_OK(one.remove_queue(q0));
    CHECK(!one.complete());
    CHECK(one.register_completion(other.receipt));
    // Late, and of a queue that is gone.
    CHECK(one.register_completion(before.receipt));
    const counted refused(q0);
    CHECK(!refused.receipt && !refused.packet);
    CHECK(one.register_completion(refused.receipt));
    CHECK_EQ(heard.all.size(), 1U);
    end(one, {&q1}, *machine);
}

TEST(barrier_that_is_set_again) {
    auto machine = std::make_shared<runtime>();
    told heard;
    barrier one(machine, heard.call());
    queue q0 = one.add_queue();
    const counted before(q0);
    one.set_barrier();
    // No kernel came: the next one waits for the same.
    one.set_barrier();
    CHECK((heard.all == std::vector<outcome>{outcome::superseded}));
    CHECK(!one.complete());
    machine->fail_next = runtime::failure::refuses;
    const counted behind(q0);
    CHECK_THROWS(HSA_SERIALIZER_NO_SIGNAL, one.set_barrier());
    CHECK(!one.complete());
    CHECK(one.register_completion(before.receipt));
    CHECK((heard.all == std::vector<outcome>{outcome::superseded, outcome::cleared}));
    CHECK(one.register_completion(behind.receipt));
    barrier moved = std::move(one);
    CHECK(moved.complete());
    end(moved, {&q0}, *machine);
}

TEST(barrier_that_was_moved_from_is_null) {
    auto machine = std::make_shared<runtime>();
    told heard;
    barrier one(machine, heard.call());
    queue q0 = one.add_queue();
    const counted kernel(q0);
    barrier moved = std::move(one);
    CHECK_THROWS(HSA_SERIALIZER_NULL_HANDLE, one.set_barrier());
    CHECK_THROWS(HSA_SERIALIZER_NULL_HANDLE, static_cast<void>(one.add_queue()));
    CHECK(one.complete() && one.register_completion(kernel.receipt));
    moved.set_barrier();
    CHECK(!moved.complete());
    one = std::move(moved);
    CHECK(!one.complete() && one.register_completion(kernel.receipt));
    CHECK((heard.all == std::vector<outcome>{outcome::cleared}));
    end(one, {&q0}, *machine);
}

/// Whatever the mode is when it completes, a kernel completes as what it was dispatched as: by its ticket.
TEST(profiler_serializer_from_a_dispatch_to_its_completion) {
    auto machine = std::make_shared<runtime>();
    profiler_serializer one(machine);
    queue q0 = one.add_queue(), q1 = one.add_queue();
    const auto plain = profiler_serializer::kernel_dispatch<aql_packet>(q0);
    CHECK(plain.ticket && !plain.serialized && plain.packets.empty());
    CHECK(one.enable().did == change::changed);
    const auto first = profiler_serializer::kernel_dispatch<aql_packet>(q0);
    const auto second = profiler_serializer::kernel_dispatch<aql_packet>(q1);
    CHECK(first.serialized && first.packets.size() == 3);
    CHECK(second.serialized && second.packets.size() == 3);
    CHECK_OK(one.kernel_completion_signal(plain.ticket));

    const auto ready_of = machine->watched();
    machine->subtract_one(ready_of.at(q0.id()));
    machine->subtract_one(ready_of.at(q1.id()));
    CHECK(profiler_serializer::queue_ready(q0.id()));
    CHECK(profiler_serializer::queue_ready(q1.id()));
    one.disable();
    const auto after = profiler_serializer::kernel_dispatch<aql_packet>(q0);
    CHECK(!after.serialized && after.packets.size() == 1);
    CHECK_EQ(one.all().statistics().grants, 1U);
    CHECK_OK(one.kernel_completion_signal(first.ticket));
    CHECK_EQ(one.all().statistics().grants, 2U);
    CHECK_OK(one.kernel_completion_signal(second.ticket));
    CHECK_OK(one.kernel_completion_signal(after.ticket));
    CHECK_EQ(one.all().statistics().misuse, 0U);

    CHECK_OK(one.destroy_queue(q0));
    CHECK(!profiler_serializer::queue_ready(q0.id()));
    CHECK(!profiler_serializer::kernel_dispatch<aql_packet>(q0).ticket);
    finish(one.all(), *machine);
    CHECK(!profiler_serializer::queue_ready(q1.id()));
    const auto late = profiler_serializer::kernel_dispatch<aql_packet>(q1);
    CHECK(!late.ticket && late.packets.empty());
    CHECK_OK(one.kernel_completion_signal(late.ticket));
}
