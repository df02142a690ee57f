//! The test service with handlers of a test's own.

use std::sync::Arc;

use futures_util::Stream;
use tonic::codegen::{BoxFuture, BoxStream};
use tonic::{Request, Response, Status, Streaming, async_trait};
use weir_grpc_testing::proto::test_service_server::TestService;
use weir_grpc_testing::proto::{
    Empty, SimpleRequest, SimpleResponse, StreamingInputCallRequest, StreamingInputCallResponse,
    StreamingOutputCallRequest, StreamingOutputCallResponse,
};

pub(crate) type Responses = BoxStream<StreamingOutputCallResponse>;
type Handler<Q, R> = Arc<dyn Fn(Request<Q>) -> BoxFuture<Response<R>, Status> + Send + Sync>;

/// Handlers; what has none is not implemented.
#[derive(Clone, Default)]
pub(crate) struct Scripted {
    unary: Option<Handler<SimpleRequest, SimpleResponse>>,
    input: Option<Handler<Streaming<StreamingInputCallRequest>, StreamingInputCallResponse>>,
    output: Option<Handler<StreamingOutputCallRequest, Responses>>,
    duplex: Option<Handler<Streaming<StreamingOutputCallRequest>, Responses>>,
}

fn handler<Q, R, F>(handle: impl Fn(Request<Q>) -> F + Send + Sync + 'static) -> Handler<Q, R>
where
    F: Future<Output = Result<R, Status>> + Send + 'static,
{
    Arc::new(move |request| {
        let answer = handle(request);
        Box::pin(async move { Ok(Response::new(answer.await?)) })
    })
}

async fn run<Q, R>(
    handler: Option<&Handler<Q, R>>,
    request: Request<Q>,
) -> Result<Response<R>, Status> {
    match handler {
        Some(handler) => handler(request).await,
        None => Err(Status::unimplemented("the test has no handler for it")),
    }
}

impl Scripted {
    pub(crate) fn unary<F>(
        handle: impl Fn(Request<SimpleRequest>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<SimpleResponse, Status>> + Send + 'static,
    {
        Self::default().and_unary(handle)
    }

    pub(crate) fn and_unary<F>(
        mut self,
        handle: impl Fn(Request<SimpleRequest>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<SimpleResponse, Status>> + Send + 'static,
    {
        self.unary = Some(handler(handle));
        self
    }

    pub(crate) fn and_input<F>(
        mut self,
        handle: impl Fn(Request<Streaming<StreamingInputCallRequest>>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<StreamingInputCallResponse, Status>> + Send + 'static,
    {
        self.input = Some(handler(handle));
        self
    }

    pub(crate) fn and_output<S>(
        mut self,
        handle: impl Fn(Request<StreamingOutputCallRequest>) -> S + Send + Sync + 'static,
    ) -> Self
    where
        S: Stream<Item = Result<StreamingOutputCallResponse, Status>> + Send + 'static,
    {
        self.output = Some(handler(move |request| {
            let responses: Responses = Box::pin(handle(request));
            async { Ok(responses) }
        }));
        self
    }

    pub(crate) fn and_duplex<S>(
        mut self,
        handle: impl Fn(Streaming<StreamingOutputCallRequest>) -> S + Send + Sync + 'static,
    ) -> Self
    where
        S: Stream<Item = Result<StreamingOutputCallResponse, Status>> + Send + 'static,
    {
        self.duplex = Some(handler(
            move |request: Request<Streaming<StreamingOutputCallRequest>>| {
                let responses: Responses = Box::pin(handle(request.into_inner()));
                async { Ok(responses) }
            },
        ));
        self
    }
}

#[async_trait]
impl TestService for Scripted {
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
        run(self.unary.as_ref(), request).await
    }

    async fn streaming_output_call(
        &self,
        request: Request<StreamingOutputCallRequest>,
    ) -> Result<Response<Responses>, Status> {
        run(self.output.as_ref(), request).await
    }

    async fn streaming_input_call(
        &self,
        request: Request<Streaming<StreamingInputCallRequest>>,
    ) -> Result<Response<StreamingInputCallResponse>, Status> {
        run(self.input.as_ref(), request).await
    }

    async fn full_duplex_call(
        &self,
        request: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<Response<Responses>, Status> {
        run(self.duplex.as_ref(), request).await
    }

    async fn half_duplex_call(
        &self,
        _: Request<Streaming<StreamingOutputCallRequest>>,
    ) -> Result<Response<Responses>, Status> {
        Err(Status::unimplemented("no test needs it"))
    }

    async fn unimplemented_call(&self, _: Request<Empty>) -> Result<Response<Empty>, Status> {
        Err(Status::unimplemented("no server implements it"))
    }
}
