//! The share of its CPU that a service spends on handshakes.

use crate::outlet::report::model::Service;
use crate::outlet::terminal::printable;
use crate::outlet::terminal::units::time;
use crate::units::share_of_cpu;

/// The share of its CPU that a service spends on handshakes; None where its
/// CPU time is not known, or the two accounts disagree.
pub(in crate::outlet::report) fn share(service: &Service) -> Option<f64> {
    share_of_cpu(service.handshake_cpu_seconds(), service.cpu_seconds.total())
}

/// Which accounts of a service disagree.
pub(super) fn disagreement(service: &Service) -> Option<String> {
    let (handshakes, all) = (service.handshake_cpu_seconds(), service.cpu_seconds.total());
    (all > 0.0 && share(service).is_none()).then(|| {
        format!(
            "The accounts of {} disagree: handshakes used {} of CPU by their own clocks, the processes \
             used {} by the kernel's. No share is given, and no saving predicted.",
            printable(&service.service_name),
            time(handshakes),
            time(all)
        )
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed test should stop")]

    use crate::outlet::report::sample;
    use crate::outlet::report::text::render;
    use crate::outlet::terminal::Style;

    #[test]
    fn accounts_that_disagree_are_told_and_give_no_share() {
        let mut report = sample::report();
        let first = report.services.first_mut().unwrap();
        first.cpu_seconds.user = first.handshake_cpu_seconds() * 0.6;
        first.cpu_seconds.system = 0.0;
        let text = render(&report, Style::plain(80));
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            words.contains("The accounts of nginx.service disagree"),
            "{text}"
        );
        assert!(words.starts_with("nginx.service spent "), "{text}");
        assert!(!words.contains("spends"), "{text}");
    }
}
