//! What the table tells of processes that are not selected.

use super::*;

/// Processes and images that are new, or gone, since the last call.
fn remapped_and_gone(table: &mut ProcessTable<Fake>) -> (Vec<Pid>, Vec<u64>) {
    let gone = table.take_gone();
    let gone = gone.iter().map(|image| image.inode);
    (table.take_remapped(), gone.collect())
}

/// nginx is selected, init and what comes later are not.
fn only_nginx_selected() -> (Fake, ProcessTable<Fake>) {
    let (fake, mut table) = nginx();
    let nginx = Selection::Service("nginx".into());
    table.select(&nginx, &ListeningPorts::default()).unwrap();
    assert_eq!(changes(&mut table), ["+100@10", "+200@10"]);
    let (remapped, gone) = remapped_and_gone(&mut table);
    assert_eq!(remapped, [1, 10, 11], "all are new at first");
    assert!(gone.is_empty());
    (fake, table)
}

#[test]
fn a_process_that_maps_something_is_reported() {
    let (fake, mut table) = only_nginx_selected();
    table.apply(&fork(1, 30));
    assert_eq!(
        remapped_and_gone(&mut table),
        (vec![], vec![]),
        "a fork maps nothing of its own"
    );
    fake.run(30, 1, 70, "/bin/qemu", &[LIBSSL, 300]);
    table.apply(&exec(30, "/bin/qemu"));
    assert_eq!(remapped_and_gone(&mut table), (vec![30], vec![]));
    table.mapped(30, mapping(301));
    assert_eq!(remapped_and_gone(&mut table), (vec![30], vec![]));
    table.mapped(30, mapping(301));
    assert_eq!(remapped_and_gone(&mut table), (vec![], vec![]));
    let images = table.images_of(30).iter().map(|mapping| mapping.inode);
    assert_eq!(images.collect::<Vec<u64>>(), [LIBSSL, 300, 301]);
    assert_eq!(users(&table, LIBSSL), [10, 11, 30]);
    assert!(changes(&mut table).is_empty(), "nothing selected changed");
}

#[test]
fn an_image_is_gone_with_its_last_process() {
    let (fake, mut table) = only_nginx_selected();
    fake.run(30, 1, 70, "/bin/qemu", &[LIBSSL, 300]);
    table.scan().unwrap();
    for pid in [10, 11] {
        table.apply(&exit(pid, 0));
    }
    assert_eq!(changes(&mut table), ["-100", "-200"]);
    assert_eq!(
        remapped_and_gone(&mut table),
        (vec![30], vec![]),
        "qemu still has libssl, and init the other"
    );
    table.mapped(30, mapping(301));
    table.apply(&exit(30, 0));
    assert_eq!(
        remapped_and_gone(&mut table),
        (vec![], vec![LIBSSL, 300, 301]),
        "the dead are not reported"
    );
    assert!(table.images_of(30).is_empty());
}
