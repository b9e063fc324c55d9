package faultproxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

const (
	// The delay of a time-out, and of a belated write, which is executed after the client may have repeated it.
	shortestDelay, longestDelay = 500 * time.Millisecond, 4 * time.Second
	// The age at which a watch is broken or stalled.
	shortestWatch, longestWatch = time.Second, 20 * time.Second
	// belatedTimeout bounds the execution of a belated write, whose client has gone.
	belatedTimeout = 10 * time.Second
)

// Connection forwards requests to one server. It has faults between [Connection.Storm] and [Connection.Calm].
type Connection struct {
	// Exempt reports whether a request gets no fault; nil: no request is exempt. It is set before the first request.
	Exempt func(*http.Request) bool

	mu sync.Mutex
	// calm is closed when a storm ends; nil without a storm.
	calm  chan struct{}
	seed  uint64
	rates Rates
	// nth is the number of requests of each kind since the storm began.
	nth      map[string]int
	count    map[Fault]int
	belated  sync.WaitGroup
	clock    clock
	requests map[Request]int
	writes   int
	// longestWatch is the age at which each watch has had its fault.
	longestWatch time.Duration
}

// NewConnection returns a connection without faults.
func NewConnection() *Connection {
	return &Connection{
		nth: map[string]int{}, count: map[Fault]int{}, requests: map[Request]int{},
		clock: clock{stepped: make(chan struct{}), listed: map[string]bool{}}, longestWatch: longestWatch,
	}
}

// Storm starts faults, until [Connection.Calm] or the next storm.
func (c *Connection) Storm(seed uint64, rates Rates) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calm != nil {
		close(c.calm)
	}
	c.seed, c.rates, c.calm = seed, rates, make(chan struct{})
	clear(c.nth)
}

// Calm ends the faults, and waits for belated writes. Stalled watches continue.
func (c *Connection) Calm() {
	c.mu.Lock()
	if c.calm != nil {
		close(c.calm)
		c.calm = nil
	}
	c.mu.Unlock()
	c.belated.Wait()
}

// Counts returns how often each fault happened.
func (c *Connection) Counts() map[Fault]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.count)
}

func (c *Connection) countFault(fault Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count[fault]++
}

// outcome is the fault of a request.
type outcome struct {
	Fault
	// after is the delay of the fault, lasts its duration.
	after, lasts time.Duration
	// calm ends the fault early.
	calm <-chan struct{}
}

// outcomeOf selects the fault of a request. Requests of the same method and path are of one kind, with any
// query: a watch continues at another version.
func (c *Connection) outcomeOf(method, path string, v verb) outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calm == nil {
		return outcome{}
	}
	kind := method + " " + path
	random := randomOf(c.seed, method, path, c.nth[kind])
	c.nth[kind]++
	o := outcome{Fault: c.rates.pick(v, random), after: between(random, shortestDelay, longestDelay), calm: c.calm}
	if v == watches {
		o.after, o.lasts = between(random, shortestWatch, c.longestWatch), between(random, shortestDelay, 2*longestDelay)
	}
	switch o.Fault {
	case None:
	case WatchBroken, WatchStalled: // counted when it happens, because the watch may end before
	case Belated:
		c.belated.Add(1) // before Calm waits; passLate ends it
		fallthrough
	default:
		c.count[o.Fault]++
	}
	return o
}

// Pass forwards a request, with the fault that the seed selects.
func (c *Connection) Pass(rw http.ResponseWriter, r *http.Request, transport http.RoundTripper, target *url.URL) {
	v := verbOf(r.Method, r.URL.Query())
	c.countRequest(r.Method, r.URL.Path, v)
	var o outcome
	if c.Exempt == nil || !c.Exempt(r) {
		o = c.outcomeOf(r.Method, r.URL.Path, v)
	}
	transport, stepped, old := c.clocked(r, transport)
	if old {
		o = outcome{Fault: WatchExpired}
	}
	if err := o.refusal(); err != nil {
		o.wait(r.Context())
		refuse(rw, r, err)
		return
	}
	if o.Fault != RequestLost {
		c.countWrite(v)
	}
	switch o.Fault {
	case RequestLost:
		panic(http.ErrAbortHandler) // the connection is cut
	case Belated:
		c.passLate(r, o, transport, target)
		panic(http.ErrAbortHandler)
	case Repeated:
		passTwice(rw, r, transport, target)
		return
	}
	ctx, end := context.WithCancel(r.Context())
	defer end()
	if v == watches {
		go endWith(ctx, stepped, end)
	}
	proxy := Forward(transport, target)
	proxy.ModifyResponse = func(response *http.Response) error {
		switch o.Fault {
		case AnswerLost, AnswerWrong:
			return errUnanswered
		case WatchBroken, WatchStalled:
			response.Body = c.disturb(ctx, end, response.Body, o)
		}
		return nil
	}
	proxy.ErrorHandler = func(rw http.ResponseWriter, r *http.Request, err error) {
		if o.Fault == AnswerWrong && errors.Is(err, errUnanswered) {
			refuse(rw, r, apierrors.NewInternalError(errors.New("etcdserver: request timed out")))
			return
		}
		panic(http.ErrAbortHandler)
	}
	proxy.ServeHTTP(rw, r.WithContext(ctx))
}

