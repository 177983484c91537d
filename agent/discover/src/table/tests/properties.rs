//! Whatever happens, in whatever order, the counted users of images are those
//! that the live processes really map, and are in order.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::mappings::mapping_at;
use super::*;

#[derive(Clone, Debug)]
enum Action {
    Start(Pid, Pid, u64, u64),
    Vanish(Pid),
    Fork(Pid, Pid),
    Exec(Pid),
    Exit(Pid),
    Map(Pid, u64, u64),
    Scan,
    Select(Pid),
}

fn action() -> impl Strategy<Value = Action> {
    let pid = || 1..8_u32;
    prop_oneof![
        (pid(), pid(), 0..3_u64, 1..4_u64).prop_map(|(a, b, c, d)| Action::Start(a, b, c, d)),
        pid().prop_map(Action::Vanish),
        (pid(), pid()).prop_map(|(a, b)| Action::Fork(a, b)),
        pid().prop_map(Action::Exec),
        pid().prop_map(Action::Exit),
        (pid(), 1..6_u64, 0..4_u64).prop_map(|(a, b, c)| Action::Map(a, b, c)),
        Just(Action::Scan),
        pid().prop_map(Action::Select),
    ]
}

fn perform(fake: &Fake, table: &mut ProcessTable<Fake>, action: &Action) {
    match *action {
        Action::Start(pid, parent, start, image) => {
            fake.run(pid, parent, start, "/bin/x", &[image, image + 1]);
        }
        Action::Vanish(pid) => fake.end(pid),
        Action::Fork(parent, child) => table.apply(&fork(parent, child)),
        Action::Exec(pid) => table.apply(&exec(pid, "/bin/y")),
        Action::Exit(pid) => table.apply(&exit(pid, 3)),
        Action::Map(pid, image, away) => table.mapped(pid, mapping_at(image, image + away)),
        Action::Scan => {
            let ended = table.scan().unwrap();
            assert!(table.live().all(|pid| !ended.contains(&pid)));
        }
        Action::Select(pid) => {
            // A pid that is not there selects nothing and changes nothing.
            let _ = table.select(&Selection::Pid(pid), &ListeningPorts::default());
        }
    }
}

proptest! {
    #[test]
    fn images_in_use_are_those_that_live_processes_map(
        actions in prop::collection::vec(action(), 0..60),
    ) {
        let fake = Fake::default();
        let mut table = ProcessTable::new(fake.clone());
        let mut in_use = BTreeSet::new();
        for action in actions {
            perform(&fake, &mut table, &action);
            for change in table.take_changes() {
                match change {
                    ImageChange::Lost(image) => prop_assert!(in_use.remove(&image)),
                    ImageChange::Gained { image, .. } => prop_assert!(in_use.insert(image)),
                }
            }
            let mapped: BTreeSet<ImageId> =
                table.services().iter().flat_map(|s| &s.images).map(|(_, m)| m.image()).collect();
            prop_assert_eq!(&in_use, &mapped);
            let everywhere: BTreeSet<ImageId> = table
                .live()
                .flat_map(|pid| table.images_of(pid))
                .map(Mapping::image)
                .collect();
            let counted: BTreeSet<ImageId> = table.usage.in_use().collect();
            prop_assert_eq!(&counted, &everywhere);
            for pid in table.live() {
                let images = table.images_of(pid);
                prop_assert!(images.is_sorted_by(|a, b| a.end <= b.start), "{:?}", images);
            }
        }
    }
}
