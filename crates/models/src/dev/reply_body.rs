//! The body of a response of the scripted model, in pieces.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// A body that is sent piece by piece.
pub(super) struct ReplyBody {
    pieces: VecDeque<Bytes>,
    /// The pause before each piece but the first.
    pause: Duration,
    paused: Option<Pin<Box<Sleep>>>,
    end: End,
    /// True if the length is sent before the body.
    has_length: bool,
}

/// The end of a body after its last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The body ends.
    Whole,
    /// The connection breaks.
    Cut,
    /// Nothing more is sent, and the connection stays open.
    Hang,
    /// The connection breaks at the next poll, since the pieces before were sent.
    Flushed,
}

impl ReplyBody {
    /// A body that is sent at once.
    pub(super) fn whole(bytes: Bytes) -> Self {
        let (pieces, has_length) = (VecDeque::from([bytes]), true);
        Self { pieces, pause: Duration::ZERO, paused: None, end: End::Whole, has_length }
    }

    /// A body of pieces with an end.
    pub(super) fn of_pieces(bytes: &Bytes, piece_bytes: usize, pause: Duration, end: End) -> Self {
        let starts = (0..bytes.len()).step_by(piece_bytes.max(1));
        let pieces = starts.map(|at| bytes.slice(at..bytes.len().min(at + piece_bytes.max(1)))).collect();
        Self { pieces, pause, paused: None, end, has_length: false }
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(paused) = &mut self.paused {
            ready!(paused.as_mut().poll(context));
            self.paused = None;
        }
        if let Some(piece) = self.pieces.pop_front() {
            if !self.pause.is_zero() && !self.pieces.is_empty() {
                self.paused = Some(Box::pin(sleep(self.pause)));
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        match self.end {
            End::Whole => Poll::Ready(None),
            End::Hang => Poll::Pending,
            End::Flushed => Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into()))),
            End::Cut => {
                self.end = End::Flushed;
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.end == End::Whole
    }

    fn size_hint(&self) -> SizeHint {
        let bytes: usize = self.pieces.iter().map(Bytes::len).sum();
        if self.has_length { SizeHint::with_exact(bytes as u64) } else { SizeHint::default() }
    }
}
