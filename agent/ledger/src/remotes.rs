//! Ephemeral ports: how many of those that lead to one remote endpoint are in use.

use std::collections::BTreeMap;
use std::time::Duration;

use tlsprof_common::Remote;

use super::connections::Standing;

/// Remote endpoints kept apart for each service; connections to further ones are
/// in no figure on ports.
const REMOTES: usize = 256;

/// Ports toward the remote endpoint that takes up the most of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Open connections, and those in TIME_WAIT, whose port cannot be taken for
    /// another connection to the same endpoint before it is over.
    pub used: u64,
    /// How many there are (`ip_local_port_range`).
    pub available: u32,
}

impl Ports {
    /// `used` as a share of `available`, at most 1: on loopback the kernel takes
    /// ports in TIME_WAIT again after a second.
    #[allow(clippy::cast_precision_loss, reason = "ports are few")]
    pub fn ratio(self) -> f64 {
        if self.available == 0 {
            return 0.0;
        }
        (self.used as f64 / f64::from(self.available)).min(1.0)
    }
}

#[derive(Clone, Debug, Default)]
struct Endpoint {
    open: u64,
    time_wait: Standing,
    available: u32,
}

/// The remote endpoints that one service connects to.
#[derive(Clone, Debug, Default)]
pub(super) struct Remotes {
    endpoints: BTreeMap<u64, Endpoint>,
}

impl Remotes {
    pub(super) fn opened(&mut self, remote: Remote, now: Duration) {
        if !self.endpoints.contains_key(&remote.endpoint) && self.endpoints.len() >= REMOTES {
            self.endpoints
                .retain(|_, endpoint| endpoint.open + endpoint.time_wait.at(now) > 0);
            if self.endpoints.len() >= REMOTES {
                return;
            }
        }
        let endpoint = self.endpoints.entry(remote.endpoint).or_default();
        endpoint.open += 1;
        endpoint.available = remote.local_ports;
    }

    pub(super) fn closed(&mut self, remote: Remote, time_wait: bool, at: Duration) {
        let Some(endpoint) = self.endpoints.get_mut(&remote.endpoint) else {
            return;
        };
        endpoint.open = endpoint.open.saturating_sub(1);
        if time_wait {
            endpoint.time_wait.add(at);
        }
    }

    /// Those of the endpoint that takes up most; None without connections.
    pub(super) fn busiest(&self, now: Duration) -> Option<Ports> {
        let ports = self.endpoints.values().map(|endpoint| Ports {
            used: endpoint.open + endpoint.time_wait.at(now),
            available: endpoint.available,
        });
        ports.max_by(|a, b| a.ratio().total_cmp(&b.ratio()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(endpoint: u64) -> Remote {
        Remote {
            endpoint,
            local_ports: 100,
        }
    }

    const AT: Duration = Duration::from_secs(10);

    #[test]
    fn the_busiest_endpoint_counts() {
        let mut remotes = Remotes::default();
        assert_eq!(remotes.busiest(AT), None);
        for endpoint in [1, 2, 2, 2] {
            remotes.opened(remote(endpoint), AT);
        }
        remotes.closed(remote(2), true, AT);
        remotes.closed(remote(2), false, AT);
        let ports = remotes
            .busiest(AT)
            .map(|ports| (ports.used, ports.available));
        assert_eq!(ports, Some((2, 100)));
        let later = remotes.busiest(AT + Duration::from_secs(61));
        assert_eq!(later.map(|ports| ports.used), Some(1));
    }

    #[test]
    fn endpoints_are_bounded_and_empty_ones_give_way() {
        let mut remotes = Remotes::default();
        for endpoint in 0..10_000 {
            remotes.opened(remote(endpoint), AT);
            if endpoint % 2 == 0 {
                remotes.closed(remote(endpoint), false, AT);
            }
        }
        assert!(remotes.endpoints.len() <= REMOTES);
    }

    #[test]
    fn a_ratio_is_at_most_one() {
        let ports = |used, available| Ports { used, available }.ratio();
        assert!((ports(50, 100) - 0.5).abs() < f64::EPSILON);
        assert!((ports(500, 100) - 1.0).abs() < f64::EPSILON);
        assert!(ports(1, 0).abs() < f64::EPSILON);
    }
}
