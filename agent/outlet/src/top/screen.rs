//! The state of the screen: what the user has chosen with keys.

use super::key::Key;
use super::order::{Column, Order};

/// Longest filter, in characters.
const LONGEST_FILTER: usize = 40;

/// What a page is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// All services.
    #[default]
    Services,
    /// The service of that name.
    Service(String),
}

/// A part of the page of a service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tab {
    #[default]
    Now,
    Handshakes,
    Connections,
    Findings,
}

impl Tab {
    /// All, from left to right.
    pub const ALL: [Self; 4] = [
        Self::Now,
        Self::Handshakes,
        Self::Connections,
        Self::Findings,
    ];

    /// The next one, or the one before; round about.
    fn turned(self, back: bool) -> Self {
        let number = Self::ALL.len();
        let at = Self::ALL.iter().position(|one| *one == self).unwrap_or(0);
        let to = if back { at + number - 1 } else { at + 1 } % number;
        Self::ALL.get(to).copied().unwrap_or_default()
    }
}

/// What is to be done after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Draw.
    Draw,
    /// End.
    Quit,
}

/// What was drawn last: keys mean something by it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawn {
    /// Services of the list, from top to bottom; those beyond the screen too.
    pub names: Vec<String>,
    /// Lines of the page that is scrolled.
    pub(crate) lines: usize,
    /// Rows of the screen that services, or these lines, have.
    pub(crate) rows: usize,
}

/// What the user has chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Screen {
    /// The page.
    pub page: Page,
    /// Its part, if it is a service's.
    pub(crate) tab: Tab,
    /// How the list is sorted.
    pub order: Order,
    /// What the names in the list contain.
    pub(crate) filter: String,
    /// Whether keys go into the filter.
    pub(crate) typing: bool,
    /// The service that Enter opens; the first one where it is not in the list.
    pub(crate) selected: Option<String>,
    /// Lines of a service's page that are above the screen.
    pub(crate) scroll: usize,
    /// Whether figures stand still.
    pub paused: bool,
    /// Whether help lies over the page.
    pub(crate) help: bool,
}

impl Screen {
    /// Where the selected service is in the list.
    pub(crate) fn position(&self, names: &[String]) -> usize {
        let selected = self.selected.as_ref();
        let at = selected.and_then(|name| names.iter().position(|one| one == name));
        at.unwrap_or(0)
    }

    /// What a key does.
    pub fn update(&mut self, key: Key, drawn: &Drawn) -> Action {
        match key {
            Key::Interrupt => return Action::Quit,
            _ if self.typing => self.type_filter(key),
            _ if self.help => self.help = false,
            Key::Char('q') => return Action::Quit,
            Key::Char('?' | 'h') => self.help = true,
            Key::Char('p' | ' ') => self.paused = !self.paused,
            _ if self.page == Page::Services => self.in_list(key, drawn),
            _ => self.in_service(key, drawn),
        }
        Action::Draw
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Enter => self.typing = false,
            Key::Escape => {
                self.typing = false;
                self.filter.clear();
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Char(char) if self.filter.chars().count() < LONGEST_FILTER => {
                self.filter.push(char);
            }
            _ => {}
        }
    }

    fn in_list(&mut self, key: Key, drawn: &Drawn) {
        let names = &drawn.names;
        let at = self.position(names);
        match key {
            Key::Left | Key::Char('<') => self.sort_by(self.order.by.moved(-1)),
            Key::Right | Key::Char('>') => self.sort_by(self.order.by.moved(1)),
            Key::Char('r') => self.order.reversed = !self.order.reversed,
            Key::Char('/') => self.typing = true,
            Key::Escape => self.filter.clear(),
            Key::Enter => {
                if let Some(name) = names.get(at) {
                    self.selected = Some(name.clone());
                    self.page = Page::Service(name.clone());
                    self.scroll = 0;
                }
            }
            _ => {
                let last = names.len().saturating_sub(1);
                if let Some(to) = moved(key, at, last, drawn.rows) {
                    self.selected = names.get(to).cloned();
                }
            }
        }
    }

    fn sort_by(&mut self, column: Column) {
        self.order.by = column;
    }

    fn in_service(&mut self, key: Key, drawn: &Drawn) {
        match key {
            Key::Escape | Key::Backspace => self.page = Page::Services,
            Key::Tab | Key::Right => self.turn_to(self.tab.turned(false)),
            Key::BackTab | Key::Left => self.turn_to(self.tab.turned(true)),
            Key::Char(digit @ '1'..='4') => {
                let at = digit.to_digit(10).map_or(0, |digit| digit as usize - 1);
                self.turn_to(Tab::ALL.get(at).copied().unwrap_or_default());
            }
            _ => {
                let last = drawn.lines.saturating_sub(drawn.rows);
                if let Some(to) = moved(key, self.scroll.min(last), last, drawn.rows) {
                    self.scroll = to;
                }
            }
        }
    }

    fn turn_to(&mut self, tab: Tab) {
        self.tab = tab;
        self.scroll = 0;
    }
}

