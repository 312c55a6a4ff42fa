//! A request on its way, over all redirects, to the answer that counts.

use std::error::Error;

use http_body_util::BodyExt;
use hyper::{Response, body::Incoming};

use super::{
    connect::Connector,
    decode::Coding,
    headers,
    limits::{FAILURE_BODY_BYTES_MAX, HEAD_BUFFER_BYTES, HEAD_BYTES_MAX, REDIRECTS_MAX},
    redirect,
    refusal::Refusal,
    report::Answer,
    request::Request,
    target::Shown,
};

/// How far a request has come; known also of one that is stopped.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Whether anybody may have received it.
    pub(super) may_be_received: bool,
    /// Redirects that were followed.
    pub(super) redirects: u32,
}

/// Bytes that were received, and what ended them.
struct Received {
    bytes: Vec<u8>,
    end: End,
}

enum End {
    /// That is all.
    Whole,
    /// There is more, which is not read.
    Cut,
    /// There should be more.
    Lost(hyper::Error),
}

/// Sends a request of an organization and follows where it leads. May be dropped at any point; the connection ends then.
pub(super) async fn exchange(
    connector: &Connector,
    organization: Option<&str>,
    mut request: Request,
    progress: &mut Progress,
) -> Result<Answer, Refusal> {
    loop {
        let mut connection = connector.connect(&request.target, organization).await?;
        progress.may_be_received = true;
        let response = connection.send(&request).await.map_err(|error| broken(request.target.shown(), &error))?;
        let Some(next) = redirect::next(&request, response.status(), response.headers())? else {
            // The connection lives until the body is read.
            return read(&request, response, progress.redirects).await;
        };
        if progress.redirects == REDIRECTS_MAX {
            return Err(Refusal::RedirectsTooMany(request.target.shown()));
        }
        progress.redirects += 1;
        request = next;
    }
}

/// Reads the body of the last answer: whole if it counts as success, and as much as is kept of it if not.
async fn read(request: &Request, response: Response<Incoming>, redirects: u32) -> Result<Answer, Refusal> {
    let (mut parts, incoming) = response.into_parts();
    let url = request.target.shown();
    let is_success = request.expect.holds(parts.status);
    if is_success && !headers::fits(&parts.headers) {
        return Err(Refusal::ResponseTooLarge { url, part: "the head of the answer", bytes_max: HEAD_BYTES_MAX });
    }
    let bytes_max = if is_success { request.response_bytes_max } else { FAILURE_BODY_BYTES_MAX };
    let received = receive(incoming, bytes_max).await;
    let coding = Coding::of(&parts.headers);
    let (mut body, decoded) = coding.unwrap_or(Coding::Identity).decode(&received.bytes, bytes_max);
    let is_larger = matches!(received.end, End::Cut) || body.len() > bytes_max;
    if is_success {
        // What is too large cannot be decoded to its end either, so that size is asked first.
        match (received.end, decoded) {
            _ if is_larger => {
                return Err(Refusal::ResponseTooLarge { url, part: "the body of the answer", bytes_max });
            }
            (End::Lost(error), _) => return Err(broken(url, &error)),
            (_, Err(error)) => {
                return Err(Refusal::ResponseInvalid(url, format!("its body cannot be decoded: {error}")));
            }
            (End::Whole | End::Cut, Ok(())) => {}
        }
        if coding.is_some_and(|coding| coding != Coding::Identity) {
            headers::drop_coding(&mut parts.headers);
        }
        return Ok(Answer { url, status: parts.status, headers: parts.headers, body, is_cut: false, redirects });
    }
    let is_cut = is_larger || !matches!(received.end, End::Whole) || decoded.is_err();
    body.truncate(bytes_max);
    Ok(Answer { url, status: parts.status, headers: parts.headers, body, is_cut, redirects })
}

async fn receive(mut incoming: Incoming, bytes_max: usize) -> Received {
    let mut bytes = Vec::new();
    while let Some(frame) = incoming.frame().await {
        match frame {
            Ok(frame) => {
                let Ok(data) = frame.into_data() else { continue };
                let room = bytes_max - bytes.len();
                bytes.extend_from_slice(&data[..data.len().min(room)]);
                if data.len() > room {
                    return Received { bytes, end: End::Cut };
                }
            }
            Err(error) => return Received { bytes, end: End::Lost(error) },
        }
    }
    Received { bytes, end: End::Whole }
}

/// What it means that a connection did not bring an answer.
fn broken(url: Shown, error: &hyper::Error) -> Refusal {
    if error.is_parse_too_large() {
        return Refusal::ResponseTooLarge { url, part: "the head of the answer", bytes_max: HEAD_BUFFER_BYTES };
    }
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let why = format!("{error}{cause}");
    match error.is_parse() {
        true => Refusal::ResponseInvalid(url, why),
        false => Refusal::ConnectionLost(url, why),
    }
}
