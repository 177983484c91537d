//! The one list of what can be lost: `enum tlsprof_loss` of the programs, and what the agent
//! loses itself. One that is missing here does not compile.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::{
    TLSPROF_LOSS_BEGAN_BEFORE_ATTACH, TLSPROF_LOSS_CONNECTION_NO_MEMORY, TLSPROF_LOSS_COUNT,
    TLSPROF_LOSS_EVENT_RING_FULL, TLSPROF_LOSS_EXCHANGE_TABLE_FULL,
    TLSPROF_LOSS_HANDSHAKE_TABLE_FULL, TLSPROF_LOSS_HELLO_NOT_FOLLOWED,
    TLSPROF_LOSS_NESTED_HANDSHAKE, TLSPROF_LOSS_SAMPLE_TABLE_FULL,
    TLSPROF_LOSS_SAMPLE_WITHOUT_STACK, TLSPROF_LOSS_THREAD_TABLE_FULL,
};

/// What a loss does to the figures of the profile's own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// Counts are complete.
    Harmless,
    /// Figures are too low.
    Serious,
}

macro_rules! losses {
    (
        kernel { $($kernel:ident = $constant:ident, $kernel_label:literal, $kernel_severity:ident, $kernel_words:literal;)+ }
        agent { $($agent:ident, $agent_label:literal, $agent_severity:ident, $agent_words:literal;)+ }
    ) => {
        /// Why data was lost.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[schemars(rename = "LossReason")]
        pub enum Loss {
            $(
                #[doc = $kernel_words]
                #[serde(rename = $kernel_label)]
                $kernel = $constant as isize,
            )+
            $(
                #[doc = $agent_words]
                #[serde(rename = $agent_label)]
                $agent,
            )+
            /// a reason that this version of tlsprof does not know
            #[serde(rename = "unknown", other)]
            Unknown,
        }

        impl Loss {
            /// Counted by the programs: each is its index there.
            pub const KERNEL: [Self; TLSPROF_LOSS_COUNT as usize] = [$(Self::$kernel),+];

            /// All that this version knows.
            pub const ALL: &'static [Self] = &[$(Self::$kernel,)+ $(Self::$agent),+];

            /// The value of the metric label and of the report's JSON.
            pub const fn label(self) -> &'static str {
                match self {
                    $(Self::$kernel => $kernel_label,)+
                    $(Self::$agent => $agent_label,)+
                    Self::Unknown => "unknown",
                }
            }

            /// What it does to the figures.
            pub const fn severity(self) -> Severity {
                match self {
                    $(Self::$kernel => Severity::$kernel_severity,)+
                    $(Self::$agent => Severity::$agent_severity,)+
                    Self::Unknown => Severity::Serious,
                }
            }

            /// What was lost and why: follows a number.
            pub const fn words(self) -> &'static str {
                match self {
                    $(Self::$kernel => $kernel_words,)+
                    $(Self::$agent => $agent_words,)+
                    Self::Unknown => "records or calls, for a reason that this version of tlsprof does not know",
                }
            }
        }
    };
}

losses! {
    kernel {
        EventRingFull = TLSPROF_LOSS_EVENT_RING_FULL, "event_ring_full", Serious,
            "handshakes ended faster than the agent could read them; it needs more CPU";
        HandshakeTableFull = TLSPROF_LOSS_HANDSHAKE_TABLE_FULL, "handshake_table_full", Serious,
            "more handshakes were in progress at once than limits.handshakes_in_progress allows";
        ThreadTableFull = TLSPROF_LOSS_THREAD_TABLE_FULL, "thread_table_full", Serious,
            "more threads were in handshakes at once than there is room for";
        NestedHandshake = TLSPROF_LOSS_NESTED_HANDSHAKE, "nested_handshake", Serious,
            "handshakes began inside a call of another handshake on the same thread";
        BeganBeforeAttach = TLSPROF_LOSS_BEGAN_BEFORE_ATTACH, "began_before_attach", Harmless,
            "calls belonged to handshakes that began before the profile; they are not counted";
        ConnectionNoMemory = TLSPROF_LOSS_CONNECTION_NO_MEMORY, "connection_no_memory", Serious,
            "TCP connections found no room for their state";
        ExchangeTableFull = TLSPROF_LOSS_EXCHANGE_TABLE_FULL, "exchange_table_full", Serious,
            "handshakes were not followed on their sockets: more were in progress at once than limits.handshakes_in_progress allows";
        HelloNotFollowed = TLSPROF_LOSS_HELLO_NOT_FOLLOWED, "hello_not_followed", Serious,
            "connections whose first bytes could not be read or followed (io_uring, sendfile): if they are TLS, socket calls do not show their handshakes";
        SampleTableFull = TLSPROF_LOSS_SAMPLE_TABLE_FULL, "sample_table_full", Serious,
            "CPU samples found no room: a second had more distinct ones than limits.samples allows; they are in no activity";
        SampleWithoutStack = TLSPROF_LOSS_SAMPLE_WITHOUT_STACK, "sample_without_stack", Serious,
            "CPU samples in the kernel have no stack; they are in no activity";
    }
    agent {
        UndecodableRecord, "undecodable_record", Serious,
            "records of the BPF programs could not be decoded";
        MappingRecordLost, "mapping_record_lost", Harmless,
            "records of newly mapped files were lost; the agent examines all processes again, so a TLS library may be probed a moment later";
        ProcessTableFull, "process_table_full", Serious,
            "processes were ignored: more run on this host than there is room for";
        ProgramSkipped, "program_skipped", Serious,
            "runs of programs were skipped by the kernel, because a thread had been interrupted or preempted inside one on the same CPU";
        HandshakeSilent, "handshake_silent", Serious,
            "handshakes were given up: no bytes moved on their connections for limits.handshake_silence";
        HelloGap, "hello_gap", Harmless,
            "connections whose first bytes could not be read: their negotiated parameters are partly unknown";
        HelloTableFull, "hello_table_full", Harmless,
            "more connections were open than there is room for: the negotiated parameters of some, or the cipher of their bytes, are unknown";
        HandshakeQueueFull, "handshake_queue_full", Serious,
            "handshakes were booked before both sources reported them; some may be counted twice";
        FunctionNotLookedUp, "function_not_looked_up", Serious,
            "CPU samples were counted before their functions were looked up in a large image: what these compute is known by single instructions or not at all";
    }
}

