//! The order of the list, and which part of it is shown.

use super::*;

#[test]
fn the_list_is_sorted_and_filtered() {
    let host = host();
    let state = host.view(&Screen::default()).state;
    let names = |order: Order, filter: &str| -> Vec<String> {
        let listed = order.listed(&state.services, filter);
        listed.iter().map(|one| one.service_name.clone()).collect()
    };
    let by = |by, reversed| Order { by, reversed };
    let cpu = names(by(Column::Cpu, false), "");
    assert_eq!(cpu[..2], [NGINX, "postgresql.service"]);
    let mut rising = names(by(Column::Cpu, true), "");
    rising.reverse();
    assert_eq!(rising, cpu);
    let named = names(by(Column::Service, false), "");
    assert!(named.is_sorted());
    // Those without handshakes come last, whichever way round.
    for reversed in [false, true] {
        let cost = names(by(Column::Cost, reversed), "");
        assert_eq!(cost.last().unwrap(), "postgresql.service");
    }
    assert_eq!(names(by(Column::Findings, false), "")[0], NGINX);
    assert_eq!(names(Order::default(), "NGI"), [NGINX]);
    assert!(names(Order::default(), "nobody").is_empty());
}

#[test]
fn a_list_longer_than_the_screen_follows_the_selection() {
    let mut host = Watched::new();
    for n in 0..40 {
        host.works(
            &format!("service-{n:02}"),
            Activity::Application,
            Mode::User,
            40 - n,
        );
    }
    host.pass();
    let mut screen = Screen::default();
    let mut last = Drawn::default();
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    for key in [Key::Home, Key::PageDown, Key::Down] {
        screen.update(key, &last);
        let view = host.view(&screen);
        let theme = Theme { colour: false };
        terminal
            .draw(|frame| last = draw(frame, &view, &screen, theme))
            .unwrap();
    }
    assert_eq!((last.names.len(), last.rows), (40, 19));
    assert_eq!(screen.selected.as_deref(), Some("service-20"));
    let text = text(&terminal);
    assert!(
        text.contains("service-20") && !text.contains("service-01"),
        "{text}"
    );
}
