//! Sends a request, follows its redirects, and reads the final response.

use std::error::Error;

use http_body_util::BodyExt;
use hyper::{Response, body::Incoming};

use super::{
    body_reader::{self, BodyReader},
    connect::Connector,
    decode::Coding,
    error::RequestError,
    headers,
    limits::{FAILURE_BODY_BYTES_MAX, HEAD_BUFFER_BYTES, HEAD_BYTES_MAX, REDIRECTS_MAX},
    outcome::FinalResponse,
    redirect,
    request::Request,
    url::Shown,
};

/// The progress of a request, also reported for a canceled one.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// True once any server may have received the request.
    pub(super) may_be_received: bool,
    /// Redirects that were followed.
    pub(super) redirects: u32,
}

/// The received bytes of a body, and the reason of their end.
struct Received {
    bytes: Vec<u8>,
    end: End,
}

enum End {
    /// The body is complete.
    Whole,
    /// The bound was reached; the rest is not read.
    Cut,
    /// The connection broke before the end.
    Lost(hyper::Error),
}

/// Sends a request of an organization and follows its redirects. Dropping the future at any point closes the
/// connection.
pub(super) async fn exchange(
    connector: &Connector,
    organization: Option<&str>,
    mut request: Request,
    progress: &mut Progress,
    reader: Option<&mut dyn BodyReader>,
) -> Result<FinalResponse, RequestError> {
    loop {
        let mut connection = connector.connect(&request.target, organization).await?;
        progress.may_be_received = true;
        let response = connection.send(&request).await.map_err(|error| broken(request.target.shown(), &error))?;
        let Some(next) = redirect::next(&request, response.status(), response.headers())? else {
            // The connection must live until the body is read.
            return read(&request, response, progress.redirects, reader).await;
        };
        if progress.redirects == REDIRECTS_MAX {
            return Err(RequestError::RedirectsTooMany(request.target.shown()));
        }
        progress.redirects += 1;
        request = next;
    }
}

/// Reads the body of the final response: completely for a success, and up to the kept size for a failure.
async fn read(
    request: &Request,
    response: Response<Incoming>,
    redirects: u32,
    reader: Option<&mut dyn BodyReader>,
) -> Result<FinalResponse, RequestError> {
    let (mut parts, incoming) = response.into_parts();
    let url = request.target.shown();
    let is_success = request.expect.holds(parts.status);
    if is_success && !headers::fits(&parts.headers) {
        return Err(RequestError::ResponseTooLarge { url, part: "the head of the answer", bytes_max: HEAD_BYTES_MAX });
    }
    if let Some(reader) = reader
        && is_success
        && body_reader::reads(reader, &parts.headers)
    {
        pass_on(incoming, reader).await.map_err(|error| broken(url.clone(), &error))?;
        let body = Vec::new();
        return Ok(FinalResponse { url, status: parts.status, headers: parts.headers, body, is_cut: false, redirects });
    }
    let bytes_max = if is_success { request.response_bytes_max } else { FAILURE_BODY_BYTES_MAX };
    let received = receive(incoming, bytes_max).await;
    let coding = Coding::of(&parts.headers);
    let (mut body, decoded) = coding.unwrap_or(Coding::Identity).decode(&received.bytes, bytes_max);
    let is_larger = matches!(received.end, End::Cut) || body.len() > bytes_max;
    if is_success {
        // A body beyond the bound cannot be decoded completely, so its size is checked first.
        match (received.end, decoded) {
            _ if is_larger => {
                return Err(RequestError::ResponseTooLarge { url, part: "the body of the answer", bytes_max });
            }
            (End::Lost(error), _) => return Err(broken(url, &error)),
            (_, Err(error)) => {
                return Err(RequestError::ResponseInvalid(url, format!("its body cannot be decoded: {error}")));
            }
            (End::Whole | End::Cut, Ok(())) => {}
        }
        if coding.is_some_and(|coding| coding != Coding::Identity) {
            headers::drop_coding(&mut parts.headers);
        }
        return Ok(FinalResponse { url, status: parts.status, headers: parts.headers, body, is_cut: false, redirects });
    }
    let is_cut = is_larger || !matches!(received.end, End::Whole) || decoded.is_err();
    body.truncate(bytes_max);
    Ok(FinalResponse { url, status: parts.status, headers: parts.headers, body, is_cut, redirects })
}

/// Gives a body to a reader, up to its end or as far as the reader needs it.
async fn pass_on(mut incoming: Incoming, reader: &mut dyn BodyReader) -> hyper::Result<()> {
    while let Some(frame) = incoming.frame().await {
        if let Ok(data) = frame?.into_data()
            && !reader.read(&data)
        {
            break;
        }
    }
    Ok(())
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

/// Classifies the error of a connection that brought no response.
pub(super) fn broken(url: Shown, error: &hyper::Error) -> RequestError {
    if error.is_parse_too_large() {
        return RequestError::ResponseTooLarge { url, part: "the head of the answer", bytes_max: HEAD_BUFFER_BYTES };
    }
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    let why = format!("{error}{cause}");
    match error.is_parse() {
        true => RequestError::ResponseInvalid(url, why),
        false => RequestError::ConnectionLost(url, why),
    }
}