impl Loss {
    /// Whether it makes the figures of the profile's own time wrong.
    pub fn is_serious(self) -> bool {
        self.severity() == Severity::Serious
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of a table that the page has to have, without alignment.
    fn row(loss: Loss) -> String {
        let (counts, words) = (loss.severity(), loss.words());
        let counts = match counts {
            Severity::Harmless => "complete",
            Severity::Serious => "too low",
        };
        format!("| `{}` | {counts} | {words} |", loss.label())
    }

    #[test]
    fn the_page_on_metrics_lists_each_as_it_is() {
        let page = include_str!("../../../docs/metrics.md");
        let rows: Vec<String> = Loss::ALL.iter().copied().map(row).collect();
        assert!(page.contains(&rows.join("\n")), "{}", rows.join("\n"));
    }

    #[test]
    fn the_page_on_the_alert_names_no_other() {
        let page = include_str!("../../../docs/alerts/TlsprofLosesData.md");
        let (_, table) = page.split_once("| --- |").unwrap_or_default();
        let reasons = table
            .lines()
            .filter_map(|line| line.strip_prefix("| "))
            .filter_map(|line| line.split(" | ").next())
            .filter(|cell| cell.starts_with('`'))
            .flat_map(|cell| cell.split(", "));
        let known = |reason: &&str| {
            let name = reason.trim_matches('`');
            Loss::ALL.iter().any(|loss| loss.label() == name)
        };
        assert!(reasons.clone().count() > 3);
        assert_eq!(reasons.filter(|reason| !known(reason)).count(), 0);
    }

    #[test]
    fn the_alert_and_the_dashboards_are_about_serious_ones() {
        let harmless = Loss::ALL.iter().filter(|loss| !loss.is_serious());
        let mut harmless: Vec<&str> = harmless.map(|loss| loss.label()).collect();
        harmless.sort_unstable();
        // This one has a threshold of its own.
        let mut elsewhere = harmless.clone();
        elsewhere.push(Loss::HelloNotFollowed.label());
        elsewhere.sort_unstable();
        let matcher = format!("{{reason!~\"{}\"}}", elsewhere.join("|"));
        let rules = include_str!("../../../dashboards/rules/agents.rules.yml");
        assert!(rules.contains(&matcher), "{matcher}");
        assert!(rules.contains("{reason=\"hello_not_followed\"}"));
        let names = format!("HARMLESS = (\"{}\")", harmless.join("\", \""));
        let dashboards = include_str!("../../../dashboards/source/figures.py");
        assert!(dashboards.contains(&names), "{names}");
        let page = include_str!("../../../docs/alerts/TlsprofLosesData.md");
        let (ignored, _) = page.split_once("## Meaning").unwrap_or_default();
        for loss in Loss::ALL {
            let is_named = ignored.contains(&format!("`{}`", loss.label()));
            assert_eq!(is_named, !loss.is_serious(), "{loss:?}");
        }
    }

    #[test]
    fn one_of_another_version_is_read_as_unknown() {
        let read = |text| serde_json::from_str::<Loss>(text).ok();
        assert_eq!(read("\"hello_gap\""), Some(Loss::HelloGap));
        assert_eq!(read("\"of_later\""), Some(Loss::Unknown));
    }
}