// endWith ends a request when a channel is closed.
func endWith(ctx context.Context, closed <-chan struct{}, end context.CancelFunc) {
	select {
	case <-closed:
		end()
	case <-ctx.Done():
	}
}

// errUnanswered replaces the answer to a write that was executed.
var errUnanswered = errors.New("the answer does not arrive")

// passTwice has the server execute a write twice.
func passTwice(rw http.ResponseWriter, r *http.Request, transport http.RoundTripper, target *url.URL) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	Forward(transport, target).ServeHTTP(httptest.NewRecorder(), copyOf(r.Context(), r, body))
	Forward(transport, target).ServeHTTP(rw, copyOf(r.Context(), r, body))
}

// passLate has the server execute a write after its connection was cut.
func (c *Connection) passLate(r *http.Request, o outcome, transport http.RoundTripper, target *url.URL) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		c.belated.Done()
		return
	}
	go func() {
		defer c.belated.Done()
		ctx, cancel := context.WithTimeout(context.Background(), belatedTimeout)
		defer cancel()
		o.wait(ctx)
		proxy := Forward(transport, target)
		proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // then the write is lost
		proxy.ServeHTTP(httptest.NewRecorder(), copyOf(ctx, r, body))
	}()
}

func copyOf(ctx context.Context, r *http.Request, body []byte) *http.Request {
	copied := r.Clone(ctx)
	copied.Body = io.NopCloser(bytes.NewReader(body))
	return copied
}

// wait waits until the fault happens, or the storm ends. Most faults happen at once.
func (o outcome) wait(ctx context.Context) {
	if o.Fault == TimedOut || o.Fault == Belated {
		pause(ctx, o.after, o.calm)
	}
}

// pause waits until the first of its arguments ends.
func pause(ctx context.Context, d time.Duration, calm <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-calm:
	case <-ctx.Done():
	}
}

// refusal returns the answer of a server that does not execute a request; nil for other faults.
func (o outcome) refusal() error {
	switch o.Fault {
	case Conflict:
		return apierrors.NewConflict(schema.GroupResource{}, "it",
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	case TooManyRequests:
		return apierrors.NewTooManyRequests("too many requests, please try again later", 1)
	case ServerError:
		return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
	case Unavailable:
		return apierrors.NewServiceUnavailable("apiserver is shutting down")
	case TimedOut:
		return apierrors.NewTimeoutError("request did not complete within the allowed duration", 0)
	case WatchExpired:
		return apierrors.NewResourceExpired("too old resource version")
	}
	return nil
}

// refuse answers as an API server does.
func refuse(rw http.ResponseWriter, r *http.Request, err error) {
	// Clients decode a Status by its Content-Type, so the answer does not depend on the Accept header.
	r.Header.Set("Accept", runtime.ContentTypeJSON)
	responsewriters.ErrorNegotiated(err, codecs, schema.GroupVersion{Version: "v1"}, rw, r)
}

// codecs encode a Status.
var codecs = newCodecs()

func newCodecs() runtime.NegotiatedSerializer {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return serializer.NewCodecFactory(scheme).WithoutConversion()
}

// disturb breaks or stalls a watch after the delay of the fault.
func (c *Connection) disturb(ctx context.Context, end context.CancelFunc, body io.ReadCloser, o outcome) io.ReadCloser {
	if o.Fault == WatchStalled {
		return &stalling{ReadCloser: body, conn: c, ctx: ctx, from: time.Now().Add(o.after), outcome: o}
	}
	go func() {
		timer := time.NewTimer(o.after)
		defer timer.Stop()
		select {
		case <-timer.C:
			c.countFault(o.Fault)
			end()
		case <-o.calm:
		case <-ctx.Done():
		}
	}()
	return body
}

// stalling is a watch whose events are delayed once.
type stalling struct {
	io.ReadCloser

	conn    *Connection
	ctx     context.Context //nolint:containedctx // the context of the request, because Read has none
	from    time.Time
	outcome outcome
	done    bool
}

// Read implements io.Reader.
func (s *stalling) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if n > 0 && !s.done && time.Now().After(s.from) {
		s.done = true
		s.conn.countFault(WatchStalled)
		pause(s.ctx, s.outcome.lasts, s.outcome.calm)
	}
	return n, err
}
