//! The share of its CPU that a service spends on handshakes.

use tlsprof_common::units::{percent, share_of_cpu, time};
use tlsprof_report::model::Service;

/// The share of its CPU that a service spends on handshakes; None where its
/// CPU time is not known, or the two accounts disagree.
pub(super) fn share(service: &Service) -> Option<f64> {
    share_of_cpu(service.handshake_cpu_seconds(), service.cpu_seconds.total())
}

/// A figure that comes from the CPU time of handshakes, which may be a lower bound.
pub(super) fn at_least(service: &Service, figure: String) -> String {
    match service.handshake_cpu_is_lower_bound {
        true => format!("at least {figure}"),
        false => figure,
    }
}

/// The share in words.
pub(super) fn in_words(service: &Service) -> String {
    let known = share(service).map(|share| at_least(service, percent(share)));
    known.unwrap_or_else(|| "-".to_owned())
}

/// Which accounts of a service disagree.
pub(super) fn disagreement(service: &Service) -> Option<String> {
    let (handshakes, all) = (service.handshake_cpu_seconds(), service.cpu_seconds.total());
    (all > 0.0 && share(service).is_none()).then(|| {
        format!(
            "The CPU times of {} disagree: {} measured in handshakes, but {} accounted by the \
             kernel to the processes. No share is shown, and no saving predicted.",
            service.service_name,
            time(handshakes),
            time(all)
        )
    })
}
