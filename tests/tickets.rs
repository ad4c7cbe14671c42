//! Tickets that are lost are counted. By itself, for the count is the process's.

use hsa_serializer::doc_runtime::Host;
use hsa_serializer::{AqlPacket, Domain, MAX_PACKETS, Serializer, Ticket};

#[test]
fn a_ticket_is_lost_that_is_dropped_and_neither_completed_nor_abandoned_nor_taken_apart() {
    let serializer = Serializer::<Host>::builder()
        .domain(Domain::new())
        .build(Host::default());
    let mut queue = serializer.add_queue().unwrap();
    let mut packets = [AqlPacket::INVALID; MAX_PACKETS];
    let mut dispatch = || queue.dispatch(&mut packets).unwrap().ticket;
    serializer.complete(dispatch()).unwrap();
    dispatch().abandon();
    let raw = dispatch().into_raw();
    assert_eq!(Ticket::lost(), 0);
    drop(dispatch());
    drop(dispatch());
    assert_eq!(Ticket::lost(), 2);
    serializer.complete(Ticket::from_raw(raw)).unwrap();
    assert_eq!(Ticket::lost(), 2);
}
