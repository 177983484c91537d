//! Hundreds of workers cost about what one does.

use super::*;

/// A master and workers that load one library more, all found by the scan.
fn pool() -> (Fake, ProcessTable<Fake>) {
    let fake = Fake::default();
    fake.run(10, 1, 50, "/usr/sbin/nginx", &[LIBSSL]);
    for pid in 11..14 {
        fake.run(pid, 10, 60, "/usr/sbin/nginx", &[LIBSSL, OTHER]);
    }
    let mut table = ProcessTable::new(fake.clone());
    table.scan().unwrap();
    (fake, table)
}

#[test]
fn workers_that_differ_from_their_master_share_their_images() {
    let (_fake, table) = pool();
    let images = |pid| &table.entries[&pid].images;
    assert!(!Arc::ptr_eq(images(10), images(11)));
    assert!(Arc::ptr_eq(images(11), images(12)));
    assert!(Arc::ptr_eq(images(11), images(13)));
}

#[test]
fn the_view_of_a_service_has_each_image_once() {
    let (fake, mut table) = pool();
    fake.run(14, 10, 70, "/usr/sbin/nginx", &[LIBSSL, 300]);
    table.scan().unwrap();
    let services = table.services();
    let images = services[0].images.iter();
    let images: Vec<_> = images.map(|(pid, image)| (*pid, image.inode)).collect();
    assert_eq!(images, [(10, LIBSSL), (11, OTHER), (14, 300)]);
}

#[test]
fn one_worker_that_ends_leaves_the_images_of_the_others() {
    let (fake, mut table) = pool();
    changes(&mut table);
    fake.end(12);
    table.scan().unwrap();
    assert!(changes(&mut table).is_empty());
    assert_eq!(users(&table, OTHER), [11, 13]);
    for pid in [11, 13] {
        fake.end(pid);
    }
    table.scan().unwrap();
    assert_eq!(changes(&mut table), ["-200"]);
}
