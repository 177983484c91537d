//! Cells of tables, and the meanings that their colours have.

/// What an emphasis means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    /// None.
    #[default]
    Plain,
    /// A side remark.
    Soft,
    /// Good news.
    Good,
    /// What deserves a look.
    Look,
    /// What is wrong.
    Bad,
    /// Neither good nor bad, but to be seen.
    Strong,
}

/// A colour that stands for one thing in all charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shade {
    /// TLS handshakes.
    Handshake,
    /// TLS records.
    Encryption,
    /// Socket calls.
    SocketIo,
    /// Opening of connections.
    TcpOpen,
    /// Closing of connections.
    TcpClose,
    /// The service's own work.
    Application,
    /// What is not known.
    Rest,
}

/// A drawing in a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Drawn {
    /// A bar for a share of 1, with its limits if they are known.
    Bar(f64, Shade, Option<(f64, f64)>),
    /// The colour of a part of a whole, before its name.
    Swatch(Shade),
    /// A figure between its limits, in a span; zero is marked in a span that holds it inside.
    Interval {
        /// Lower limit, figure and upper limit.
        ends: [f64; 3],
        /// From where to where is drawn.
        span: (f64, f64),
    },
}

/// A cell of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    /// What it says.
    pub text: String,
    /// What that means.
    pub(crate) tone: Tone,
    /// A drawing of it, for writers that draw.
    pub(crate) drawn: Option<Drawn>,
    /// The anchor to which it leads.
    pub(crate) link: Option<String>,
    /// What must be said beside it.
    pub(crate) remark: String,
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }
}

impl Cell {
    /// A bar for a share of 1.
    pub(crate) fn bar(share: f64, shade: Shade) -> Self {
        Self::default().drawn(Drawn::Bar(share, shade, None))
    }

    /// The same with a drawing.
    pub(crate) const fn drawn(mut self, drawn: Drawn) -> Self {
        self.drawn = Some(drawn);
        self
    }

    /// The same with a meaning.
    pub(crate) const fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}
