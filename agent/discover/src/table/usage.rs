//! Which images are in use.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::image::Mapping;
use tlsprof_common::{ImageId, Pid};

/// The images of a process, shared by those that have the same ones since a fork.
pub(super) type ImageSet = Arc<Vec<Mapping>>;

/// An image gained its first process, or lost its last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageChange {
    /// No process maps it any more. Comes before all `Gained`.
    Lost(ImageId),
    /// It is in use now.
    Gained {
        /// The image.
        image: ImageId,
        /// A live process that maps it.
        process: Pid,
        /// Where: open it with [`Mapping::open`].
        mapping: Mapping,
    },
}

/// Counts image sets, not processes: a fork that shares its parent's set changes
/// nothing here and costs nothing.
#[derive(Debug, Default)]
pub(super) struct ImageUsage {
    sets: HashMap<ImageId, Sets>,
    /// Images that selected processes gained or lost.
    changed: BTreeSet<ImageId>,
    reported: BTreeSet<ImageId>,
    /// Images that lost their last process, selected or not.
    gone: BTreeSet<ImageId>,
}

/// How many sets hold an image.
#[derive(Debug, Default)]
struct Sets {
    selected: usize,
    others: usize,
}

impl Sets {
    fn of(&mut self, selected: bool) -> &mut usize {
        match selected {
            true => &mut self.selected,
            false => &mut self.others,
        }
    }
}

impl ImageUsage {
    /// Counts a new set, of selected processes or of others.
    pub(super) fn add(&mut self, images: &[Mapping], selected: bool) {
        for mapping in images {
            let sets = self.sets.entry(mapping.image()).or_default();
            let count = sets.of(selected);
            *count += 1;
            if selected && *count == 1 {
                self.changed.insert(mapping.image());
            }
        }
    }

    /// Takes back a set, if this was its last owner.
    pub(super) fn release(&mut self, images: ImageSet, selected: bool) {
        let Some(images) = Arc::into_inner(images) else {
            return;
        };
        for image in images.iter().map(Mapping::image) {
            let Some(sets) = self.sets.get_mut(&image) else {
                continue;
            };
            let count = sets.of(selected);
            *count -= 1;
            if selected && *count == 0 {
                self.changed.insert(image);
            }
            if sets.selected + sets.others == 0 {
                self.sets.remove(&image);
                self.gone.insert(image);
            }
        }
    }

    /// Forgets all sets, before they are counted anew.
    pub(super) fn clear(&mut self) {
        let selected = self.sets.drain().filter(|(_, sets)| sets.selected > 0);
        self.changed.extend(selected.map(|(image, _)| image));
    }

    /// Images that no process at all mapped at some time since the last call.
    pub(super) fn take_gone(&mut self) -> BTreeSet<ImageId> {
        std::mem::take(&mut self.gone)
    }

    /// Whether any process maps the image.
    pub(super) fn is_in_use(&self, image: ImageId) -> bool {
        self.sets.contains_key(&image)
    }

    /// Images that any process maps, as counted.
    #[cfg(test)]
    pub(super) fn in_use(&self) -> impl Iterator<Item = ImageId> {
        self.sets.keys().copied()
    }

    /// Lets an image that is in use be reported once more.
    pub(super) fn report_again(&mut self, image: ImageId) {
        if self.reported.remove(&image) {
            self.changed.insert(image);
        }
    }

    /// Changes since the last call; `live` are the sets to find mappings in.
    pub(super) fn take_changes<'a>(
        &mut self,
        live: impl Iterator<Item = (Pid, &'a ImageSet)>,
    ) -> Vec<ImageChange> {
        let mut changes = Vec::new();
        let mut gained = BTreeSet::new();
        for image in std::mem::take(&mut self.changed) {
            if self.sets.get(&image).is_none_or(|sets| sets.selected == 0) {
                if self.reported.remove(&image) {
                    changes.push(ImageChange::Lost(image));
                }
            } else if self.reported.insert(image) {
                gained.insert(image);
            }
        }
        if !gained.is_empty() {
            changes.extend(first_users(&gained, live));
        }
        changes
    }
}

fn first_users<'a>(
    wanted: &BTreeSet<ImageId>,
    live: impl Iterator<Item = (Pid, &'a ImageSet)>,
) -> Vec<ImageChange> {
    let mut found: BTreeMap<ImageId, ImageChange> = BTreeMap::new();
    for (process, images) in live {
        for mapping in images
            .iter()
            .filter(|mapping| wanted.contains(&mapping.image()))
        {
            let image = mapping.image();
            found.entry(image).or_insert_with(|| ImageChange::Gained {
                image,
                process,
                mapping: mapping.clone(),
            });
        }
        if found.len() == wanted.len() {
            break;
        }
    }
    found.into_values().collect()
}
