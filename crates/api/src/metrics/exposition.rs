//! Families of metrics, collected for one response.

use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType, Summary,
};
use prometheus::{Error, TextEncoder};

/// The metrics of one response.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    families: Vec<MetricFamily>,
}

/// A metric, with a sample for each set of labels.
pub(crate) struct Family<'a> {
    family: &'a mut MetricFamily,
}

impl Exposition {
    /// Adds a value that goes up and down. A name ends in its unit: `_bytes`, `_seconds`, `_ratio`;
    /// a count has no unit.
    pub(crate) fn gauge(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, MetricType::GAUGE)
    }

    /// Adds a value that only goes up while the program runs. A name ends in `_total`.
    pub(crate) fn counter(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, MetricType::COUNTER)
    }

    /// Adds the count of events, and the sum of their values.
    pub(crate) fn summary(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, MetricType::SUMMARY)
    }

    /// Adds a summary with the distribution of the values.
    pub(crate) fn histogram(&mut self, name: &str, help: &str) -> Family<'_> {
        self.family(name, help, MetricType::HISTOGRAM)
    }

    fn family(&mut self, name: &str, help: &str, kind: MetricType) -> Family<'_> {
        let mut family = MetricFamily::default();
        family.set_name(name.to_owned());
        family.set_help(help.to_owned());
        family.set_field_type(kind);
        let at = self.families.len();
        self.families.push(family);
        Family { family: &mut self.families[at] }
    }

    /// Returns all metrics as text, in the order in which they were added, without families that
    /// have no sample.
    ///
    /// # Errors
    /// A family has no name.
    pub(crate) fn text(self) -> Result<String, Error> {
        let reported = self.families.into_iter().filter(|family| !family.get_metric().is_empty());
        TextEncoder::new().encode_to_string(&reported.collect::<Vec<_>>())
    }
}

impl Family<'_> {
    /// Adds the sample of a gauge or of a counter.
    pub(crate) fn add(&mut self, labels: &[(&str, &str)], value: f64) -> &mut Self {
        let mut metric = labelled(labels);
        match self.family.get_field_type() {
            MetricType::COUNTER => {
                let mut counter = Counter::default();
                counter.set_value(value);
                metric.set_counter(counter);
            }
            _ => {
                let mut gauge = Gauge::default();
                gauge.set_value(value);
                metric.set_gauge(gauge);
            }
        }
        self.family.mut_metric().push(metric);
        self
    }

    /// Adds the sample of a whole number.
    pub(crate) fn count(&mut self, labels: &[(&str, &str)], value: u64) -> &mut Self {
        self.add(labels, value as f64)
    }

    /// Adds the sample of a summary: the count and the sum.
    pub(crate) fn sum(&mut self, labels: &[(&str, &str)], count: u64, sum: f64) -> &mut Self {
        let (mut metric, mut summary) = (labelled(labels), Summary::default());
        summary.set_sample_count(count);
        summary.set_sample_sum(sum);
        metric.set_summary(summary);
        self.family.mut_metric().push(metric);
        self
    }

    /// Adds the sample of a histogram: its buckets in ascending order, each with its upper bound
    /// and its own count; that of the last one is infinite. The sum is of all values.
    pub(crate) fn buckets(
        &mut self,
        labels: &[(&str, &str)],
        buckets: impl IntoIterator<Item = (f64, u64)>,
        sum: f64,
    ) -> &mut Self {
        let (mut metric, mut histogram) = (labelled(labels), Histogram::default());
        let mut count = 0;
        let mut reported = Vec::new();
        for (upper_bound, own_count) in buckets {
            count += own_count;
            // The encoder adds an infinite one itself, in the spelling of Prometheus.
            if upper_bound.is_finite() {
                let mut bucket = Bucket::default();
                bucket.set_upper_bound(upper_bound);
                bucket.set_cumulative_count(count);
                reported.push(bucket);
            }
        }
        histogram.set_bucket(reported);
        histogram.set_sample_count(count);
        histogram.set_sample_sum(sum);
        metric.set_histogram(histogram);
        self.family.mut_metric().push(metric);
        self
    }
}

fn labelled(labels: &[(&str, &str)]) -> Metric {
    let pair = |(name, value): &(&str, &str)| {
        let mut pair = LabelPair::default();
        pair.set_name((*name).to_owned());
        pair.set_value((*value).to_owned());
        pair
    };
    Metric::from_label(labels.iter().map(pair).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_with_samples_are_written_with_escaped_labels() {
        let mut page = Exposition::default();
        page.gauge("a_bytes", "Bytes.").count(&[], 5).add(&[("kind", "x\"y\\z")], 0.5);
        page.counter("none_total", "Nothing yet.");
        page.summary("wait_seconds", "Waits.").sum(&[("class", "read")], 3, 1.5);
        let buckets = [(0.5, 2), (1.0, 0), (f64::INFINITY, 1)];
        page.histogram("take_seconds", "Takes.").buckets(&[("kind", "x")], buckets, 7.5);
        let expected = "# HELP a_bytes Bytes.\n# TYPE a_bytes gauge\na_bytes 5\n\
                        a_bytes{kind=\"x\\\"y\\\\z\"} 0.5\n\
                        # HELP wait_seconds Waits.\n# TYPE wait_seconds summary\n\
                        wait_seconds_sum{class=\"read\"} 1.5\n\
                        wait_seconds_count{class=\"read\"} 3\n\
                        # HELP take_seconds Takes.\n# TYPE take_seconds histogram\n\
                        take_seconds_bucket{kind=\"x\",le=\"0.5\"} 2\n\
                        take_seconds_bucket{kind=\"x\",le=\"1\"} 2\n\
                        take_seconds_bucket{kind=\"x\",le=\"+Inf\"} 3\n\
                        take_seconds_sum{kind=\"x\"} 7.5\n\
                        take_seconds_count{kind=\"x\"} 3\n";
        assert_eq!(page.text().unwrap(), expected);
    }
}
