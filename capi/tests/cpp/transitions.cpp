// Transitions, tokens, and what signals live through; on plain integers.

#include "stage.hpp"

using namespace stage;

namespace {

struct theater {
    std::shared_ptr<runtime> machine = std::make_shared<runtime>();
    hsa_serializer::serializer serializer{machine};
};

} // namespace

/// The seed: a barrier has cleared, and a queue still holds its packet. The signal that the packet names stays, though
/// handles are given out last in, first out; so no later barrier arms it.
TEST(s01_a_cleared_barriers_signal_stays_while_a_packet_names_it) {
    theater the;
    queue q0 = the.serializer.add_queue(), q1 = the.serializer.add_queue();
    const sent before(*the.machine, q0);
    the.serializer.enable();
    const sent held(*the.machine, q1);
    CHECK(held.transition != 0);
    CHECK_EQ(the.machine->value(held.transition), 1);

    CHECK_OK(the.serializer.complete(before.receipt()));
    CHECK_EQ(the.machine->value(held.transition), 0);
    // Its packet has not executed. Each of these would arm the handle, had it been given back.
    for (int n = 0; n < 20; ++n) {
        n % 2 == 0 ? the.serializer.disable() : the.serializer.enable();
        the.serializer.collect();
        CHECK(the.machine->is_alive(held.transition));
        CHECK_EQ(the.machine->value(held.transition), 0);
    }
    // It executes; so the signal goes, and its handle comes again.
    held.arrive();
    held.start();
    CHECK_OK(the.serializer.complete(held.receipt()));
    CHECK(within(std::chrono::seconds(10), [&] {
        the.serializer.collect();
        return the.serializer.statistics().retired_after_drain == 1 && !the.machine->is_alive(held.transition);
    }));
    finish(the.serializer, *the.machine);
    CHECK_EQ(the.machine->live(), 0U);
}

TEST(s03_a_queue_that_waits_for_its_turn_gets_it_after_a_disable) {
    theater the;
    queue q0 = the.serializer.add_queue(), q1 = the.serializer.add_queue();
    the.serializer.enable();
    const sent d1(*the.machine, q0), d2(*the.machine, q1);
    d1.arrive();
    d1.start();
    d2.arrive();
    CHECK(!d2.is_granted());
    the.serializer.disable();
    CHECK_OK(the.serializer.complete(d1.receipt()));
    d2.start();
    CHECK_OK(the.serializer.complete(d2.receipt()));
    for (const sent *one : {&d1, &d2}) {
        CHECK_EQ(the.machine->value(one->ready), 0);
        CHECK_EQ(the.machine->value(one->block), 1);
    }
}

TEST(s04_a_pause_loses_no_completion) {
    theater the;
    queue q0 = the.serializer.add_queue();
    the.serializer.enable();
    const sent d1(*the.machine, q0), d2(*the.machine, q0);
    the.serializer.disable();
    for (const sent *one : {&d1, &d2}) {
        one->arrive();
        one->start();
        CHECK_OK(the.serializer.complete(one->receipt()));
    }
    CHECK_EQ(the.serializer.statistics().completions, 2U);
    CHECK(the.serializer.drain(std::chrono::seconds(0)).empty());
}

TEST(s09_the_switch_is_one_bit) {
    theater the;
    for (int n = 0; n < 3; ++n) the.serializer.enable();
    queue q0 = the.serializer.add_queue();
    CHECK(sent(*the.machine, q0).serialized());
    CHECK(the.serializer.disable().did == change::changed);
    CHECK(the.serializer.disable().did == change::unchanged);
    CHECK(!sent(*the.machine, q0).serialized());
    CHECK(the.serializer.enable().did == change::changed);
    CHECK(the.serializer.is_enabled());
}

TEST(s12_a_release_too_many_is_refused_and_changes_nothing) {
    theater the;
    CHECK_THROWS(HSA_SERIALIZER_UNBALANCED, the.serializer.release());
    the.serializer.acquire();
    CHECK(the.serializer.is_enabled());
    the.serializer.release();
    CHECK(!the.serializer.is_enabled());
    const request_guard guard = the.serializer.request();
    CHECK_THROWS(HSA_SERIALIZER_UNBALANCED, the.serializer.release());
    CHECK(the.serializer.is_enabled());
}

TEST(s15_a_kernel_that_completes_after_the_stop_gives_its_turn_back) {
    theater the;
    queue q0 = the.serializer.add_queue(), q1 = the.serializer.add_queue();
    std::optional<request_guard> context = the.serializer.request();
    const sent d1(*the.machine, q0), d2(*the.machine, q1);
    d1.arrive();
    d1.start();
    d2.arrive();
    context.reset();
    CHECK(!the.serializer.is_enabled());
    CHECK(!d2.is_granted());
    CHECK_OK(the.serializer.complete(d1.receipt()));
    CHECK(d2.is_granted());
}

TEST(s19_regions_nest) {
    theater the;
    {
        const request_guard outer = the.serializer.request();
        {
            const request_guard inner = the.serializer.request();
            CHECK_EQ(the.serializer.requests(), 2U);
        }
        CHECK(the.serializer.is_enabled());
        CHECK(the.serializer.disable().did != change::changed);
        CHECK(the.serializer.is_enabled());
    }
    CHECK(!the.serializer.is_enabled());
}

/// A host that reads no counters for a kernel completes it all the same.
TEST(s22_a_kernel_that_nobody_measures_gives_its_turn_back) {
    theater the;
    queue q0 = the.serializer.add_queue(), q1 = the.serializer.add_queue();
    the.serializer.enable();
    const sent unmeasured(*the.machine, q0), measured(*the.machine, q1);
    unmeasured.arrive();
    measured.arrive();
    unmeasured.start();
    CHECK_OK(the.serializer.complete(unmeasured.receipt()));
    measured.start();
}

/// The runtime has no signal: an error, success with a null handle, an exception; nothing has changed, and the
/// application goes on.
TEST(s63_a_transition_that_gets_no_signal_does_not_happen) {
    theater the;
    queue q0 = the.serializer.add_queue();
    using failure = runtime::failure;
    const struct {
        failure how;
        status code;
        std::uint32_t runtime_status;
    } forms[] = {
        {failure::refuses, HSA_SERIALIZER_NO_SIGNAL, 0x1008},
        {failure::gives_null, HSA_SERIALIZER_NULL_SIGNAL, 0},
        {failure::throws, HSA_SERIALIZER_NO_SIGNAL, 0x1000},
        {failure::has_no_memory, HSA_SERIALIZER_NO_SIGNAL, 0x1008},
    };
    for (const auto &form : forms) {
        const sent in_flight(*the.machine, q0);
        the.machine->fail_next = form.how;
        try {
            the.serializer.enable();
            CHECK(!"it got a signal");
        } catch (const error &e) {
            CHECK_EQ(e.code(), form.code);
            CHECK_EQ(e.runtime_status(), form.runtime_status);
        }
        CHECK(!the.serializer.is_enabled());
        const sent next(*the.machine, q0);
        CHECK(!next.serialized());
        CHECK_EQ(next.transition, 0U);
        CHECK_OK(the.serializer.complete(in_flight.receipt()));
        CHECK_OK(the.serializer.complete(next.receipt()));

        the.machine->fail_next = form.how;
        CHECK_THROWS(form.code, static_cast<void>(the.serializer.add_queue()));
    }
    CHECK_EQ(the.serializer.statistics().queues, 1U);
    the.serializer.enable();
    CHECK(sent(*the.machine, q0).serialized());
}
