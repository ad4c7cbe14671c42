//! The models, one question a file.

mod agent;
mod agent_made_against_request_of_all;
mod block_against_takers;
mod cell_freed_against_taken;
mod cell_reuse_against_completion;
mod clear_against_removed_tag;
mod completion_overtaken;
mod completions_against_arming;
mod cut_against_completion;
mod cut_against_dispatch;
mod dispatch_against_transition;
mod due_of_two_publishers;
mod ending;
mod finish_against_add_queue;
mod finish_against_completion;
mod finish_against_dispatch;
mod finish_against_enable;
mod finish_against_ready;
mod finish_against_release;
mod force_against_clearing;
mod force_older_first;
mod gap_against_completion;
mod gap_against_dispatch;
mod grant_names_its_queue;
mod guessed_id_against_add_queue;
mod lease_end_against_end;
mod lease_two_users_against_end;
mod lease_use_against_end;
mod leave_against_reclaim;
mod list_adjacent_unlinks;
mod list_adjacent_unlinks_against_traversal;
mod list_push_against_traversal;
mod list_push_against_unlink;
mod list_unlink_against_traversal;
mod overtake_against_completion;
mod overtake_against_removal;
mod overtake_of_an_old_grant;
mod push_against_takers;
mod ready_against_complete;
mod recorder_alone_against_late;
mod recorder_alone_against_read;
mod recorder_two_writes;
mod recorder_write_against_read;
mod registry_change_against_find;
mod registry_two_changes;
mod release_against_completion;
mod release_against_dispatch;
mod release_against_ready;
mod release_against_removal;
mod release_against_transition_packet;
mod removal_after_release;
mod removal_against_dispatch;
mod removal_against_transition;
mod removal_of_granted;
mod removal_of_waiting;
mod repeated_callback;
mod reports_of_two;
mod requests_against_each_other;
mod slot_reuse;
mod superseded_against_completion;
mod superseded_against_dispatch;
mod superseded_against_removal;
mod tag_against_retirement;
mod two_finishers;
mod two_first_touches;
mod two_queues_added;
mod two_readies;
mod two_transitions_against_completion;
mod two_transitions_against_dispatch;
mod withdraw_against_transition;
mod world;

use loom_tests::Explored;

/// In the order in which they are explored and printed.
pub(crate) const ALL: [&dyn Explored; 68] = [
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
    &completion_overtaken::MODEL,
    &two_readies::MODEL,
    &grant_names_its_queue::MODEL,
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
    &guessed_id_against_add_queue::MODEL,
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
    &requests_against_each_other::MODEL,
    &agent_made_against_request_of_all::MODEL,
    &two_first_touches::MODEL,
    &recorder_write_against_read::MODEL,
    &recorder_two_writes::MODEL,
    &recorder_alone_against_late::MODEL,
    &recorder_alone_against_read::MODEL,
    &lease_use_against_end::MODEL,
    &lease_end_against_end::MODEL,
    &lease_two_users_against_end::MODEL,
];
