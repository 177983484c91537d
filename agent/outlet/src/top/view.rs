//! The figures that are drawn.

use std::time::Duration;

use crate::watch::{Details, SeriesState, ServiceState, State, Watch};

/// What is shown of the services under watch.
#[derive(Clone, Debug)]
pub struct View {
    /// All services in the last interval.
    pub state: State,
    /// How long an interval is.
    pub interval: Duration,
    /// The service whose page is shown.
    pub opened: Option<Opened>,
}

/// One service.
#[derive(Clone, Debug)]
pub struct Opened {
    /// In the last interval; None if it has gone.
    pub now: Option<ServiceState>,
    /// Interval by interval; None if it is one of those that share a history.
    pub(crate) series: Option<SeriesState>,
    /// In the last minutes; None if nothing is known of it.
    pub(crate) details: Option<Details>,
}

impl View {
    /// The figures that stand in the watch.
    pub fn of(watch: &Watch, interval: Duration, opened: Option<&str>) -> Self {
        let state = watch.state(watch.history().last_point());
        let opened = opened.map(|name| Opened {
            now: state
                .services
                .iter()
                .find(|one| one.service_name == name)
                .cloned(),
            series: watch.series(name, 0),
            details: watch.details(name),
        });
        Self {
            state,
            interval,
            opened,
        }
    }
}
