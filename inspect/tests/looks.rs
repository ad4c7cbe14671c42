//! What comes of a program in which one queue holds up another: as a graph, as JSON, as a picture.

mod common;

use common::Held;
use hsa_serializer::{Serializer, doc_runtime};
use hsa_serializer_inspect::{Stalled, dot, json, snapshots, stall_svg};

#[test]
fn the_graph_has_an_arrow_to_the_cause_which_is_red() {
    let held = Held::new();
    let text = dot([&held.serializer.snapshot()]);
    let [holder, waiter] = ["queue 0", "queue 1"].map(|queue| {
        let line = text.lines().find(|line| line.contains(queue)).unwrap();
        (line.trim().split(' ').next().unwrap(), line)
    });
    assert!(holder.1.contains("color=red") && holder.1.contains("GPU 0xa001"));
    assert!(!waiter.1.contains("color=red"));
    let arrow = format!("{} -> {}", waiter.0, holder.0);
    assert!(
        text.starts_with("digraph {") && text.contains(&arrow),
        "{text}"
    );
    assert_eq!(text.matches("->").count(), 1);
}

#[test]
fn json_says_the_same_as_the_snapshot() {
    let held = Held::new();
    let now = held.serializer.snapshot();
    let text = json(&now).to_string();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["agent"], "0xa001");
    assert_eq!(value["mode"], "enabled");
    assert_eq!(value["roots"][0]["who"]["queue"], "queue 0");
    assert_eq!(value["roots"][0]["holds_up"][0]["queue"], "queue 1");
    assert_eq!(value["queues"][0]["activity"], "holds token");
    assert_eq!(value["queues"][1]["activity"], "waits for token");
    assert_eq!(value["statistics"]["dispatches"], 2);
    assert_eq!(value["waits"].as_array().unwrap().len(), now.waits().len());
    assert_eq!(value["recent"].as_array().unwrap().len(), now.recent.len());
}

#[test]
fn all_serializers_of_the_process_are_found_while_they_live() {
    let number = |held: &Held| held.serializer.snapshot().serializer;
    let finds = |number| snapshots().iter().any(|s| s.serializer == number);
    let (first, second) = (Held::new(), Held::new());
    let [a, b] = [number(&first), number(&second)];
    assert!(finds(a) && finds(b));
    first.end();
    assert!(!finds(a) && finds(b));
    second.end();
    assert!(!finds(b));
}

/// The words in each box, and each arrow's class.
fn boxes_and_arrows(page: &str) -> (Vec<String>, Vec<String>) {
    let page = roxmltree::Document::parse(page).unwrap();
    let of = |tag: &'static str| page.descendants().filter(move |n| n.has_tag_name(tag));
    let class = |n: roxmltree::Node<'_, '_>| n.attribute("class").unwrap_or_default().to_owned();
    let boxes = of("rect").map(class).filter(|class| class != "page");
    let arrows = of("path").map(class).filter(|class| !class.is_empty());
    (boxes.collect(), arrows.collect())
}

#[test]
fn the_picture_of_a_stall_has_its_cause_in_red_and_an_arrow_a_wait() {
    let held = Held::new();
    let snapshot = held.serializer.snapshot();
    let root = snapshot.roots()[0].0;
    let waiter = snapshot.waits()[0].who;
    let stalled = Stalled {
        title: "a < b",
        snapshot: &snapshot,
        also: &[(root, waiter, "needs it & spins")],
    };
    let page = stall_svg(&[stalled]);
    let (boxes, arrows) = boxes_and_arrows(&page);
    assert_eq!(
        (boxes, arrows),
        (
            vec!["root".into(), "party".into()],
            vec!["waits".into(), "also".into()]
        )
    );
    for said in [
        "a &lt; b",
        "needs it &amp; spins",
        "GPU 0xa001",
        "waits for its turn",
        "An arrow leads from",
    ] {
        assert!(page.contains(said), "{said} is missing in\n{page}");
    }
    // Where nobody waits nobody is drawn.
    held.serializer.release_all();
    held.end();
    let idle = doc_runtime::Host::default();
    let idle = Serializer::<doc_runtime::Host>::builder().build(idle);
    let queue = idle.add_queue().unwrap();
    let stalled = Stalled {
        title: "idle",
        snapshot: &idle.snapshot(),
        also: &[],
    };
    assert_eq!(boxes_and_arrows(&stall_svg(&[stalled])), (vec![], vec![]));
    idle.leave();
    drop(queue);
}
