//! The handlers of the test service.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use tokio::time::sleep;
use tonic::codegen::BoxStream;
use tonic::{Code, Request, Response, Status, Streaming, async_trait};

use crate::first_message::FirstMessage;
use crate::proto::test_service_server::TestService;
use crate::proto::{
    EchoStatus, Empty, Payload, ResponseParameters, SimpleRequest, SimpleResponse,
    StreamingInputCallRequest, StreamingInputCallResponse, StreamingOutputCallRequest,
    StreamingOutputCallResponse,
};

/// The largest payload, in bytes, that a client may ask for.
const MAX_PAYLOAD: i32 = 63 << 20;

/// Counts the calls of a server that run: a call ends when its handler, and the stream of its
/// responses, are dropped. Clones are handles to the same counter.
#[derive(Clone, Debug, Default)]
pub struct Running(Arc<AtomicUsize>);

/// A call that runs.
struct Call(Running);

impl Running {
    /// Returns how many calls run.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn begin(&self) -> Call {
        self.0.fetch_add(1, Ordering::SeqCst);
        Call(self.clone())
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What answers the calls.
#[derive(Debug, Default)]
pub(crate) struct Handlers {
    running: Running,
}

impl Handlers {
    pub(crate) fn running(&self) -> &Running {
        &self.running
    }

    /// A stream of responses, which is a call that runs.
    fn responses(
        &self,
        responses: impl Stream<Item = Result<StreamingOutputCallResponse, Status>> + Send + 'static,
    ) -> Responses {
        let call = self.running.begin();
        Box::pin(responses.inspect(move |_| _ = &call))
    }
}

type Responses = BoxStream<StreamingOutputCallResponse>;

#[async_trait]
impl TestService for Handlers {
    type StreamingOutputCallStream = Responses;
    type FullDuplexCallStream = Responses;
    type HalfDuplexCallStream = Responses;

    async fn empty_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Ok(Response::new(Empty {}))
    }

    async fn unary_call(
        &self,
        request: Request<SimpleRequest>,
    ) -> Result<Response<SimpleResponse>, Status> {
        let first = request.extensions().get::<FirstMessage>();
        let was_compressed = first.and_then(FirstMessage::is_compressed) == Some(true);
        let request = request.into_inner();
        if let Some(expected) = request.expect_compressed
            && expected.value != was_compressed
        {
            return Err(Status::invalid_argument("expect_compressed does not hold"));
        }
        end_with(request.response_status)?;
        let mut response = Response::new(SimpleResponse {
            payload: Some(payload(request.response_size)?),
            ..SimpleResponse::default()
        });
        if !request.response_compressed.is_some_and(|it| it.value) {
            response.disable_compression();
        }
        Ok(response)
    }

    async fn streaming_output_call(
        &self,
        request: Request<StreamingOutputCallRequest>,
    ) -> Result<Response<Responses>, Status> {
        let responses = self.responses(answers(request.into_inner()));
        Ok(Response::new(responses))
    }

    async fn streaming_input_call(
        &self,
        request: Request<Streaming<StreamingInputCallRequest>>,
    ) -> Result<Response<StreamingInputCallResponse>, Status> {
        let _call = self.running.begin();
        let mut requests = request.into_inner();
        let mut size = 0usize;
        while let Some(request) = requests.message().await? {
            let payload = request.payload.unwrap_or_default();
            size = size.saturating_add(payload.body.len());
        }
        let size = i32::try_from(size);
        Ok(Response::new(StreamingInputCallResponse {
            aggregated_payload_size: size.map_err(|_| Status::out_of_range("too many bytes"))?,
        }))
    }

    async fn full_duplex_call(
        &self,
        request: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<Response<Responses>, Status> {
        let requests = request.into_inner();
        let responses = self.responses(requests.map_ok(answers).try_flatten());
        Ok(Response::new(responses))
    }

    async fn half_duplex_call(
        &self,
        request: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<Response<Responses>, Status> {
        let requests = request.into_inner();
        let all = async move {
            let requests: Vec<_> = requests.try_collect().await?;
            Ok::<_, Status>(stream::iter(requests).flat_map(answers))
        };
        let responses = self.responses(stream::once(all).try_flatten());
        Ok(Response::new(responses))
    }

    async fn unimplemented_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Err(Status::unimplemented("no server implements this method"))
    }
}

/// The responses that a request asks for.
fn answers(
    request: StreamingOutputCallRequest,
) -> impl Stream<Item = Result<StreamingOutputCallResponse, Status>> + Send {
    let status = stream::iter(end_with(request.response_status).err().map(Err));
    status.chain(stream::iter(request.response_parameters).then(answer))
}

async fn answer(parameters: ResponseParameters) -> Result<StreamingOutputCallResponse, Status> {
    let interval = u64::try_from(parameters.interval_us).unwrap_or_default();
    if interval > 0 {
        sleep(Duration::from_micros(interval)).await;
    }
    Ok(StreamingOutputCallResponse {
        payload: Some(payload(parameters.size)?),
    })
}

/// Fails with the status that a client asks for.
fn end_with(status: Option<EchoStatus>) -> Result<(), Status> {
    match status {
        Some(EchoStatus { code, message }) if code != 0 => {
            Err(Status::new(Code::from(code), message))
        }
        _ => Ok(()),
    }
}

fn payload(size: i32) -> Result<Payload, Status> {
    let size = Some(size).filter(|size| *size <= MAX_PAYLOAD);
    let size = size.and_then(|size| usize::try_from(size).ok());
    let size = size.ok_or_else(|| Status::invalid_argument("no such size"))?;
    Ok(Payload {
        body: vec![0; size],
        ..Payload::default()
    })
}
