//! Who wants it, who waits for whom, and what it cost: requests, agents, the limit on run-ahead, events,
//! times and snapshots. Lines of docs/scenarios.md have tests that are named after them.
//!
//! | module | holds |
//! |---|---|
//! | `requests`, `agents` | who wants it, of one agent and of all |
//! | `limit` | how many dispatches may be in flight |
//! | `events` | each event, in its order |
//! | `times` | waiting times, on a clock that the test turns |
//! | `snapshots` | who waits for whom, at any moment |
//! | `reviewed` | bad moments that a review found |
//! | `lane`, `host` | a packet processor that is stepped by hand; a runtime that can be looked into |

mod agents;
mod events;
mod host;
mod lane;
mod limit;
#[path = "../lifecycle/pinned.rs"]
mod pinned;
mod requests;
mod reviewed;
mod snapshots;
mod times;
