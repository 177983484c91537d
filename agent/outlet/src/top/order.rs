//! Which services are listed, and in which order.

use std::cmp::Ordering;

use crate::watch::ServiceState;

/// A column of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Column {
    Service,
    #[default]
    Cpu,
    Tls,
    Handshakes,
    Cost,
    Resumed,
    Failed,
    TimeWait,
    Findings,
}

impl Column {
    /// All, from left to right.
    pub const ALL: [Self; 9] = [
        Self::Service,
        Self::Cpu,
        Self::Tls,
        Self::Handshakes,
        Self::Cost,
        Self::Resumed,
        Self::Failed,
        Self::TimeWait,
        Self::Findings,
    ];

    /// The column that is so many to the right, or to the left if negative; there is none
    /// beyond the ends.
    #[must_use]
    pub(crate) fn moved(self, by: isize) -> Self {
        let at = Self::ALL.iter().position(|one| *one == self);
        let to = at.and_then(|at| at.checked_add_signed(by));
        to.and_then(|to| Self::ALL.get(to)).copied().unwrap_or(self)
    }

    /// Figure to sort by; None where the service has none. Not for names.
    fn figure(self, service: &ServiceState) -> Option<f64> {
        let rates = &service.rates;
        let main = rates.main();
        match self {
            Self::Service => None,
            Self::Cpu => Some(rates.cpu_cores),
            Self::Tls => rates.tls_ratio,
            Self::Handshakes => main.map(|role| role.handshakes_per_second),
            Self::Cost => main?.each_cpu_seconds,
            Self::Resumed => main?.resumed_ratio,
            Self::Failed => main.map(|role| role.failed_per_second),
            Self::TimeWait => Some(time_wait(service)),
            Self::Findings => Some(gravity(service)),
        }
    }
}

/// TIME_WAIT sockets of a service in all roles.
#[allow(clippy::cast_precision_loss, reason = "sockets of a host")]
pub fn time_wait(service: &ServiceState) -> f64 {
    let roles = service.rates.roles.iter();
    roles.map(|role| role.time_wait_standing as f64).sum()
}

/// A single grave finding stands before many slight ones.
fn gravity(service: &ServiceState) -> f64 {
    let severity = match service.severity.as_deref() {
        Some("high") => 4.0,
        Some("medium") => 3.0,
        Some("low") => 2.0,
        Some(_) => 1.0,
        None => 0.0,
    };
    severity * 1000.0 + f64::from(service.findings.min(999))
}

/// How the list is sorted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Order {
    /// By this column: figures from the highest, names from A.
    pub(crate) by: Column,
    /// The other way round.
    pub(crate) reversed: bool,
}

impl Order {
    /// Whether values rise from top to bottom.
    pub(crate) fn rises(self) -> bool {
        (self.by == Column::Service) != self.reversed
    }

    /// Services without a figure come last, whichever way round.
    fn compare(self, one: &ServiceState, other: &ServiceState) -> Ordering {
        let by_name = || one.service_name.cmp(&other.service_name);
        let turned = |order: Ordering| match self.rises() {
            true => order,
            false => order.reverse(),
        };
        if self.by == Column::Service {
            return turned(by_name());
        }
        let figures = (self.by.figure(one), self.by.figure(other));
        let order = match figures {
            (Some(one), Some(other)) => turned(one.total_cmp(&other)),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        order.then_with(by_name)
    }

    /// The services whose name contains `filter`, in whichever case, in this order.
    pub(crate) fn listed<'a>(
        self,
        services: &'a [ServiceState],
        filter: &str,
    ) -> Vec<&'a ServiceState> {
        let filter = filter.to_lowercase();
        let wanted = |one: &&ServiceState| one.service_name.to_lowercase().contains(&filter);
        let mut listed: Vec<_> = services.iter().filter(wanted).collect();
        listed.sort_by(|one, other| self.compare(one, other));
        listed
    }
}
