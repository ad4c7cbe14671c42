//! Kernels as a reader finds them, and the trace they make.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::{ErrorKind, Format, Kernel, QueueInfo, Reason, Skipped, Trace, TraceError};

/// A kernel as it stands in the file.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    pub(crate) name: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) queue: &'a str,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) index: u64,
    pub(crate) line: u64,
}

type Numbers = HashMap<String, u32>;

/// Takes kernels in any order. Agents and queues are numbered as they come, and renumbered in
/// their natural order at the end, so that a trace does not depend on the order of its rows.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    kernels: Vec<Kernel>,
    names: HashSet<Arc<str>>,
    agents: Numbers,
    /// The queues of each agent, by its number.
    queues: Vec<Numbers>,
    queue_count: u32,
    skipped: Skipped,
}

impl Collector {
    pub(crate) fn skip(&mut self, reason: Reason) {
        self.skipped.add(reason);
    }

    pub(crate) fn add(&mut self, found: &Found<'_>) {
        let name = match self.names.get(found.name) {
            Some(name) => Arc::clone(name),
            None => {
                let name: Arc<str> = found.name.into();
                self.names.insert(Arc::clone(&name));
                name
            }
        };
        // Neither counter overflows: a file has at most as many bytes as a u32 counts.
        let agent = number(&mut self.agents, found.agent, self.queues.len() as u32);
        if agent as usize == self.queues.len() {
            self.queues.push(Numbers::new());
        }
        let queue = number(
            &mut self.queues[agent as usize],
            found.queue,
            self.queue_count,
        );
        if queue == self.queue_count {
            self.queue_count += 1;
        }
        self.kernels.push(Kernel {
            name,
            agent,
            queue,
            start_ns: found.start_ns,
            end_ns: found.end_ns,
            index: found.index,
            line: found.line,
        });
    }

    pub(crate) fn finish(self, file: &str, format: Format) -> Result<Trace, TraceError> {
        let Self {
            mut kernels,
            agents,
            mut queues,
            queue_count,
            skipped,
            ..
        } = self;
        let Some(origin_ns) = kernels.iter().map(|kernel| kernel.start_ns).min() else {
            return Err(TraceError::new(file, ErrorKind::NoKernels(skipped)));
        };

        let mut agents: Vec<(String, u32)> = agents.into_iter().collect();
        agents.sort_by(|(a, _), (b, _)| natural(a, b));
        let mut agent_of = vec![0; agents.len()];
        let mut queue_of = vec![0; queue_count as usize];
        let mut queue_infos = Vec::with_capacity(queue_of.len());
        for (agent, &(_, old_agent)) in (0u32..).zip(&agents) {
            agent_of[old_agent as usize] = agent;
            let mut of_agent: Vec<(String, u32)> = std::mem::take(&mut queues[old_agent as usize])
                .into_iter()
                .collect();
            of_agent.sort_by(|(a, _), (b, _)| natural(a, b));
            for (name, old_queue) in of_agent {
                queue_of[old_queue as usize] = queue_infos.len() as u32;
                queue_infos.push(QueueInfo { agent, name });
            }
        }

        for kernel in &mut kernels {
            kernel.agent = agent_of[kernel.agent as usize];
            kernel.queue = queue_of[kernel.queue as usize];
            kernel.start_ns -= origin_ns;
            kernel.end_ns -= origin_ns;
        }
        kernels.sort_by_key(|kernel| (kernel.start_ns, kernel.end_ns, kernel.index));
        let agents = agents.into_iter().map(|(name, _)| name).collect();
        Ok(Trace {
            kernels,
            agents,
            queues: queue_infos,
            origin_ns,
            skipped,
            format,
        })
    }
}

/// The number of a name, which is `next` if it is new.
fn number(numbers: &mut Numbers, name: &str, next: u32) -> u32 {
    if let Some(&number) = numbers.get(name) {
        return number;
    }
    numbers.insert(name.to_owned(), next);
    next
}

/// The order of names that end in numbers: `Agent 4` before `Agent 10`.
fn natural(a: &str, b: &str) -> Ordering {
    fn key(name: &str) -> (&str, usize, &str) {
        let prefix = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = name[prefix.len()..].trim_start_matches('0');
        (prefix, number.len(), number)
    }
    key(a).cmp(&key(b)).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn natural_order() {
        let mut names = [
            "Agent 10",
            "b",
            "7",
            "Agent 4",
            "10",
            "07",
            "Agent 4x",
            "99999999999999999999",
        ];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(
            names,
            [
                "07",
                "7",
                "10",
                "99999999999999999999",
                "Agent 4",
                "Agent 10",
                "Agent 4x",
                "b"
            ]
        );
    }
}
