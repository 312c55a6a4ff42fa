//! A collector that stores its requests, and decodes them with the types of the OpenTelemetry library.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
};

use mainspring_kernel::hash::hex;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, common::v1::any_value::Value as Any, trace::v1::Span,
};
use prost::Message;

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
}

/// Responds to every request with a status, and stores it.
pub(crate) struct Collector {
    pub(crate) address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let kept = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = kept.clone();
                std::thread::spawn(move || serve(stream, &kept));
            }
        });
        Self { address, asked }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// All received spans, in order.
    pub(crate) fn spans(&self) -> Vec<Seen> {
        let read = |asked: &Asked| {
            assert_eq!(asked.line, "POST /v1/traces HTTP/1.1");
            assert_eq!(asked.headers["content-type"], "application/x-protobuf");
            ExportTraceServiceRequest::decode(&asked.body[..]).unwrap().resource_spans
        };
        let resources = self.requests().iter().flat_map(read).collect::<Vec<_>>();
        for resource in &resources {
            let attributes = &resource.resource.as_ref().unwrap().attributes;
            assert!(attributes.iter().any(|pair| pair.key == "service.name"), "{attributes:?}");
        }
        let scopes = resources.into_iter().flat_map(|resource| resource.scope_spans);
        scopes.flat_map(|scope| scope.spans).map(Seen::of).collect()
    }
}

fn serve(stream: TcpStream, kept: &Mutex<Vec<Asked>>) {
    let (mut out, mut lines) = (stream.try_clone().unwrap(), BufReader::new(stream));
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).unwrap_or(0) == 0 {
            return;
        }
        let mut headers = BTreeMap::new();
        loop {
            let mut header = String::new();
            lines.read_line(&mut header).unwrap();
            let Some((name, value)) = header.trim_end().split_once(": ") else { break };
            headers.insert(name.to_ascii_lowercase(), value.to_owned());
        }
        let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        lines.read_exact(&mut body).unwrap();
        kept.lock().unwrap().push(Asked { line: line.trim_end().into(), headers, body });
        let _ = out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
}

/// A span as text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) is_error: bool,
    pub(crate) kind: i32,
    pub(crate) began: u64,
    pub(crate) ended: u64,
}

impl Seen {
    fn of(span: Span) -> Self {
        let words = |value: Any| match value {
            Any::StringValue(text) => text,
            Any::IntValue(number) => number.to_string(),
            other => panic!("{other:?}"),
        };
        let attributes = span.attributes.into_iter().map(|pair| (pair.key, words(pair.value.unwrap().value.unwrap())));
        let (trace, id) = (hex(&span.trace_id), hex(&span.span_id));
        assert_eq!((trace.len(), id.len()), (32, 16));
        Self {
            trace,
            id,
            parent: hex(&span.parent_span_id),
            name: span.name,
            attributes: attributes.collect(),
            is_error: span.status.is_some_and(|status| status.code == 2),
            kind: span.kind,
            began: span.start_time_unix_nano,
            ended: span.end_time_unix_nano,
        }
    }

    pub(crate) fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }

    /// `step attempt outcome`, or `status` for an execution.
    pub(crate) fn words(&self) -> String {
        match self.attribute("mainspring.step") {
            "" => self.attribute("mainspring.status").into(),
            step => format!("{step} {} {}", self.attribute("mainspring.attempt"), self.attribute("mainspring.outcome")),
        }
    }
}
