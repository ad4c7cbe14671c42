//! Functions that take anything, or nothing.

use crate::host::Host;
use crate::world::{World, add_queue, end, id, serializer};
use hsa_serializer_capi::queue::hsa_serializer_queue_destroyed;
use hsa_serializer_capi::ready::hsa_serializer_ready;
use hsa_serializer_capi::status::hsa_serializer_status_t::*;
use hsa_serializer_capi::status::*;
use hsa_serializer_capi::version::*;
use std::collections::HashSet;
use std::ffi::CStr;

fn text(status: u32) -> &'static str {
    // SAFETY: it is a string that lives as long as the library.
    let text = unsafe { CStr::from_ptr(hsa_serializer_status_string(status)) };
    text.to_str().expect("UTF-8")
}

#[test]
fn each_status_has_a_text_of_its_own() {
    let last = HSA_SERIALIZER_UNTOUCHED as u32;
    let header = include_str!("../../include/hsa_serializer.h");
    let statuses = header
        .split("enum hsa_serializer_status_t {")
        .nth(1)
        .expect("it is declared");
    let statuses = statuses
        .split("} hsa_serializer_status_t")
        .next()
        .expect("it ends")
        .matches(" = ")
        .count();
    assert_eq!(
        statuses as u32,
        last + 1,
        "the last one has to be the last one"
    );
    let texts: HashSet<_> = (0..=last).map(text).collect();
    assert_eq!(texts.len(), statuses);
    let unknown = text(last + 1);
    assert!(!texts.contains(unknown));
    for number in [last + 2, 1 << 31, u32::MAX] {
        assert_eq!(text(number), unknown);
    }
}

#[test]
fn the_version_is_one() {
    // SAFETY: it is a string that lives as long as the library.
    let text = unsafe { CStr::from_ptr(hsa_serializer_version()) }
        .to_str()
        .unwrap();
    let number = hsa_serializer_version_number();
    let parts = [number >> 16, number >> 8 & 0xff, number & 0xff].map(|part| part.to_string());
    assert_eq!(text, parts.join("."));
}

#[test]
fn a_thread_that_was_refused_nothing_has_no_runtime_status() {
    let said = std::thread::spawn(|| hsa_serializer_last_runtime_status());
    assert_eq!(said.join().unwrap(), 0);
}

#[test]
fn ready_with_any_integer_says_go_unless_it_is_a_living_queue() {
    let (host, world) = (Host::new(), World::new());
    let serializer = serializer(host);
    let queue = add_queue(serializer).unwrap();
    let (own, called) = (id(queue), host.state().called.len());
    let before = world.seen();
    let near = [
        own ^ 1,
        own ^ 0x8000,
        own ^ 1 << 31,
        own ^ 1 << 32,
        own ^ 1 << 62,
    ];
    let handles = [queue.handle, serializer.handle];
    for integer in [0, 1, u64::MAX, 1 << 63]
        .into_iter()
        .chain(near)
        .chain(handles)
    {
        assert!(!hsa_serializer_ready(integer), "{integer:#x}");
    }
    assert_eq!(before, world.seen());
    // Too early, so that it has to stay: of its signal it is seen that it did not fire.
    assert!(hsa_serializer_ready(own));
    assert_eq!(host.state().called.len(), called + 1);
    assert_eq!(
        hsa_serializer_queue_destroyed(queue),
        HSA_SERIALIZER_SUCCESS
    );
    assert!(!hsa_serializer_ready(own), "it is gone");
    end(host, serializer);
    assert!(!hsa_serializer_ready(own), "its serializer is gone");
    host.assert_no_violations();
}

#[test]
fn a_debugger_can_have_everything_printed() {
    let world = World::new();
    let before = world.seen();
    unsafe extern "C" {
        safe fn hsa_serializer_print_all();
    }
    hsa_serializer_print_all();
    assert_eq!(before, world.seen());
}
