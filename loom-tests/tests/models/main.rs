//! The models, one question a file.

#[cfg(hsa_serializer_loom)]
mod agent;
#[cfg(hsa_serializer_loom)]
mod block_against_takers;
#[cfg(hsa_serializer_loom)]
mod cell_freed_against_taken;
#[cfg(hsa_serializer_loom)]
mod cell_reuse_against_completion;
#[cfg(hsa_serializer_loom)]
mod clear_against_removed_tag;
#[cfg(hsa_serializer_loom)]
mod completions_against_arming;
#[cfg(hsa_serializer_loom)]
mod cut_against_completion;
#[cfg(hsa_serializer_loom)]
mod cut_against_dispatch;
#[cfg(hsa_serializer_loom)]
mod dispatch_against_transition;
#[cfg(hsa_serializer_loom)]
mod due_of_two_publishers;
#[cfg(hsa_serializer_loom)]
mod ending;
#[cfg(hsa_serializer_loom)]
mod finish_against_add_queue;
#[cfg(hsa_serializer_loom)]
mod finish_against_completion;
#[cfg(hsa_serializer_loom)]
mod finish_against_dispatch;
#[cfg(hsa_serializer_loom)]
mod finish_against_enable;
#[cfg(hsa_serializer_loom)]
mod finish_against_ready;
#[cfg(hsa_serializer_loom)]
mod finish_against_release;
#[cfg(hsa_serializer_loom)]
mod force_against_clearing;
#[cfg(hsa_serializer_loom)]
mod force_older_first;
#[cfg(hsa_serializer_loom)]
mod gap_against_completion;
#[cfg(hsa_serializer_loom)]
mod gap_against_dispatch;
#[cfg(hsa_serializer_loom)]
mod leave_against_reclaim;
#[cfg(hsa_serializer_loom)]
mod list_adjacent_unlinks;
#[cfg(hsa_serializer_loom)]
mod list_adjacent_unlinks_against_traversal;
#[cfg(hsa_serializer_loom)]
mod list_push_against_traversal;
#[cfg(hsa_serializer_loom)]
mod list_push_against_unlink;
#[cfg(hsa_serializer_loom)]
mod list_unlink_against_traversal;
#[cfg(hsa_serializer_loom)]
mod overtake_against_completion;
#[cfg(hsa_serializer_loom)]
mod overtake_against_removal;
#[cfg(hsa_serializer_loom)]
mod overtake_of_an_old_grant;
#[cfg(hsa_serializer_loom)]
mod push_against_takers;
#[cfg(hsa_serializer_loom)]
mod ready_against_complete;
#[cfg(hsa_serializer_loom)]
mod registry_change_against_find;
#[cfg(hsa_serializer_loom)]
mod registry_two_changes;
#[cfg(hsa_serializer_loom)]
mod release_against_completion;
#[cfg(hsa_serializer_loom)]
mod release_against_dispatch;
#[cfg(hsa_serializer_loom)]
mod release_against_ready;
#[cfg(hsa_serializer_loom)]
mod release_against_removal;
#[cfg(hsa_serializer_loom)]
mod release_against_transition_packet;
#[cfg(hsa_serializer_loom)]
mod removal_after_release;
#[cfg(hsa_serializer_loom)]
mod removal_against_dispatch;
#[cfg(hsa_serializer_loom)]
mod removal_against_transition;
#[cfg(hsa_serializer_loom)]
mod removal_of_granted;
#[cfg(hsa_serializer_loom)]
mod removal_of_waiting;
#[cfg(hsa_serializer_loom)]
mod repeated_callback;
#[cfg(hsa_serializer_loom)]
mod reports_of_two;
#[cfg(hsa_serializer_loom)]
mod slot_reuse;
#[cfg(hsa_serializer_loom)]
mod superseded_against_completion;
#[cfg(hsa_serializer_loom)]
mod superseded_against_dispatch;
#[cfg(hsa_serializer_loom)]
mod superseded_against_removal;
#[cfg(hsa_serializer_loom)]
mod tag_against_retirement;
#[cfg(hsa_serializer_loom)]
mod two_finishers;
#[cfg(hsa_serializer_loom)]
mod two_queues_added;
#[cfg(hsa_serializer_loom)]
mod two_readies;
#[cfg(hsa_serializer_loom)]
mod two_transitions_against_completion;
#[cfg(hsa_serializer_loom)]
mod two_transitions_against_dispatch;
#[cfg(hsa_serializer_loom)]
mod withdraw_against_transition;
#[cfg(hsa_serializer_loom)]
mod world;

#[cfg(hsa_serializer_loom)]
fn main() -> std::process::ExitCode {
    loom_tests::main(&[
        &dispatch_against_transition::MODEL,
        &completions_against_arming::MODEL,
        &tag_against_retirement::MODEL,
        &clear_against_removed_tag::MODEL,
        &superseded_against_dispatch::MODEL,
        &superseded_against_completion::MODEL,
        &superseded_against_removal::MODEL,
        &due_of_two_publishers::MODEL,
        &removal_against_dispatch::MODEL,
        &removal_against_transition::MODEL,
        &slot_reuse::MODEL,
        &two_readies::MODEL,
        &ready_against_complete::MODEL,
        &repeated_callback::MODEL,
        &removal_of_waiting::MODEL,
        &removal_of_granted::MODEL,
        &overtake_against_completion::MODEL,
        &overtake_of_an_old_grant::MODEL,
        &overtake_against_removal::MODEL,
        &release_against_dispatch::MODEL,
        &release_against_ready::MODEL,
        &release_against_completion::MODEL,
        &release_against_transition_packet::MODEL,
        &release_against_removal::MODEL,
        &removal_after_release::MODEL,
        &finish_against_completion::MODEL,
        &finish_against_release::MODEL,
        &finish_against_add_queue::MODEL,
        &finish_against_enable::MODEL,
        &two_finishers::MODEL,
        &leave_against_reclaim::MODEL,
        &force_against_clearing::MODEL,
        &force_older_first::MODEL,
        &withdraw_against_transition::MODEL,
        &gap_against_dispatch::MODEL,
        &gap_against_completion::MODEL,
        &cut_against_dispatch::MODEL,
        &cut_against_completion::MODEL,
        &finish_against_ready::MODEL,
        &finish_against_dispatch::MODEL,
        &list_push_against_unlink::MODEL,
        &list_push_against_traversal::MODEL,
        &list_unlink_against_traversal::MODEL,
        &list_adjacent_unlinks::MODEL,
        &list_adjacent_unlinks_against_traversal::MODEL,
        &block_against_takers::MODEL,
        &push_against_takers::MODEL,
        &registry_two_changes::MODEL,
        &registry_change_against_find::MODEL,
        &two_transitions_against_dispatch::MODEL,
        &two_transitions_against_completion::MODEL,
        &reports_of_two::MODEL,
        &cell_freed_against_taken::MODEL,
        &cell_reuse_against_completion::MODEL,
        &two_queues_added::MODEL,
    ])
}

#[cfg(not(hsa_serializer_loom))]
fn main() {}
