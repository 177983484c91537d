//! Where images lie that processes map and unmap at run time.

use super::*;

/// An image at another place than it has by default.
pub(super) fn mapping_at(inode: u64, page: u64) -> Mapping {
    Mapping {
        start: page << 12,
        end: (page + 1) << 12,
        ..mapping(inode)
    }
}

/// What the process maps from now on, as the kernel lists it.
fn remap(fake: &Fake, pid: Pid, images: &[Mapping]) {
    fake.0.borrow_mut().get_mut(&pid).unwrap().1 = images.to_vec();
}

/// Images of a process with the pages that they lie at.
fn pages(table: &ProcessTable<Fake>, pid: Pid) -> Vec<(u64, u64)> {
    let images = table.images_of(pid).iter();
    images.map(|it| (it.inode, it.start >> 12)).collect()
}

#[test]
fn a_library_loaded_below_others_is_in_its_place() {
    let (_fake, mut table) = nginx();
    // A set of its own, and one that it shares with its parent.
    table.mapped(10, mapping(150));
    table.apply(&fork(10, 12));
    table.mapped(12, mapping(50));
    let alone = [(LIBSSL, LIBSSL), (150, 150), (OTHER, OTHER)];
    assert_eq!(pages(&table, 10), alone);
    table.mapped(12, mapping(120));
    let all = [
        (50, 50),
        (LIBSSL, LIBSSL),
        (120, 120),
        (150, 150),
        (OTHER, OTHER),
    ];
    assert_eq!(pages(&table, 12), all);
    assert_eq!(pages(&table, 10), alone);
}

#[test]
fn a_library_loaded_once_more_is_where_it_lies_now() {
    let (fake, mut table) = nginx();
    changes(&mut table);
    remap(&fake, 10, &[mapping_at(LIBSSL, 20), mapping(OTHER)]);
    table.mapped(10, mapping_at(LIBSSL, 20));
    assert!(changes(&mut table).is_empty());
    assert_eq!(pages(&table, 10), [(LIBSSL, 20), (OTHER, OTHER)]);
    assert_eq!(pages(&table, 11), [(LIBSSL, LIBSSL), (OTHER, OTHER)]);
}

#[test]
fn a_library_in_the_place_of_another_replaces_it() {
    let (fake, mut table) = nginx();
    fake.end(11);
    table.scan().unwrap();
    changes(&mut table);
    remap(&fake, 10, &[mapping_at(300, LIBSSL), mapping(OTHER)]);
    table.mapped(10, mapping_at(300, LIBSSL));
    assert_eq!(changes(&mut table), ["-100", "+300@10"]);
    assert_eq!(pages(&table, 10), [(300, LIBSSL), (OTHER, OTHER)]);
}

#[test]
fn a_record_from_before_an_exec_changes_nothing() {
    let (_fake, mut table) = nginx();
    changes(&mut table);
    table.mapped(10, mapping_at(LIBSSL, 20));
    table.mapped(10, mapping_at(400, OTHER));
    assert!(changes(&mut table).is_empty());
    assert_eq!(pages(&table, 10), [(LIBSSL, LIBSSL), (OTHER, OTHER)]);
}

#[test]
fn an_image_that_its_process_has_unmapped_is_reported_with_another_or_not_at_all() {
    let (fake, mut table) = nginx();
    changes(&mut table);
    let image = mapping(LIBSSL).image();
    assert!(!table.has_let_go(10, image), "it maps it");
    for (pid, next) in [(10, vec!["+100@11"]), (11, vec![])] {
        remap(&fake, pid, &[mapping(OTHER)]);
        assert!(table.has_let_go(pid, image));
        table.report_again(image);
        assert_eq!(changes(&mut table), next);
    }
    assert!(!table.is_mapped(image));
}

#[test]
fn a_process_that_is_gone_has_let_go_of_its_images() {
    let (fake, mut table) = nginx();
    changes(&mut table);
    let image = mapping(LIBSSL).image();
    fake.end(10);
    assert!(table.has_let_go(10, image));
    table.report_again(image);
    assert_eq!(changes(&mut table), ["+100@11"]);
    // Its CPU time comes with its end.
    table.apply(&exit(10, 7));
    assert_eq!(
        table.take_cpu(|_| true),
        BTreeMap::from([(ServiceName::new("nginx"), cpu(7, 0))])
    );
}

#[test]
fn a_scan_finds_the_processes_whose_end_was_lost() {
    let (fake, mut table) = nginx();
    changes(&mut table);
    assert!(table.scan().unwrap().is_empty());
    // A worker was replaced, and a master has become another program.
    fake.end(11);
    fake.run(12, 10, 70, "/usr/sbin/nginx", &[LIBSSL, OTHER]);
    fake.run(10, 1, 80, "/usr/bin/node", &[OTHER]);
    assert_eq!(table.scan().unwrap(), [11]);
    assert_eq!(service(&table, 12), Some("nginx"));
    assert_eq!(users(&table, LIBSSL), [12]);
    table.apply(&exit(11, 0));
    assert!(table.scan().unwrap().is_empty(), "once only");
}

#[test]
fn a_process_whose_end_is_noticed_before_its_exec_is_read_keeps_its_unit() {
    let (fake, mut table) = nginx();
    fake.0.borrow_mut().get_mut(&10).unwrap().0.cgroup = Cgroup::Unit("web".into());
    table.scan().unwrap();
    table.apply(&fork(10, 15));
    // As for a mapping that contradicts what its parent had.
    table.refresh(15);
    table.apply(&exec(15, "/usr/bin/curl"));
    assert_eq!(service(&table, 15), Some("web"));
}
