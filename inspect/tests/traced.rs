//! Events for `tracing`, alone in their process: `tracing` keeps what a place in the code is wanted for, and
//! can miss a subscriber that comes while another thread passes there for the first time.

mod common;

use common::Held;
use std::io::Write;
use std::sync::{Arc, Mutex};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn events_come_with_their_level_and_fields() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::with_default(subscriber, || {
        let held = Held::new();
        held.serializer.release_all();
        held.end();
    });
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let says = |level: &str, parts: &[&str]| {
        let found = text.lines().any(|line| {
            line.contains(&format!(" {level} hsa_serializer: "))
                && parts.iter().all(|p| line.contains(p))
        });
        assert!(found, "{level} {parts:?} is missing in\n{text}");
    };
    says("INFO", &["transition 1", "agent=40961", "epoch=1"]);
    says("INFO", &["queue 0 added", "queue=\"queue 0\""]);
    says("DEBUG", &["barrier 1 cleared", "epoch=1"]);
    says("TRACE", &["queue 0 has its turn", "waited_ns="]);
    says("WARN", &["everything let through"]);
    assert!(!text.contains("epoch=None"));
}