/// Where a key goes from `at`, between 0 and `last`, with pages of so many `rows`.
fn moved(key: Key, at: usize, last: usize, rows: usize) -> Option<usize> {
    let to = match key {
        Key::Up | Key::Char('k') => at.saturating_sub(1),
        Key::Down | Key::Char('j') => at + 1,
        Key::PageUp => at.saturating_sub(rows),
        Key::PageDown => at + rows,
        Key::Home | Key::Char('g') => 0,
        Key::End | Key::Char('G') => last,
        _ => return None,
    };
    Some(to.min(last))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    fn drawn() -> Drawn {
        Drawn {
            names: ["a", "b", "c", "d"].map(String::from).into(),
            lines: 50,
            rows: 20,
        }
    }

    fn after(keys: &[Key]) -> Screen {
        let mut screen = Screen::default();
        for key in keys {
            assert_eq!(screen.update(*key, &drawn()), Action::Draw, "{key:?}");
        }
        screen
    }

    #[test]
    fn q_and_ctrl_c_quit_from_everywhere() {
        for keys in [
            &[][..],
            &[Key::Enter],
            &[Key::Enter, Key::Tab],
            &[Key::Char('p')],
        ] {
            assert_eq!(after(keys).update(Key::Char('q'), &drawn()), Action::Quit);
        }
        for keys in [&[Key::Char('/')][..], &[Key::Char('?')], &[Key::Enter]] {
            assert_eq!(after(keys).update(Key::Interrupt, &drawn()), Action::Quit);
        }
    }

    #[test]
    fn a_filter_takes_letters_that_are_commands_elsewhere() {
        let mut screen = after(&[Key::Char('/'), Key::Char('q'), Key::Char('p')]);
        assert!((screen.typing, screen.paused) == (true, false));
        assert_eq!(screen.filter, "qp");
        screen.update(Key::Backspace, &drawn());
        screen.update(Key::Enter, &drawn());
        assert_eq!((screen.typing, screen.filter.as_str()), (false, "q"));
        screen.update(Key::Escape, &drawn());
        assert_eq!(screen.filter, "");
    }

    #[test]
    fn the_selection_stays_with_its_service() {
        let mut screen = after(&[Key::Down, Key::Down]);
        assert_eq!(screen.selected.as_deref(), Some("c"));
        let mut resorted = drawn();
        resorted.names.rotate_left(2);
        assert_eq!(screen.position(&resorted.names), 0);
        screen.update(Key::Up, &resorted);
        assert_eq!(screen.selected.as_deref(), Some("c"));
        screen.update(Key::End, &resorted);
        assert_eq!(screen.selected.as_deref(), Some("b"));
        // One that is filtered away is not opened.
        let other = Drawn {
            names: vec!["z".into()],
            ..drawn()
        };
        screen.update(Key::Enter, &other);
        assert_eq!(screen.page, Page::Service("z".into()));
    }

    #[test]
    fn an_empty_list_opens_nothing() {
        let mut screen = Screen::default();
        for key in [Key::Enter, Key::Down, Key::End, Key::PageDown] {
            screen.update(key, &Drawn::default());
        }
        assert_eq!(screen, Screen::default());
    }

    #[test]
    fn columns_end_at_the_ends() {
        assert_eq!(after(&[Key::Left; 20]).order.by, Column::Service);
        assert_eq!(after(&[Key::Right; 20]).order.by, Column::Findings);
        let order = after(&[Key::Right, Key::Char('r')]).order;
        assert_eq!((order.by, order.reversed), (Column::Tls, true));
    }

    #[test]
    fn a_service_is_left_as_it_was_entered() {
        let screen = after(&[Key::Down, Key::Enter, Key::Tab, Key::End]);
        assert_eq!(screen.page, Page::Service("b".into()));
        assert_eq!((screen.tab, screen.scroll), (Tab::Handshakes, 30));
        let screen = after(&[Key::Down, Key::Enter, Key::Char('4'), Key::Escape]);
        assert_eq!((screen.page, screen.tab), (Page::Services, Tab::Findings));
        assert_eq!(screen.selected.as_deref(), Some("b"));
        assert_eq!(after(&[Key::Enter, Key::BackTab]).tab, Tab::Findings);
    }

    #[test]
    fn scrolling_ends_with_the_last_line() {
        let mut screen = after(&[Key::Enter, Key::PageDown, Key::PageDown, Key::PageDown]);
        assert_eq!(screen.scroll, 30);
        screen.update(Key::Up, &drawn());
        assert_eq!(screen.scroll, 29);
        // The page got shorter meanwhile.
        let shorter = Drawn {
            lines: 22,
            ..drawn()
        };
        screen.update(Key::Up, &shorter);
        assert_eq!(screen.scroll, 1);
    }

    #[test]
    fn help_closes_with_any_key_that_does_nothing_else() {
        let screen = after(&[Key::Char('?'), Key::Char('p')]);
        assert!((screen.help, screen.paused) == (false, false));
        assert!(after(&[Key::Char(' ')]).paused);
        assert!(!after(&[Key::Char(' '), Key::Char('p')]).paused);
    }
}
