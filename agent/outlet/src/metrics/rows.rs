//! Writes a metric's series: one for each row of label values.

use std::fmt;
use std::time::Duration;

use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use super::families::Family;

/// The value of a series.
pub(super) enum Value {
    Count(u64),
    Number(f64),
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<Duration> for Value {
    fn from(time: Duration) -> Self {
        Self::Number(time.as_secs_f64())
    }
}

/// A metric without labels.
pub(super) const fn one<V>(value: V) -> [([&'static str; 0], V); 1] {
    [([], value)]
}

/// Writes a metric; a row's label values are in the order of the table.
pub(super) fn write<'a, const N: usize, V: Into<Value>>(
    encoder: &mut DescriptorEncoder<'_>,
    family: &Family<N>,
    rows: impl IntoIterator<Item = ([&'a str; N], V)>,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(family.name, family.help, None, family.kind)?;
    for (values, value) in rows {
        let labels = family.with(values);
        let mut series = metric.encode_family(&labels)?;
        match (family.kind, value.into()) {
            (MetricType::Counter, Value::Count(count)) => {
                series.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
            }
            (MetricType::Counter, Value::Number(number)) => {
                series.encode_counter::<NoLabelSet, _, u64>(&number, None)?;
            }
            (_, Value::Count(count)) => series.encode_gauge(&count)?,
            (_, Value::Number(number)) => series.encode_gauge(&number)?,
        }
    }
    Ok(())
}
